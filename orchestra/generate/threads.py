"""Taking messages in the thread of a blocking subsystem.

A message is looked for before signals are: one that is there already was sent before any signal that comes
after that look. So no message is taken before a signal that its sender had seen, without a lock.
"""

from orchestra.generate.outbox import write_home
from orchestra.generate.receiving import (
    Receipt,
    held,
    told,
    write_lanes,
    write_nonlocal,
    write_open,
    write_take,
    write_taken,
)
from orchestra.source import Writer


def write_thread_take(writer: Writer, receipt: Receipt) -> None:
    """Write the taking of a message if there is one, and no signal: `message` is None otherwise."""
    writer.line("message = None")
    if receipt.locked:
        with held(writer, receipt):
            write_take(writer, receipt, "if", unless=" and not signals")
        return
    with writer.block("try"):
        write_take(writer, receipt, "if", unless=" and not signals")
    with writer.block("except IndexError"):
        writer.line("continue  # a stop has taken it away")


def write_thread_receiver(writer: Writer, receipt: Receipt, function: str) -> None:
    """Write a function that makes the receiving verbs: as `write_receiver`, but they sleep.

    `following` is what a plain `for` calls; that the thread is the right one was asked when it began.
    """
    with writer.block(f"def {function}(inbox)"):
        writer.line(f'"""How {receipt.name} receives in its thread: signals, then {told(receipt)}."""')
        writer.line("home = inbox.home")
        write_lanes(writer, receipt)
        _write_following(writer, receipt)
        _write_recv(writer)
        _write_try_recv(writer)
        writer.line()
        with writer.block("def recv_signal()"):
            write_home(writer)
            with writer.block("while not signals"):
                writer.line("inbox.sleep_for_signal()")
            writer.line("return inbox.take_signal()")
        write_taken(writer, receipt)
        writer.line()
        writer.line("return recv, try_recv, recv_signal, following, taken")


def _write_following(writer: Writer, receipt: Receipt) -> None:
    writer.line()
    with writer.block("def following(wait=True)"):
        write_nonlocal(writer, receipt)
        with writer.block("while True"):
            write_thread_take(writer, receipt)
            with writer.block("if message is not None"):
                write_open(writer, receipt)
                writer.line("inbox.current = message")
                writer.line("return message")
            with writer.block("if signals"):
                writer.line("return inbox.take_signal()")
            with writer.block("if not wait"):
                writer.line("return inbox.nothing()")
            with writer.block("if not inbox.sleep()"):
                writer.line("raise StopIteration")


def _write_recv(writer: Writer) -> None:
    writer.line()
    with writer.block("def recv()"):
        write_home(writer)
        with writer.block("try"):
            writer.line("return following()")
        with writer.block("except StopIteration"):
            writer.line("return inbox.tell_end()")


def _write_try_recv(writer: Writer) -> None:
    writer.line()
    with writer.block("def try_recv()"):
        write_home(writer)
        writer.line("return following(wait=False)")
