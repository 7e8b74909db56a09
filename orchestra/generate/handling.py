"""Handling in generated code: the methods of an Actor, and which of them gets a message or a signal."""

from collections.abc import Iterable, Mapping

import attrs

from orchestra.generate.coroutines import as_coroutine
from orchestra.generate.names import kind_name
from orchestra.generate.outbox import FEW
from orchestra.messages import class_of
from orchestra.plan import HandlerPlan, SubsystemPlan
from orchestra.source import Writer
from orchestra.timer import Deadline

HOOKS = ("on_signal", "deadline_passed")
"""The hooks that are called while messages are served."""


@attrs.frozen
class Handling:
    """What an Actor does with what comes: its methods, each with its local name in the generated function."""

    subsystem: SubsystemPlan
    methods: Mapping[str, str]

    @classmethod
    def written(cls, writer: Writer, subsystem: SubsystemPlan, *, coroutines: bool = False) -> "Handling":
        """Write the local names of the methods; of asynchronous ones as generators, where `coroutines`."""
        names = writer.names.nested()
        methods = {method: names.unique(method) for method in _methods(subsystem)}
        hooks = {hook: hook for hook in HOOKS if hook in subsystem.hooks}
        awaited = {handler.method for handler in subsystem.handlers if handler.is_async}
        awaited |= {hook for hook in hooks if subsystem.hooks[hook]}
        for method, name in (methods | hooks).items():
            made = f"actor.{method}"
            if coroutines and method in awaited:
                made = f"{writer.bind(as_coroutine, 'as_coroutine')}({made})"
            writer.line(f"{name} = {made}")
        handling = cls(subsystem, methods)
        if handling.looked_up:
            handling._write_table(writer)
        return handling

    @property
    def looked_up(self) -> bool:
        """Whether the method for a message is found in a dict: where there are many, and all alike."""
        handlers = self.subsystem.handlers
        return len(handlers) > FEW and not any(handler.is_async for handler in handlers)

    def _write_table(self, writer: Writer) -> None:
        writer.line("find = {")
        for handler in self.subsystem.handlers:
            kind = class_of(handler.message)
            writer.line(f"    {writer.bind(kind, kind_name(kind))}: {self.methods[handler.method]},")
        writer.line("}.get")

    def write_message(self, writer: Writer) -> None:
        """Write the call of the method for the message, told by its class where there are several."""
        handlers = self.subsystem.handlers
        if not handlers:
            writer.line(f"raise AssertionError({f'{self.subsystem.name} consumes nothing'!r})")
        elif len(self.methods) == 1:
            writer.line(self._call(handlers[0]))
        elif self.looked_up:
            writer.line("(find(message.__class__) or part.handle_other)(ctx, message)")
        else:
            self._write_chain(writer)

    def _write_chain(self, writer: Writer) -> None:
        handlers = self.subsystem.handlers
        writer.line("kind = message.__class__")
        for position, handler in enumerate(handlers):
            kind = class_of(handler.message)
            test = writer.bind(kind, kind_name(kind))
            with writer.block(f"{'if' if position == 0 else 'elif'} kind is {test}"):
                writer.line(self._call(handler))
        with writer.block("else"):
            anyhow = any(handler.is_async for handler in handlers)
            other = "yield from part.handle_other_async" if anyhow else "part.handle_other"
            writer.line(f"{other}(ctx, message)")

    def write_signals_first(self, writer: Writer) -> None:
        """Write that signals go before messages: at the beginning of a loop, one of them in a round."""
        with writer.block("if signals"):
            writer.line("message = None")
            self.write_signal(writer)
            writer.line("continue")

    def write_signal(self, writer: Writer) -> None:
        """Write the taking of a signal or of a passed deadline, and the call of the hook for it."""
        hooks = [hook for hook in HOOKS if hook in self.subsystem.hooks]
        if not hooks:
            writer.line("inbox.take_signal()")
            return
        writer.line("signal = inbox.take_signal()")
        first = "if"
        if "deadline_passed" in hooks:
            with writer.block(f"if signal.__class__ is {writer.bind(Deadline, 'Deadline')}"):
                writer.line(self._call_hook("deadline_passed", "signal.when"))
            first = "elif"
        if "on_signal" in hooks:
            with writer.block(f"{first} signal is not None"):
                writer.line(self._call_hook("on_signal", "signal"))

    def _call_hook(self, hook: str, given: str) -> str:
        return f"{'yield from ' if self.subsystem.hooks[hook] else ''}{hook}(ctx, {given})"

    def _call(self, handler: HandlerPlan) -> str:
        return f"{'yield from ' if handler.is_async else ''}{self.methods[handler.method]}(ctx, message)"


def is_synchronous(subsystem: SubsystemPlan) -> bool:
    """Whether no hook that is called for a message, a signal or a deadline has to be awaited."""
    return not any(subsystem.hooks.get(hook, False) for hook in HOOKS) and not any(
        handler.is_async for handler in subsystem.handlers
    )


def _methods(subsystem: SubsystemPlan) -> Iterable[str]:
    return dict.fromkeys(handler.method for handler in subsystem.handlers)
