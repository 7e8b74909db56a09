"""The dispatch of an Actor: which method gets a message, and whether anything has to be awaited.

An Actor whose `on_signal`, `deadline_passed` and handlers are all plain functions is served by `work`, a
function that handles up to a budget of messages and returns what is left of it. Otherwise it is served by
`serve`, a coroutine that parks when there is nothing to take. It is a generator: to yield costs a quarter of
what an `await` does.
"""

import types
from collections.abc import Iterable, Mapping

from orchestra.generate.coroutines import as_coroutine
from orchestra.generate.names import kind_name
from orchestra.generate.receiving import (
    Receipt,
    held,
    write_count,
    write_lanes,
    write_nonlocal,
    write_open,
    write_pacing,
    write_pause,
    write_relief,
    write_take,
    write_taken,
)
from orchestra.generate.threads import write_thread_take
from orchestra.generate.writer import Writer
from orchestra.messages import class_of
from orchestra.plan import HandlerPlan, SubsystemPlan
from orchestra.timer import Deadline

Methods = Mapping[str, str]
"""The handlers of an Actor, each with its local name in the generated function."""

_HOOKS = ("on_signal", "deadline_passed")
"""The hooks that are called while messages are served."""


def is_synchronous(subsystem: SubsystemPlan) -> bool:
    """Whether no hook that is called for a message, a signal or a deadline has to be awaited."""
    return not any(subsystem.hooks.get(hook, False) for hook in _HOOKS) and not any(
        handler.is_async for handler in subsystem.handlers
    )


def write_thread_worker(writer: Writer, subsystem: SubsystemPlan, receipt: Receipt, function: str) -> None:
    """Write a function that makes `serve` for an Actor in a thread of its own."""
    with writer.block(f"def {function}(inbox, ctx, actor, part)"):
        writer.line(f'"""How {subsystem.name} is served: in a thread of its own."""')
        methods = _write_methods(writer, subsystem)
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
                        _write_choice(writer, subsystem, methods)
                    with writer.block("elif signals"):
                        _write_hook(writer, subsystem)
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
        methods = _write_methods(writer, subsystem, coroutines=not synchronous)
        if not synchronous:
            writer.line("parked = inbox.PARKED")
        write_lanes(writer, receipt, paced=not synchronous)
        if not synchronous:
            write_pacing(writer, receipt)
        writer.line()
        if synchronous:
            _write_work(writer, subsystem, receipt, methods)
        else:
            _write_serve(writer, subsystem, receipt, methods)
        write_taken(writer, receipt, paced=not synchronous)
        writer.line()
        writer.line(f"return {'work' if synchronous else 'serve'}, taken")


def _write_methods(writer: Writer, subsystem: SubsystemPlan, *, coroutines: bool = False) -> Methods:
    names = writer.names.nested()
    methods = {method: names.unique(method) for method in _methods(subsystem)}
    hooks = {hook: hook for hook in _HOOKS if hook in subsystem.hooks}
    awaited = {handler.method for handler in subsystem.handlers if handler.is_async}
    awaited |= {hook for hook in hooks if subsystem.hooks[hook]}
    for method, name in (methods | hooks).items():
        made = f"actor.{method}"
        if coroutines and method in awaited:
            made = f"{writer.bind(as_coroutine, 'as_coroutine')}({made})"
        writer.line(f"{name} = {made}")
    return methods


def _methods(subsystem: SubsystemPlan) -> Iterable[str]:
    return dict.fromkeys(handler.method for handler in subsystem.handlers)


def _write_work(writer: Writer, subsystem: SubsystemPlan, receipt: Receipt, methods: Methods) -> None:
    with writer.block("def work(budget)"):
        write_nonlocal(writer, receipt)
        write_count(writer, receipt, begin=True)
        with writer.block("try"):
            with writer.block("while budget" if receipt.shared else "while True"):
                if not receipt.shared:
                    _write_more(writer, receipt)
                with writer.block("if signals"):
                    _write_signal(writer, subsystem)
                with held(writer, receipt):
                    write_take(writer, receipt, "if", batch=True, paced="budget -= 1")
                    with writer.block("else"):
                        writer.line("break")
                write_open(writer, receipt)
                _write_choice(writer, subsystem, methods)
        with writer.block("except BaseException as error"):
            write_count(writer, receipt, begin=False)
            writer.line("return part.broke(error, message)")
        write_count(writer, receipt, begin=False)
        write_relief(writer, receipt)
        with writer.block("if not budget"):
            writer.line("part.again()")
        with writer.block("elif inbox.over"):
            writer.line("part.served()")
        if receipt.shared:
            with writer.block("elif not inbox.sleeps()"):
                writer.line("part.again()")
        else:
            with writer.block("else"):
                writer.line("inbox.idle = True")
        writer.line("return budget")


def _write_more(writer: Writer, receipt: Receipt) -> None:
    """Write going on after a batch while nobody else is ready. Threads that wait are let in after each."""
    with writer.block("if not budget"):
        writer.line("budget = inbox.more()")
        with writer.block("if not budget"):
            writer.line("break")
        if receipt.sole:
            writer.line("allowed += budget")


def _write_serve(writer: Writer, subsystem: SubsystemPlan, receipt: Receipt, methods: Methods) -> None:
    writer.line(f"@{writer.bind(types.coroutine, 'coroutine')}")
    with writer.block("def serve()"):
        write_nonlocal(writer, receipt, paced=True)
        writer.line("message = None")
        with writer.block("try"):
            with writer.block("while True"):
                with writer.block("if signals"):
                    _write_signal(writer, subsystem)
                write_pause(writer, receipt, "yield from")
                if receipt.shared:
                    _write_shared_take(writer, receipt)
                else:
                    _write_take_or_park(writer, receipt)
                write_open(writer, receipt)
                _write_choice(writer, subsystem, methods)
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


def _write_signal(writer: Writer, subsystem: SubsystemPlan) -> None:
    writer.line("message = None")
    _write_hook(writer, subsystem)
    writer.line("continue")


def _write_hook(writer: Writer, subsystem: SubsystemPlan) -> None:
    hooks = [hook for hook in _HOOKS if hook in subsystem.hooks]
    if not hooks:
        writer.line("inbox.take_signal()")
        return
    writer.line("signal = inbox.take_signal()")
    first = "if"
    if "deadline_passed" in hooks:
        with writer.block(f"if signal.__class__ is {writer.bind(Deadline, 'Deadline')}"):
            writer.line(_call_hook(subsystem, "deadline_passed", "signal.when"))
        first = "elif"
    if "on_signal" in hooks:
        with writer.block(f"{first} signal is not None"):
            writer.line(_call_hook(subsystem, "on_signal", "signal"))


def _write_choice(writer: Writer, subsystem: SubsystemPlan, methods: Methods) -> None:
    """Write the call of the method that handles the message, told by its class where there are several."""
    handlers = subsystem.handlers
    if not handlers:
        writer.line(f"raise AssertionError({f'{subsystem.name} consumes nothing'!r})")
        return
    if len(methods) == 1:
        writer.line(_call(handlers[0], methods))
        return
    writer.line("kind = message.__class__")
    for position, handler in enumerate(handlers):
        kind = class_of(handler.message)
        test = writer.bind(kind, kind_name(kind))
        with writer.block(f"{'if' if position == 0 else 'elif'} kind is {test}"):
            writer.line(_call(handler, methods))
    with writer.block("else"):
        anyhow = any(handler.is_async for handler in handlers)
        writer.line("yield from part.handle_other_async(message)" if anyhow else "part.handle_other(message)")


def _call_hook(subsystem: SubsystemPlan, hook: str, given: str) -> str:
    return f"{'yield from ' if subsystem.hooks[hook] else ''}{hook}(ctx, {given})"


def _call(handler: HandlerPlan, methods: Methods) -> str:
    return f"{'yield from ' if handler.is_async else ''}{methods[handler.method]}(ctx, message)"
