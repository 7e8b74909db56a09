"""The media pipeline drops what comes too late, and nothing else."""

import os
import signal
import threading
import time

from examples.media import Media, media
from orchestra import plan_of, run


def test_late_frames_are_dropped_and_the_rest_arrives_in_order() -> None:
    app = media()
    run(app)
    numbers = app.recorder.numbers
    assert app.camera.taken == 100
    assert numbers == sorted(set(numbers))
    assert numbers[-1] == 99, "the newest is never thrown away"
    assert 10 <= len(numbers) < 95
    assert app.viewer.shown == len(numbers)


def test_the_encoder_has_a_thread() -> None:
    assert plan_of(Media).subsystems["encoder"].blocking


def test_ctrl_c_ends_it_in_the_middle_of_the_film() -> None:
    app = media(frames=10_000)
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()
    run(app, dead_letters=lambda letter: None)
    assert time.monotonic() - began < 5
    assert 0 < app.camera.taken < 10_000
    assert not [thread for thread in threading.enumerate() if thread.name == "orchestra:encoder"]
