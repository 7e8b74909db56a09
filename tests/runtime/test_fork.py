"""K04: a fork while an orchestra runs. In the child it has ended; in the parent nothing changes."""

import os
import subprocess
import sys
import textwrap
import time

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")

PROGRAM = """
    import asyncio, multiprocessing, os, sys, threading, warnings
    from typing import Any
    import msgspec
    from orchestra import Actor, Closed, Recipient, Reply, Subsystem, orchestra, start, subsystem

    warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads: that is the point

    class Job(msgspec.Struct):
        n: int = 0
        reply: Reply[int] | None = None

    class Note(Job): ...

    class Halt(msgspec.Struct): ...

    class Works(Actor):
        def started(self, ctx):
            self.ctx = ctx
        def handle(self, ctx, message):
            self.kept = message
            if message.reply is not None and message.n:
                message.reply.send(message.n)

    class Blocks(Subsystem):
        ctx: Any = None
        def run(self, ctx):
            self.ctx = ctx
            for message in ctx:
                if message.n == 2:
                    self.result = in_child(lambda: uses(ctx.send, ctx.try_send, ends(ctx)))
                if message.reply is not None:
                    message.reply.send(message.n)

    @orchestra(signal=Halt, event=Halt)
    class App:
        works: Works = subsystem(consumes=Job, sends=[Note])
        blocks: Blocks = subsystem(consumes=Note, sends=[Job, Note], blocking=True, message_capacity=4)

    def ends(ctx):
        return lambda note: (list(ctx), ctx.send(note))

    def uses(*verbs):
        for verb in verbs:
            try:
                verb(Note(9))
            except Closed as closed:
                assert "from which this one was forked" in str(closed.__cause__), closed.__cause__
            else:
                raise AssertionError(verb)

    def in_child(work):
        pid = os.fork()
        if not pid:
            code = 1
            try:
                work()
                code = 0
            finally:
                os._exit(code)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def child(running, app, to_blocks, waiting):
        uses(running.try_send, app.works.ctx.try_send, to_blocks.try_send)
        uses(lambda note: next(running.send(note).__await__()))
        assert waiting.send(7) is False, "nobody waits here"
        errors = []
        def elsewhere():
            try:
                uses(running.threadsafe().send, to_blocks.send)
            except BaseException as error:
                errors.append(error)
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        assert not errors, errors
        async def afresh():
            async with start(app) as again:
                assert await again.ask(lambda reply: Note(1, reply), timeout=5) == 1
                await again.drain()
        asyncio.run(afresh())
        fresh = App(works=Works(), blocks=Blocks())
        async def another():
            async with start(fresh) as again:
                assert await again.ask(lambda reply: Note(1, reply), timeout=5) == 1
        asyncio.run(another())

    async def main():
        app = App(works=Works(), blocks=Blocks())
        async with start(app, slow_handler=0.05) as running:
            asking = asyncio.ensure_future(running.ask(lambda reply: Job(0, reply)))
            while app.blocks.ctx is None or not hasattr(app.works, "kept"):
                await asyncio.sleep(0.01)
            to_blocks = app.works.ctx.recipient(Note)
            waiting = app.works.kept.reply
            lock = running._ensemble.inboxes["blocks"].lock
            held, done = threading.Event(), threading.Event()
            def hold():
                with lock:
                    held.set()
                    done.wait()
            holder = threading.Thread(target=hold)
            holder.start()
            held.wait()
            code = in_child(lambda: child(running, app, to_blocks, waiting))
            done.set()
            holder.join()
            assert code == 0, code
            given = running, app, to_blocks, waiting
            process = multiprocessing.get_context("fork").Process(target=child, args=given)
            process.start()
            await asyncio.to_thread(process.join)
            assert process.exitcode == 0, process.exitcode
            assert await running.ask(lambda reply: Note(2, reply), timeout=10) == 2
            assert app.blocks.result == 0, app.blocks.result
            assert waiting.send(5) is True
            assert await asking == 5
            assert await running.ask(lambda reply: Job(3, reply), timeout=5) == 3
            await running.drain()
        print("fine")

    LOOP
"""


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_fork_after_the_start(loop: str) -> None:
    if loop == "uvloop" and sys.version_info < (3, 12):
        pytest.importorskip("uvloop")
    runs = "asyncio.run(main())" if loop == "asyncio" else "import uvloop; uvloop.run(main())"
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM).replace("LOOP", runs)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    )
    assert (done.stdout, done.stderr) == ("fine\n", "")
    assert time.monotonic() - began < 30
