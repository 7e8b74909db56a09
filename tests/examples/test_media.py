"""The media pipeline drops what comes too late, and nothing else."""

from examples.media import Media, media
from orchestra import plan_of, run


def test_late_frames_are_dropped_and_the_rest_arrives_in_order() -> None:
    app = media()
    run(app)
    numbers = app.recorder.numbers
    assert app.camera.taken == 100
    assert numbers == sorted(set(numbers))
    assert numbers[-1] == 99, "the newest is never thrown away"
    assert 30 <= len(numbers) < 95
    assert app.viewer.shown == len(numbers)


def test_the_encoder_has_a_thread() -> None:
    assert plan_of(Media).subsystems["encoder"].blocking
