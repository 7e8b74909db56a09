"""An actor with retries: a courier whose deliveries fail now and then, and sometimes for good.

The `Courier` knows nothing of retries. `Retrying`, a wrapper that comes with the library, goes around it and
calls it again when the door stays shut, each time after a longer wait. When the last attempt has failed too,
the error comes out of it as it is. There `GivesUp`, a wrapper of this program, takes it: it puts the parcel
with the dead letters and lets the courier go on, where the error would have stopped the whole orchestra.
`Timed` goes around all, so its figures include the waits.

So the field is declared as `Actor[Parcel, Receipt]`: any Actor with these types, wrapped or not.

    python -m examples.retrying
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any, Never

import msgspec

from examples import needs
from orchestra import Actor, Context, DeadLetter, Running, Wrapper, orchestra, run, subsystem
from orchestra.wrappers import Retrying, Timed

with needs("retry"):
    import stamina
    from stamina.instrumentation import RetryDetails


class Parcel(msgspec.Struct, frozen=True):
    to: str


class Receipt(msgspec.Struct, frozen=True):
    to: str
    rings: int


class Halt(msgspec.Struct, frozen=True):
    """Every orchestra names a signal and an event; these get by without."""


class NotAtHome(Exception):
    pass


class Street:
    """The flaky service, simulated: each door opens at a certain ring, some never do."""

    def __init__(self, opens_at: dict[str, int]) -> None:
        self.opens_at = opens_at
        self.rings: Counter[str] = Counter()

    async def ring(self, name: str) -> int:
        """Ring once. Returns how often it took, or raises `NotAtHome`."""
        await asyncio.sleep(0.001)
        self.rings[name] += 1
        if self.rings[name] < self.opens_at.get(name, 10**6):
            raise NotAtHome(name)
        return self.rings[name]


class Courier(Actor[Parcel, Receipt]):
    """Rings once for each parcel."""

    def __init__(self, street: Street) -> None:
        self.street = street

    async def handle(self, ctx: Context[Parcel, Receipt, Halt], message: Parcel) -> None:
        rings = await self.street.ring(message.to)
        await ctx.send(Receipt(message.to, rings))


class GivesUp(Wrapper[Parcel, Receipt]):
    """Puts a parcel that nobody takes with the dead letters; any other error is still a failure."""

    def __init__(self, inner: Actor[Parcel, Receipt], bury: Callable[[DeadLetter], object]) -> None:
        super().__init__(inner)
        self.bury = bury

    async def handle(self, ctx: Context[Parcel, Receipt, Any], message: Parcel) -> None:
        try:
            await super().handle(ctx, message)
        except NotAtHome as error:
            self.bury(DeadLetter(message, ctx.name, "failed", error))


class Ledger(Actor[Receipt, Never]):
    def handle(self, ctx: Context[Receipt, Never, Halt], message: Receipt) -> None:
        print(f"{ctx.name}: {message.to} opened at ring {message.rings}")


class DeadLetterOffice:
    """Gets what the courier gave up, and, as the hook of `run`, what is left when the orchestra ends."""

    def __init__(self) -> None:
        self.letters: list[DeadLetter] = []

    def __call__(self, letter: DeadLetter) -> None:
        self.letters.append(letter)
        print(f"dead letter: {letter.message} to {letter.subsystem!r} {letter.reason}: {letter.error!r}")


@orchestra(signal=Halt, event=Halt)
class Delivery:
    courier: Actor[Parcel, Receipt] = subsystem()
    ledger: Ledger = subsystem()


def told_of_retry(details: RetryDetails) -> None:
    """Called by stamina for each retry; without a hook of one's own it logs them."""
    print(f"again in {details.wait_for:g} s: {details.caused_by!r}")


def delivery(street: Street, office: DeadLetterOffice) -> tuple[Delivery, Timed[Parcel, Receipt]]:
    """The orchestra, and its courier with the figures."""
    patient = Retrying(Courier(street), on=NotAtHome, attempts=4, wait_initial=0.02, wait_jitter=0)
    courier = Timed(GivesUp(patient, office), warn_over=5)
    return Delivery(courier=courier, ledger=Ledger()), courier


def main() -> None:
    stamina.instrumentation.set_on_retry_hooks([told_of_retry])
    office = DeadLetterOffice()
    app, courier = delivery(Street({"Ada": 1, "Bob": 3, "Cleo": 2}), office)

    async def bring(running: Running) -> None:
        for name in ("Ada", "Bob", "Nobody", "Cleo"):
            await running.send(Parcel(name))

    run(app, bring, dead_letters=office)
    timing = courier.meters()["Parcel"]
    waited = "longer" if timing.longest > 0.1 else "less"
    print(f"{timing.count} parcels, {timing.failures} failures; one took {waited} than 0.1 s")


if __name__ == "__main__":
    main()
