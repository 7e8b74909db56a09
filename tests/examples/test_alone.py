"""Subsystems of the examples, one at a time: what each does when the test is all that is around it."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.backpressure import Baker, Bakery, Hotter, Oven, Tray
from examples.census.app import Census
from examples.census.messages import (
    Counted,
    Found,
    Report,
    ReportNow,
    SourceFile,
    StopWalking,
    Unreadable,
    WalkDone,
)
from examples.census.parts import Desk, Reader, Reporter, Tally, Walker
from examples.census.screen import Quiet
from examples.duo import Answer, Asker, Duo, Question, Squarer
from examples.echo import Echo, Gone, Opened, Room, Said, Write, echo
from examples.media import RATE, Camera, Encoded, Encoder, Frame, Media, Recorder
from examples.retrying import Courier, Delivery, Parcel, Receipt, Street
from examples.slow_subscriber.app import Fast, Publisher, Sample, Slow, UnderDropOldest
from orchestra import Actor, Context, Priority, run, start
from orchestra.testing import alone, recorded, replace
from orchestra.wrappers import Retrying
from tests.runtime.players import within


def counted(lines: int) -> Counted:
    return Counted(lines, 0, 0, {"NAME": lines}, {"x": lines})


# census


class Hesitant(Walker):
    """Looks for files when it is told to."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.go = threading.Event()

    def _paths(self) -> Iterator[str]:
        assert self.go.wait(10)
        return super()._paths()


def test_the_walker_finds_files_and_stops_when_it_is_told(tmp_path: Path) -> None:
    for name in ("b.py", "a.py", "c.txt"):
        (tmp_path / name).touch()

    async def main() -> None:
        async with alone(Census, "walker", Walker(tmp_path)) as probe:
            await probe.wait()
            files = [SourceFile(str(tmp_path / name)) for name in ("a.py", "b.py")]
            assert probe.sent == [Found(2), *files, WalkDone()]
        async with alone(Census, "walker", Hesitant(tmp_path)) as other:
            await other.send(StopWalking())
            other.instance.go.set()
            assert await other.expect(WalkDone)
            assert other.sent == [Found(2), Found(0), WalkDone()]

    within(20, main())


def test_the_reader_has_files_counted(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text("x = 1\n")
    bad.write_bytes(b"\xff\xfe\x00")

    async def main() -> None:
        async with alone(Census, "reader", Reader(1)) as probe:
            for path in (good, bad):
                await probe.send(SourceFile(str(path)))
            assert (await probe.expect(Counted, timeout=30)).code == 1
            assert (await probe.expect(Unreadable, timeout=30)).path == str(bad)
            await probe.drain(timeout=30)

    within(60, main())


def test_the_tally_adds_up_in_a_box_and_reports_at_the_end() -> None:
    async def main() -> None:
        async with alone(Census, "tally", Tally()) as probe:
            await probe.send(Found(3))
            for lines in (1, 2):
                await probe.send(counted(lines))
            await probe.send(Unreadable("c.py", "no"))
            await probe.settle()
            assert probe.try_send(ReportNow())
            report = await probe.expect(Report)
            assert (report.found, report.files, report.lines, report.final) == (3, 2, 3, False)
            assert probe.meters.lanes[Priority.HIGH].received == 1
            await probe.drain()
            assert (await probe.expect(Report)).final

    within(20, main())


def test_the_desk_asks_for_reports_until_the_walk_is_done() -> None:
    async def main() -> None:
        async with alone(Census, "desk", Desk(0.01)) as probe:
            assert await probe.expect(ReportNow)
            assert await probe.expect(ReportNow)
            await probe.send(WalkDone())
            await probe.wait()

    within(20, main())


def test_the_reporter_keeps_the_last_report() -> None:
    async def main() -> None:
        async with alone(Census, "reporter", Reporter(Quiet())) as probe:
            for files in (1, 2):
                await probe.send(Report(files=files))
            await probe.drain()
            assert probe.instance.last.files == 2

    within(20, main())


class FakeReader(Actor[SourceFile, Counted | Unreadable]):
    """Counts nothing, in no process."""

    async def handle(self, ctx: Context[SourceFile, Counted | Unreadable], message: SourceFile) -> None:
        await ctx.send(Unreadable(message.path, "it was not opened"))


def test_a_reader_that_is_no_run_cannot_stand_for_one() -> None:
    app = Census(
        walker=Walker(Path()), reader=Reader(1), tally=Tally(), reporter=Reporter(Quiet()), desk=Desk(1)
    )
    with pytest.raises(TypeError, match=r"Census\.reader holds a FakeReader, and Reader is declared"):
        replace(app, reader=FakeReader())


# duo


def test_the_asker_asks_one_question_after_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    async def main() -> None:
        async with alone(Duo, "asker", Asker(questions=2)) as probe:
            assert await probe.expect(Question) == Question(1)
            assert probe.sent == [Question(1)]
            await probe.send(Answer(1, 100))
            assert await probe.expect(Question) == Question(2)
            await probe.send(Answer(2, 200))
            await probe.wait()
            assert [answer.square for answer in probe.instance.answers] == [100, 200]

    within(20, main())
    assert capsys.readouterr().out.splitlines()[-1] == "asker: the square of 2 is 200"


def test_the_two_are_recorded_side_by_side() -> None:
    asker, squarer = recorded(Asker(3)), recorded(Squarer())
    run(replace(Duo(asker=Asker(0), squarer=Squarer()), asker=asker, squarer=squarer))
    assert asker.sent == squarer.received == [Question(n) for n in (1, 2, 3)]
    assert squarer.sent == asker.received == asker.inner.answers
    assert squarer.hooks == ["started", "stopped"]


# backpressure


def test_the_baker_does_not_wait_for_an_oven_that_is_not_there() -> None:
    async def main() -> None:
        async with alone(Bakery, "baker", Baker(8)) as probe:
            await probe.wait()
            assert probe.sent == [Tray(n) for n in range(1, 9)]

    within(20, main())


def test_the_oven_hears_signals_while_it_bakes_and_makes_its_senders_wait() -> None:
    async def main() -> None:
        async with alone(Bakery, "oven", Oven(60)) as probe:
            for n in range(3):
                await probe.send(Tray(n))
                await probe.settle()
            with pytest.raises(
                AssertionError, match=r"had no room for Tray within 0.05 s; it is at .*_signal_until"
            ):
                await probe.send(Tray(3), timeout=0.05)
            probe.signal(Hotter(100_000))
            await probe.drain()
            assert probe.instance.baked == [0, 1, 2]

    within(20, main())


# slow_subscriber


def test_the_publisher_publishes_to_both_and_is_cancelled_at_the_end() -> None:
    async def main() -> None:
        async with alone(UnderDropOldest, "publisher", Publisher(1000), stop_timeout=0.01) as probe:
            first = await probe.expect(Sample)
            assert first.number == 0
            assert [each.receiver for each in probe.log if each.message is first] == ["fast", "slow"]

    within(20, main())


def test_the_newest_sample_takes_the_place_of_the_one_that_waits() -> None:
    async def main() -> None:
        async with alone(UnderDropOldest, "slow", Slow(), stop_timeout=0) as probe:
            for n in range(4):
                assert await probe.send(Sample(n, 0.0))
                await probe.settle()
            assert probe.meters.received == 1
            assert probe.meters.dropped_by == {"oldest": 2}
        async with alone(UnderDropOldest, "fast", Fast()) as other:
            await other.send(Sample(0, 0.0))
            await other.drain()
            assert other.meters.received == 1

    within(20, main())


# echo


def test_the_room_answers_and_writes_to_the_others() -> None:
    async def main() -> None:
        async with alone(Echo, "room", Room()) as probe:
            for connection in (1, 2, 3):
                await probe.send(Opened(connection, probe.recipient(Write)))
            assert await probe.ask(lambda reply: Said(1, "hello", reply)) == "hello"
            assert await probe.ask(lambda reply: Said(1, "/count", reply)) == "2 lines"
            await probe.send(Gone(3))
            assert await probe.ask(lambda reply: Said(1, "/all lunch", reply)) == "told 1 others"
            assert probe.sent == [Write(2, "lunch")]

    within(20, main())


class Parrot(Actor[Opened | Said | Gone]):
    """A room that says everything twice."""

    def handle(self, ctx: Context[Opened | Said | Gone], message: Opened | Said | Gone) -> None:
        if isinstance(message, Said):
            message.reply.send(f"{message.line} {message.line}")


def test_a_server_serves_another_room() -> None:
    async def main() -> None:
        app = replace(echo(), room=Parrot())
        async with start(app):
            await app.server.listening.wait()
            reader, writer = await asyncio.open_connection("127.0.0.1", app.server.port)
            writer.write(b"hello\n")
            assert await reader.readline() == b"hello hello\n"
            writer.close()
            await writer.wait_closed()

    within(20, main())


def test_the_server_alone_has_its_lines_answered_by_the_test() -> None:
    async def main() -> None:
        app = echo()
        async with alone(Echo, "server", app.server) as probe:
            await app.server.listening.wait()
            reader, writer = await asyncio.open_connection("127.0.0.1", app.server.port)
            opened = await probe.expect(Opened)
            await opened.writes.send(Write(opened.connection, "welcome"))
            assert await reader.readline() == b"welcome\n"
            writer.write(b"hello\n")
            said = await probe.expect(Said)
            assert (said.connection, said.line) == (opened.connection, "hello")
            said.reply.send("good day")
            assert await reader.readline() == b"good day\n"
            writer.close()
            await writer.wait_closed()
            assert await probe.expect(Gone) == Gone(opened.connection)

    within(20, main())


# media


def test_the_camera_keeps_its_beat_and_finishes() -> None:
    async def main() -> None:
        async with alone(Media, "camera", Camera(10)) as probe:
            await probe.advance(3.5 / RATE)
            assert [frame.number for frame in probe.sent] == [0, 1, 2]
            await probe.advance(1)
            assert probe.ended
            assert [round(each.time * RATE, 6) for each in probe.log] == list(range(1, 11))

    within(20, main())


def test_the_encoder_encodes_in_its_thread_for_both_subscribers() -> None:
    async def main() -> None:
        async with alone(Media, "encoder", Encoder(100)) as probe:
            assert await probe.send(Frame(0, 0.0))
            assert (await probe.expect(Encoded)).number == 0
            assert {each.receiver for each in probe.log} == {"recorder", "viewer"}
            assert len(probe.sent) == 1
        async with alone(Media, "recorder", Recorder()) as other:
            await other.send(Encoded(5, 0.0, b""))
            await other.drain()
            assert other.instance.numbers == [5]

    within(20, main())


# retrying


def test_the_courier_rings_again() -> None:
    async def main() -> None:
        street = Street({"Ann": 3})
        patient = Retrying(Courier(street), attempts=3, wait_initial=0.001, wait_jitter=0)
        async with alone(Delivery, "courier", recorded(patient)) as probe:
            await probe.send(Parcel("Ann"))
            assert await probe.expect(Receipt) == Receipt("Ann", 3)
            assert probe.instance.received == [Parcel("Ann")]
            assert street.rings["Ann"] == 3

    within(20, main())
