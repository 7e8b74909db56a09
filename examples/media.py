"""A pipeline as in a camera: capture at a fixed rate, encode in a thread, publish; late frames are dropped.

- `Camera` is an `Actor` that ticks itself: `ctx.send_every` keeps to the beat without drift, and when
  something held the program up it does not catch up on ticks (`Missed.SKIP`).
- `Encoder` needs the processor for longer than a frame lasts, so it is `blocking=True`: it has a thread
  of its own and plain functions. Its lane keeps the two newest frames (`DropOldest`): a frame that comes
  too late is of no use, so what the encoder cannot keep up with is thrown away, and counted.
- `Recorder` and `Viewer` both subscribe to what the encoder publishes.

The encoder slows down in the middle of the run, and nothing else does: the camera keeps its beat, and the
newest frame is never older than the encoder needs for two.

    python -m examples.media
"""

import time
from typing import Never

import msgspec

from orchestra import Actor, BlockingContext, Context, DropOldest, orchestra, run, subsystem

RATE = 100
"""Frames a second."""

FRAMES = 100
"""How many frames the camera takes."""


class Tick(msgspec.Struct, frozen=True):
    """Time for the next frame."""


class Frame(msgspec.Struct, frozen=True):
    """`taken` is when it was captured, in seconds of the monotonic clock."""

    number: int
    taken: float


class Encoded(msgspec.Struct, frozen=True):
    number: int
    taken: float
    data: bytes


class Halt(msgspec.Struct, frozen=True):
    """Every orchestra names a signal and an event; these two get by without."""


class Camera(Actor[Tick, Frame]):
    """Takes a frame at each tick, and has finished after `frames` of them."""

    def __init__(self, frames: int) -> None:
        self.frames = frames
        self.taken = 0

    def started(self, ctx: Context[Tick, Frame, Halt]) -> None:
        self.ticking = ctx.send_every(1 / RATE, Tick)

    def handle(self, ctx: Context[Tick, Frame, Halt], message: Tick) -> None:
        ctx.try_send(Frame(self.taken, time.monotonic()))
        self.taken += 1
        if self.taken == self.frames:
            ctx.finish()


class Encoder(Actor[Frame, Encoded]):
    """Takes as long as three frames last for those in the middle of the film, else half of one."""

    def __init__(self, frames: int) -> None:
        self.slow = range(frames // 3, 2 * frames // 3)

    def handle(self, ctx: BlockingContext[Frame, Encoded, Halt], message: Frame) -> None:
        time.sleep((3 if message.number in self.slow else 0.5) / RATE)
        ctx.send(Encoded(message.number, message.taken, b"..."))


class Recorder(Actor[Encoded, Never]):
    """Keeps the number of each frame, and how old the oldest was when it came."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.oldest = 0.0

    def handle(self, ctx: Context[Encoded, Never, Halt], message: Encoded) -> None:
        self.numbers.append(message.number)
        self.oldest = max(self.oldest, time.monotonic() - message.taken)


class Viewer(Actor[Encoded, Never]):
    """Counts what it shows."""

    def __init__(self) -> None:
        self.shown = 0

    def handle(self, ctx: Context[Encoded, Never, Halt], message: Encoded) -> None:
        self.shown += 1


@orchestra(signal=Halt, event=Halt)
class Media:
    camera: Camera = subsystem()
    encoder: Encoder = subsystem(blocking=True, message_capacity=2, overflow=DropOldest())
    recorder: Recorder = subsystem(subscribes=[Encoded])
    viewer: Viewer = subsystem(subscribes=[Encoded])


def media(frames: int = FRAMES) -> Media:
    """The orchestra, ready to run."""
    return Media(camera=Camera(frames), encoder=Encoder(frames), recorder=Recorder(), viewer=Viewer())


def told(app: Media, running_for: float) -> str:
    """What came of the frames, in one line."""
    frames, recorded = app.camera.taken, len(app.recorder.numbers)
    return (
        f"{frames} frames in {running_for:.1f} s: {recorded} recorded, {app.viewer.shown} shown, "
        f"{frames - recorded} came too late; the oldest was {app.recorder.oldest * 1000:.0f} ms old"
    )


def main() -> None:
    """Run until the camera has finished and the last frame has been published."""
    app = media()
    began = time.monotonic()
    run(app)
    print(told(app, time.monotonic() - began))


if __name__ == "__main__":
    main()
