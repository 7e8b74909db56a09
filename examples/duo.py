"""Two subsystems that talk to each other, one in each style.

`Asker` is a `Subsystem`: it has a `run` of its own and decides when to receive. `Squarer` is an
`Actor`: it is called for each message. What each receives and sends stands in its base class, so
the orchestra only lists the two.

They send to each other, and a circle of senders that all wait for room can lock up. So one side must
never wait: the answers go to a lane that fails when it is full, and it is never full, for the asker
has one question open at a time. `orchestra check examples.duo:Duo` sees that.

When the asker has had its answers its `run` returns. Then nobody is left who could send to the
squarer, so its inbox ends too, and with it the program.

    python -m examples.duo
"""

import msgspec

from orchestra import Actor, Context, Fail, Subsystem, orchestra, run, subsystem


class Question(msgspec.Struct, frozen=True):
    number: int


class Answer(msgspec.Struct, frozen=True):
    number: int
    square: int


class Halt(msgspec.Struct, frozen=True):
    """Every orchestra names a signal and an event; these two get by without."""


class Asker(Subsystem[Answer, Question]):
    """Asks for the squares of 1, 2, 3 ..., each when the one before has come."""

    def __init__(self, questions: int) -> None:
        self.questions = questions
        self.answers: list[Answer] = []

    async def run(self, ctx: Context[Answer, Question, Halt]) -> None:
        for number in range(1, self.questions + 1):
            await ctx.send(Question(number))
            answer = await ctx.recv()
            if isinstance(answer, Halt):
                break
            print(f"{ctx.name}: the square of {answer.number} is {answer.square}")
            self.answers.append(answer)


class Squarer(Actor[Question, Answer]):
    """Answers at once. A plain `def` will do: `try_send` never waits."""

    def handle(self, ctx: Context[Question, Answer, Halt], message: Question) -> None:
        ctx.try_send(Answer(message.number, message.number**2))


@orchestra(signal=Halt, event=Halt)
class Duo:
    asker: Asker = subsystem(message_capacity=1, overflow=Fail())
    squarer: Squarer = subsystem()


def duo() -> Duo:
    """The orchestra, ready to run: also `orchestra run examples.duo:duo`."""
    return Duo(asker=Asker(questions=5), squarer=Squarer())


if __name__ == "__main__":
    run(duo())
