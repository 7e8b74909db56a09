"""The receiving side of a `run` that lives in a thread of its own.

Signals and messages are looked at under one lock: so no message is seen before a signal that its sender had
seen.
"""

from orchestra.generate.outbox import write_home
from orchestra.generate.receiving import (
    Receipt,
    told,
    write_lanes,
    write_nonlocal,
    write_open,
    write_take,
    write_taken,
)
from orchestra.generate.writer import Writer


def write_thread_receiver(writer: Writer, receipt: Receipt, function: str) -> None:
    """Write a function that makes the receiving verbs: as `write_receiver`, but they sleep.

    `following` is what a plain `for` calls.
    """
    with writer.block(f"def {function}(inbox)"):
        writer.line(f'"""How {receipt.name} receives in its thread: signals, then {told(receipt)}."""')
        writer.line("home = inbox.home")
        write_lanes(writer, receipt)
        _write_recv(writer, receipt)
        _write_following(writer)
        _write_try_recv(writer, receipt)
        writer.line()
        with writer.block("def recv_signal()"):
            write_home(writer)
            with writer.block("while not signals"):
                writer.line("inbox.sleep_for_signal()")
            writer.line("return inbox.take_signal()")
        write_taken(writer, receipt)
        writer.line()
        writer.line("return recv, try_recv, recv_signal, following, taken")


def _write_recv(writer: Writer, receipt: Receipt) -> None:
    writer.line()
    with writer.block("def recv()"):
        write_nonlocal(writer, receipt)
        write_home(writer)
        with writer.block("while True"):
            with writer.block("with lock"):
                with writer.block("if not signals"):
                    write_take(writer, receipt, "if", then="break")
            with writer.block("if signals"):
                writer.line("return inbox.take_signal()")
            writer.line("inbox.sleep_or_close()")
        _write_end(writer, receipt)


def _write_try_recv(writer: Writer, receipt: Receipt) -> None:
    writer.line()
    with writer.block("def try_recv()"):
        write_nonlocal(writer, receipt)
        write_home(writer)
        writer.line("message = None")
        with writer.block("with lock"):
            with writer.block("if not signals"):
                write_take(writer, receipt, "if")
        with writer.block("if message is None"):
            writer.line("return inbox.take_signal() if signals else inbox.nothing()")
        _write_end(writer, receipt)


def _write_end(writer: Writer, receipt: Receipt) -> None:
    write_open(writer, receipt)
    writer.line("inbox.current = message")
    writer.line("return message")


def _write_following(writer: Writer) -> None:
    writer.line()
    with writer.block("def following()"):
        with writer.block("try"):
            writer.line("return recv()")
        with writer.block("except Closed"):
            writer.line("raise StopIteration from None")
