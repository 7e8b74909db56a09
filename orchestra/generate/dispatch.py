"""The dispatch of an Actor: which method gets a message, and whether anything has to be awaited.

An Actor whose `on_signal` and handlers are all plain functions is served by `work`, a function that
handles up to a budget of messages and returns what is left of it. Otherwise it is served by `serve`,
a coroutine that parks when there is nothing to take.
"""

from collections.abc import Iterable

from orchestra.generate.names import kind_name
from orchestra.generate.receiving import (
    Receipt,
    write_lanes,
    write_nonlocal,
    write_open,
    write_take,
    write_taken,
)
from orchestra.generate.writer import Writer
from orchestra.plan import HandlerPlan, SubsystemPlan


def is_synchronous(subsystem: SubsystemPlan) -> bool:
    """Whether no hook that is called for a message or a signal has to be awaited."""
    return not subsystem.hooks.get("on_signal", False) and not any(
        handler.is_async for handler in subsystem.handlers
    )


def write_worker(writer: Writer, subsystem: SubsystemPlan, receipt: Receipt, function: str) -> None:
    """Write a function that makes what serves one Actor: `work` or `serve`."""
    synchronous = is_synchronous(subsystem)
    with writer.block(f"def {function}(inbox, ctx, actor, part)"):
        how = "straight from the ready-queue" if synchronous else "as a coroutine that parks"
        writer.line(f'"""How {subsystem.name} is served: {how}."""')
        for method in dict.fromkeys(handler.method for handler in subsystem.handlers):
            writer.line(f"{method} = actor.{method}")
        if "on_signal" in subsystem.hooks:
            writer.line("on_signal = actor.on_signal")
        if not synchronous:
            writer.line("park = inbox.park")
        write_lanes(writer, receipt)
        writer.line()
        if synchronous:
            _write_work(writer, subsystem, receipt)
        else:
            _write_serve(writer, subsystem, receipt)
        write_taken(writer, receipt)
        writer.line()
        writer.line(f"return {'work' if synchronous else 'serve'}, taken")


def _write_work(writer: Writer, subsystem: SubsystemPlan, receipt: Receipt) -> None:
    with writer.block("def work(budget)"):
        write_nonlocal(writer, receipt)
        writer.line("message = None")
        with writer.block("try"):
            with writer.block("while budget > 0"):
                with writer.block("if signals"):
                    _write_signal(writer, subsystem)
                write_take(writer, receipt, "if")
                with writer.block("elif inbox.over"):
                    writer.line("return part.served()")
                with writer.block("else"):
                    writer.line("inbox.idle = True")
                    writer.line("return budget")
                write_open(writer, receipt)
                writer.line("budget -= 1")
                _write_choice(writer, subsystem.handlers, subsystem.name)
        with writer.block("except BaseException as error"):
            writer.line("return part.broke(error, message)")
        writer.line("part.again()")
        writer.line("return 0")


def _write_serve(writer: Writer, subsystem: SubsystemPlan, receipt: Receipt) -> None:
    with writer.block("async def serve()"):
        write_nonlocal(writer, receipt)
        writer.line("message = None")
        writer.line("left = 64")
        with writer.block("try"):
            with writer.block("while True"):
                with writer.block("if signals"):
                    _write_signal(writer, subsystem)
                with writer.block("if not left"):
                    writer.line("left = await inbox.breathe()")
                write_take(writer, receipt, "if")
                with writer.block("elif inbox.over"):
                    writer.line("return")
                with writer.block("else"):
                    writer.line("inbox.idle = True")
                    writer.line("await park")
                    writer.line("continue")
                writer.line("left -= 1")
                write_open(writer, receipt)
                _write_choice(writer, subsystem.handlers, subsystem.name)
                writer.line("message = None")
        with writer.block("except BaseException"):
            writer.line("inbox.current = message")
            writer.line("raise")


def _write_signal(writer: Writer, subsystem: SubsystemPlan) -> None:
    hook = subsystem.hooks.get("on_signal")
    if hook is None:
        writer.line("inbox.take_signal()")
        writer.line("continue")
        return
    writer.line("message = None")
    writer.line("signal = inbox.take_signal()")
    with writer.block("if signal is not None"):
        writer.line(f"{'await ' if hook else ''}on_signal(ctx, signal)")
    writer.line("continue")


def _write_choice(writer: Writer, handlers: Iterable[HandlerPlan], name: str) -> None:
    handlers = tuple(handlers)
    if not handlers:
        writer.line(f"raise AssertionError({f'{name!r} consumes nothing'!r})")
        return
    methods = {handler.method for handler in handlers}
    if len(methods) == 1:
        writer.line(_call(handlers[0], handlers[0].method))
        return
    writer.line("kind = message.__class__")
    for position, handler in enumerate(handlers):
        kind = _class_of(handler)
        test = writer.bind(kind, kind_name(kind))
        with writer.block(f"{'if' if position == 0 else 'elif'} kind is {test}"):
            writer.line(_call(handler, handler.method))
    with writer.block("else"):
        anyhow = any(handler.is_async for handler in handlers)
        writer.line("await part.handle_other_async(message)" if anyhow else "part.handle_other(message)")


def _class_of(handler: HandlerPlan) -> type:
    kind: type = getattr(handler.message, "__origin__", handler.message)
    return kind


def _call(handler: HandlerPlan, method: str) -> str:
    return f"{'await ' if handler.is_async else ''}{method}(ctx, message)"
