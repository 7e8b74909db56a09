"""What is logged is seen by a program that sets no logging up."""

import subprocess
import sys
import textwrap


def test_warnings_are_shown_where_the_program_sets_no_logging_up() -> None:
    program = """
        import asyncio
        from orchestra import Actor, orchestra, start, subsystem

        class Tick: ...

        class Once(Actor):
            async def handle(self, ctx, message): await asyncio.sleep(60)

        @orchestra(signal=Tick, event=Tick)
        class App:
            once: Once = subsystem(consumes=int)

        async def main():
            async with start(App(once=Once())) as running:
                for n in range(3):
                    await running.send(n)
                await running.stop(0.01)

        asyncio.run(main())
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, encoding="utf-8", check=True
    )
    assert "int to 'once' was not handled: stopped" in done.stderr
    assert done.stdout == ""
