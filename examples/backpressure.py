"""A saturated subsystem: it takes no message while it is busy, but hears every signal at once.

The oven holds one tray. While it bakes it calls `ctx.recv_signal()`, which gives signals only and
leaves the messages in their lane. The lane has room for two trays, so the baker soon waits in
`ctx.send`: that is backpressure, and it reaches the baker without a word of code.

From outside comes an event, `Rush`. `on_event` turns it into a signal, `Hotter`, which goes to every
subsystem and overtakes all the trays that wait.

    python -m examples.backpressure
"""

import asyncio
from typing import Never

import msgspec

from orchestra import Closed, Conductor, Context, Running, Subsystem, orchestra, run, subsystem


class Tray(msgspec.Struct, frozen=True):
    number: int


class Hotter(msgspec.Struct, frozen=True):
    """A signal: what is left of the baking time is divided by `times`, and so is all that follows."""

    times: float


class Rush(msgspec.Struct, frozen=True):
    """An event: people are waiting at the counter."""


class Baker(Subsystem[Never, Tray]):
    """Has all the trays ready at once, and is slowed down to the pace of the oven."""

    def __init__(self, trays: int) -> None:
        self.trays = trays

    async def run(self, ctx: Context[Never, Tray, Hotter]) -> None:
        for number in range(1, self.trays + 1):
            await ctx.send(Tray(number))
            print(f"baker: tray {number} is on the rack")


class Oven(Subsystem[Tray, Never]):
    """Bakes one tray after the other, `seconds` each."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.baked: list[int] = []

    async def run(self, ctx: Context[Tray, Never, Hotter]) -> None:
        async for item in ctx:
            match item:
                case Tray(number=number):
                    print(f"oven: tray {number} is in")
                    await self._bake(ctx)
                    self.baked.append(number)
                case Hotter(times=times):
                    self.seconds /= times

    async def _bake(self, ctx: Context[Tray, Never, Hotter]) -> None:
        """Wait until the tray is done, and make it sooner at each signal."""
        now = asyncio.get_running_loop().time
        done_at = now() + self.seconds
        while (hotter := await self._signal_until(done_at, ctx)) is not None:
            print(f"oven: {hotter.times:g} times hotter, in the middle of a tray")
            self.seconds /= hotter.times
            done_at = now() + (done_at - now()) / hotter.times

    async def _signal_until(self, when: float, ctx: Context[Tray, Never, Hotter]) -> Hotter | None:
        """The next signal, or None at the time `when`. A receive that the timeout cancels loses nothing."""
        try:
            async with asyncio.timeout_at(when):
                return await ctx.recv_signal()
        except TimeoutError:
            return None
        except Closed:  # no signal can come any more; the tray takes its time all the same
            await asyncio.sleep(when - asyncio.get_running_loop().time())
            return None


@orchestra(signal=Hotter, event=Rush)
class Bakery:
    baker: Baker = subsystem()
    oven: Oven = subsystem(message_capacity=2)

    async def on_event(self, conductor: Conductor[Hotter], event: Rush) -> None:
        await conductor.broadcast(Hotter(times=4))


async def main(running: Running) -> None:
    """Stand outside: after a while there is a rush. When this returns the orchestra drains and stops."""
    await asyncio.sleep(0.3)
    await running.event(Rush())


def bakery() -> Bakery:
    """The orchestra, ready to run."""
    return Bakery(baker=Baker(trays=8), oven=Oven(seconds=0.2))


if __name__ == "__main__":
    run(bakery(), main)
