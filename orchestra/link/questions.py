"""Asks across processes: a reply crosses as a number, and its answer comes back under that number.

Where the request arrives an ask of this process's own stands for the one over there, so all that is known of
asks holds for it: when its handler fails, or the message is dead-lettered, or the reply is dropped, that is
its outcome, and goes back at once.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, get_args, get_origin

import attrs
import msgspec

from orchestra.errors import NoReply
from orchestra.link import failures
from orchestra.link.exact import Back, Out, Unfit, from_tree, to_tree
from orchestra.link.peers import Neighbour, State
from orchestra.link.wire import Answer, Failure, Heard, write_control
from orchestra.messages import derives
from orchestra.packing.classes import style_of
from orchestra.packing.hints import Hint, field_hints
from orchestra.packing.shapes.riding import Ride
from orchestra.packing.shapes.shape import Riders, Shape
from orchestra.packing.shaping import Builder
from orchestra.plan import Plan
from orchestra.recipient import Recipient
from orchestra.reply import Reply
from orchestra.runtime.asks import Asks
from orchestra.runtime.pending import Pending

FEW = 16
"""Answers that are sent again to one process at once."""

_encode = msgspec.msgpack.encode
_decode = msgspec.msgpack.decode


@attrs.frozen(eq=False)
class Question:
    """A reply that is with another process. It is held here, so that its asker waits."""

    reply: Reply[Any]
    neighbour: Neighbour
    kind: type


@attrs.define(eq=False)
class Given:
    """An answer to another process that it may not have yet, and when it was sent."""

    neighbour: Neighbour
    answer: Answer | Failure
    at: float


class Questions:
    """What was asked of other processes, and by them.

    An answer is sent again until its asker has said that it has come. `later` has a function called soon,
    once however often it is given; `now` is the time.
    """

    def __init__(
        self,
        plan: Plan,
        asks: Asks,
        later: Callable[[Callable[[], None]], None],
        now: Callable[[], float],
        names: Mapping[str, Any] | None = None,
    ) -> None:
        self._plan = plan
        self._asks = asks
        self._names = names or {}
        self._later = later
        self._now = now
        self._open: dict[int, Question] = {}
        self._given: dict[tuple[int, int], Given] = {}
        self._heard: dict[int, tuple[Neighbour, list[int]]] = {}
        self._shapes: dict[type, Shape] = {}
        self._next = 0
        self.recipient: Callable[[type], Recipient[Any]] | None = None

    # what rides beside a frame

    def out(self, neighbour: Neighbour) -> Callable[[type], Out]:
        """How replies and recipients in messages to a process cross."""
        return lambda kind: partial(self._out, neighbour, kind)

    def back(self, neighbour: Neighbour, subsystem: str, kind: type) -> Back:
        """How those in messages of a class, from a process to a subsystem, are made again."""
        return partial(self._back, neighbour, subsystem, kind)

    def _out(self, neighbour: Neighbour, kind: type, value: Any) -> Any:
        if isinstance(value, Reply):
            self._next += 1
            self._open[self._next] = Question(value, neighbour, kind)
            return ["reply", self._next]
        if isinstance(value, Recipient):
            return ["recipient", value.kind.__qualname__]
        raise Unfit(f"a {type(value).__qualname__} cannot leave its process")

    def _back(self, neighbour: Neighbour, subsystem: str, kind: type, mark: str, rest: Any) -> Any:
        if mark == "reply" and len(rest) == 1 and type(rest[0]) is int:
            return self._stand_in(neighbour, subsystem, kind, rest[0])
        if mark == "recipient" and len(rest) == 1 and self.recipient is not None:
            for each in self._plan.routes:
                if each.__qualname__ == rest[0]:
                    return self.recipient(each)
        raise Unfit(f"a {mark} that is none")

    # asked here

    def answered(self, neighbour: Neighbour, answer: Answer | Failure) -> None:
        """An answer has come to a question of this process, for the first time or again."""
        self._heard.setdefault(neighbour.epoch, (neighbour, []))[1].append(answer.number)
        self._later(self._say_heard)
        question = self._open.get(answer.number)
        if question is None or question.neighbour is not neighbour:
            return
        del self._open[answer.number]
        if isinstance(answer, Failure):
            question.reply.fail(failures.read(answer))
            return
        try:
            riders = [from_tree(tree) for tree in answer.riders]
            value = self._shape(question.kind).open(_decode(answer.value), riders)
        except Exception as error:
            question.reply.fail(
                NoReply(f"the answer of {neighbour} is none: {error}", None, None),
            )
            return
        question.reply.send(value)

    def _say_heard(self) -> None:
        heard, self._heard = self._heard, {}
        for neighbour, numbers in heard.values():
            neighbour.tell(Heard(numbers))

    def gone(self, neighbour: Neighbour) -> None:
        """A process is gone: what it was asked it does not answer, and what it has asked nobody waits for."""
        for key in [key for key in self._given if key[0] == neighbour.epoch]:
            del self._given[key]
        for number, question in list(self._open.items()):
            if question.neighbour is neighbour:
                del self._open[number]
                pending = question.reply._pending
                why = f"the process {neighbour} is gone"
                if isinstance(pending, Pending):
                    pending.no_reply(why)
                else:
                    question.reply.fail(NoReply(why))

    # asked there

    def _stand_in(self, neighbour: Neighbour, subsystem: str, kind: type, number: int) -> Reply[Any]:
        pending = Pending(self._asks)
        pending.asked = kind
        pending.holders = (subsystem,)
        pending.when_over = partial(self._relay, neighbour, number, kind, pending)
        self._asks.open_for_another(pending)
        return Reply(pending)

    def _relay(self, neighbour: Neighbour, number: int, kind: type, pending: Pending) -> None:
        self._asks.closed_for_another(pending)
        pending.when_over = None
        if neighbour.state in (State.GONE, State.REFUSED):
            return
        answer = self._answered(number, kind, pending)
        self._given[neighbour.epoch, number] = Given(neighbour, answer, self._now())
        neighbour.tell(answer)

    def heard(self, neighbour: Neighbour, numbers: list[int]) -> None:
        """A process has got the answers to these questions."""
        for number in numbers:
            self._given.pop((neighbour.epoch, number), None)

    def tell_again(self, patience: float) -> None:
        """Send again answers of which nothing was heard for so many seconds; a few, for it may be frozen."""
        now = self._now()
        told: Counter[int] = Counter()
        for (epoch, _), given in self._given.items():
            late = given.neighbour.state is State.HERE and now - given.at >= patience
            if late and told[epoch] < FEW:
                told[epoch] += 1
                given.at = now
                given.neighbour.tell(given.answer)

    def came_back(self, neighbour: Neighbour) -> None:
        """A process is there again: send it all answers that it may not have."""
        for given in self._given.values():
            if given.neighbour is neighbour:
                given.at = self._now()
                neighbour.tell(given.answer)

    def _answered(self, number: int, kind: type, pending: Pending) -> Answer | Failure:
        try:
            value = pending.outcome()
        except Exception as error:
            return failures.written(number, error)
        try:
            answer = self._answer(number, kind, value)
            write_control(answer)
        except Exception as error:
            text = (
                f"it was answered with a {type(value).__qualname__}, which cannot leave its process: {error}"
            )
            return failures.written(number, NoReply(text))
        return answer

    def _answer(self, number: int, kind: type, value: Any) -> Answer:
        riders = Riders()
        tree = self._shape(kind).pack(value, riders, 0)
        return Answer(number, _encode(tree), [to_tree(rider) for rider in riders])

    def _shape(self, kind: type) -> Shape:
        """How answers to messages of a class are packed: as the class says in its field of a `Reply`."""
        shape = self._shapes.get(kind)
        if shape is None:
            shape = self._shapes[kind] = self._find_shape(kind)
        return shape

    def _find_shape(self, kind: type) -> Shape:
        style = style_of(kind)
        hints = {} if style is None else field_hints(kind, style[1], None, self._names)
        found = [answer for hint in hints.values() for answer in _answers(hint)]
        return Builder(self._names).shape(found[0]) if len(found) == 1 else Ride("untyped")


def _answers(hint: Hint) -> list[Hint]:
    """What the replies in an annotation are answered with."""
    hint = hint.resolve()
    origin, args = get_origin(hint.annotation), get_args(hint.annotation)
    if isinstance(origin, type) and derives(origin, Reply):
        return [hint.inner(args[0])] if args else []
    return [answer for arg in args if arg is not Ellipsis for answer in _answers(hint.inner(arg))]
