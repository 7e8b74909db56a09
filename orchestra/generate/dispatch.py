"""The dispatch of an Actor: which method gets a message, and whether anything has to be awaited.

An Actor whose `on_signal`, `deadline_passed` and handlers are all plain functions is served by `work`, a
function that handles up to a budget of messages and returns how many more than one. Otherwise it is served by
`serve`, a coroutine that parks when there is nothing to take. It is a generator: to yield costs a quarter of
what an `await` does.
"""

import types

from orchestra.generate.handling import Handling, is_synchronous
from orchestra.generate.receiving import (
    Receipt,
    held,
    write_lanes,
    write_nonlocal,
    write_open,
    write_pacing,
    write_pause,
    write_take,
    write_taken,
)
from orchestra.generate.threads import write_thread_take
from orchestra.generate.work import write_work
from orchestra.plan import SubsystemPlan
from orchestra.source import Writer


def write_thread_worker(writer: Writer, subsystem: SubsystemPlan, receipt: Receipt, function: str) -> None:
    """Write a function that makes `serve` for an Actor in a thread of its own."""
    with writer.block(f"def {function}(inbox, ctx, actor, part)"):
        writer.line(f'"""How {subsystem.name} is served: in a thread of its own."""')
        handling = Handling.written(writer, subsystem)
        write_lanes(writer, receipt)
        writer.line()
        with writer.block("def serve()"):
            write_nonlocal(writer, receipt)
            writer.line("message = None")
            with writer.block("try"):
                with writer.block("while True"):
                    write_thread_take(writer, receipt)
                    with writer.block("if message is not None"):
                        write_open(writer, receipt)
                        handling.write_message(writer)
                    with writer.block("elif signals"):
                        handling.write_signal(writer)
                    with writer.block("elif not inbox.sleep()"):
                        writer.line("return")
            with writer.block("except BaseException"):
                writer.line("inbox.current = message")
                writer.line("raise")
        write_taken(writer, receipt)
        writer.line()
        writer.line("return serve, taken")


def write_worker(writer: Writer, subsystem: SubsystemPlan, receipt: Receipt, function: str) -> None:
    """Write a function that makes what serves one Actor: `work` or `serve`."""
    if subsystem.blocking:
        write_thread_worker(writer, subsystem, receipt, function)
        return
    synchronous = is_synchronous(subsystem)
    with writer.block(f"def {function}(inbox, ctx, actor, part)"):
        how = "straight from the ready-queue" if synchronous else "as a coroutine that parks"
        writer.line(f'"""How {subsystem.name} is served: {how}."""')
        handling = Handling.written(writer, subsystem, coroutines=not synchronous)
        if not synchronous:
            writer.line("parked = inbox.PARKED")
        write_lanes(writer, receipt, paced=not synchronous)
        if not synchronous:
            write_pacing(writer, receipt)
        writer.line()
        if synchronous:
            write_work(writer, handling, receipt)
        else:
            _write_serve(writer, handling, receipt)
        write_taken(writer, receipt, paced=not synchronous)
        writer.line()
        writer.line(f"return {'work' if synchronous else 'serve'}, taken")


def _write_serve(writer: Writer, handling: Handling, receipt: Receipt) -> None:
    writer.line(f"@{writer.bind(types.coroutine, 'coroutine')}")
    with writer.block("def serve()"):
        write_nonlocal(writer, receipt, paced=True)
        writer.line("message = None")
        with writer.block("try"):
            with writer.block("while True"):
                handling.write_signals_first(writer)
                write_pause(writer, receipt, "yield from")
                if receipt.shared:
                    _write_shared_take(writer, receipt)
                else:
                    _write_take_or_park(writer, receipt)
                write_open(writer, receipt)
                handling.write_message(writer)
                writer.line("message = None")
        with writer.block("except BaseException"):
            writer.line("inbox.current = message")
            writer.line("raise")


def _write_take_or_park(writer: Writer, receipt: Receipt) -> None:
    write_take(writer, receipt, "if", paced="left -= 1")
    with writer.block("elif inbox.over"):
        writer.line("return")
    with writer.block("else"):
        writer.line("inbox.idle = True")
        writer.line("yield parked")
        writer.line("continue")


def _write_shared_take(writer: Writer, receipt: Receipt) -> None:
    """Write the same for an inbox that threads put into: nothing is awaited under its lock."""
    with held(writer, receipt):
        write_take(writer, receipt, "if", paced="left -= 1")
    with writer.block("if message is None"):
        with writer.block("if inbox.over"):
            writer.line("return")
        with writer.block("if inbox.sleeps()"):
            writer.line("yield parked")
        writer.line("continue")
