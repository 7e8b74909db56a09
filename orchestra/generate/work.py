"""The step of an Actor whose hooks and handlers are all plain functions.

It handles up to a budget of messages and returns how many more than one. For one lane, into which no thread
puts, there are two functions: `work` handles the one message that has come, as where single messages go to
and fro, and leaves anything else to `batch`. Nobody else runs meanwhile, and what a handler does to the inbox
that concerns them, the inbox tells: by its `alert`, and by cutting the course of the batch short. What `work`
seldom needs is found in the inbox: each name that a function has from around it costs time at every call.
"""

from orchestra.generate.handling import Handling
from orchestra.generate.receiving import (
    Receipt,
    held,
    write_count,
    write_nonlocal,
    write_open,
    write_relief,
    write_take,
)
from orchestra.overflow import Block
from orchestra.source import Writer


def write_work(writer: Writer, handling: Handling, receipt: Receipt) -> None:
    """Write `work`."""
    if receipt.sole and not receipt.shared:
        _write_single(writer, handling, receipt)
        writer.line()
        _write_batch(writer, handling, receipt)
        writer.line()
        writer.line("inbox.batch, inbox.broke = batch, part.broke")
    else:
        _write_any(writer, handling, receipt)


def _write_single(writer: Writer, handling: Handling, receipt: Receipt) -> None:
    (name,) = receipt.names
    with writer.block("def work()"):
        write_nonlocal(writer, receipt)
        with writer.block(f"if inbox.alert or len({name}_queue) != 1"):
            writer.line("return inbox.batch()")
        writer.line(f"message = {name}_queue.popleft()")
        writer.line(f"{name}_taken += 1")
        with writer.block("try"):
            write_open(writer, receipt)
            handling.write_message(writer)
        with writer.block("except BaseException as error"):
            writer.line("return inbox.broke(error, message)")
        with writer.block(f"if inbox.alert or {name}_queue"):
            writer.line("return inbox.batch() + 1")
        writer.line("inbox.idle = True")
        writer.line("return 0")


def _write_batch(writer: Writer, handling: Handling, receipt: Receipt) -> None:
    (name,) = receipt.names
    (lane,) = receipt.lanes
    with writer.block("def batch()"):
        write_nonlocal(writer, receipt)
        writer.line("message, count = None, 0")
        writer.line("budget = whole = inbox.scheduler.left() + 1")
        with writer.block("try"):
            with writer.block("while True"):
                handling.write_signals_first(writer)
                with writer.block(f"if not {name}_queue"):
                    writer.line("break")
                _write_more(writer)
                with writer.block(f"for count in inbox.course(budget, len({name}_queue))"):
                    writer.line(f"message = {name}_queue.popleft()")
                    if not isinstance(lane.overflow, Block):
                        with writer.block(f"if {name}.pressed"):
                            writer.line(f"{name}.relieve()")
                    write_open(writer, receipt)
                    handling.write_message(writer)
                writer.line(f"{name}_taken += count")
                writer.line("budget -= count")
                writer.line("count = 0")
        with writer.block("except BaseException as error"):
            writer.line(f"{name}_taken += count")
            writer.line("return part.broke(error, message)")
        with writer.block("if inbox.alert"):
            writer.line("inbox.attend()")
        with writer.block(f"if signals or {name}_queue"):
            writer.line("part.again()")
        with writer.block("elif inbox.over"):
            writer.line("part.served()")
        with writer.block("else"):
            writer.line("inbox.idle = True")
        writer.line("return whole - budget - 1")


def _write_any(writer: Writer, handling: Handling, receipt: Receipt) -> None:
    """Write the step for several lanes, or for an inbox that threads put into."""
    with writer.block("def work()"):
        write_nonlocal(writer, receipt)
        writer.line("budget = whole = inbox.scheduler.left() + 1")
        write_count(writer, receipt, begin=True)
        with writer.block("try"):
            with writer.block("while budget" if receipt.shared else "while True"):
                if not receipt.shared:
                    _write_more(writer)
                handling.write_signals_first(writer)
                with held(writer, receipt):
                    write_take(writer, receipt, "if", batch=True, paced="budget -= 1")
                    with writer.block("else"):
                        writer.line("break")
                write_open(writer, receipt)
                handling.write_message(writer)
        with writer.block("except BaseException as error"):
            write_count(writer, receipt, begin=False)
            writer.line("return part.broke(error, message)")
        write_count(writer, receipt, begin=False)
        write_relief(writer, receipt)
        with writer.block(f"if {_more_to_do(receipt)}"):
            writer.line("part.again()")
        with writer.block("elif inbox.over"):
            writer.line("part.served()")
        if receipt.shared:
            with writer.block("elif not inbox.sleeps()"):
                writer.line("part.again()")
        else:
            with writer.block("else"):
                writer.line("inbox.idle = True")
        writer.line("return whole - budget - 1")


def _more_to_do(receipt: Receipt) -> str:
    """The condition under which there is more to do; who hears of the relief may have sent something."""
    if receipt.shared or receipt.fairness is not None:
        return "not budget"
    return " or ".join(["signals", *(f"{name}_queue" for name in receipt.names)])


def _write_more(writer: Writer) -> None:
    """Write going on after a batch while nobody else is ready. Threads that wait are let in after each."""
    with writer.block("if not budget"):
        writer.line("budget = inbox.more()")
        with writer.block("if not budget"):
            writer.line("break")
