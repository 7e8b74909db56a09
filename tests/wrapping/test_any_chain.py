"""Whatever wraps whatever: each message passes the methods that walking the chain by hand would find."""

from typing import Any

import attrs
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestra import Actor, Wrapper, handles, orchestra, start, subsystem
from tests.effort import examples
from tests.runtime.clockwork import run
from tests.runtime.players import Bell, Job, Knock, Note, turns


class HotJob(Job, frozen=True): ...


KINDS = (Job, HotJob, Note)
WAYS = ("plain", "async")


@attrs.frozen
class Layer:
    """What one class has: `handle`, or None, and a marked method for some kinds, each plain or async."""

    handle: str | None
    marks: dict[type, str]

    def method_for(self, kind: type) -> str | None:
        """Which of its methods a message of this kind goes to, found as slowly as one likes."""
        for base in kind.__mro__:
            if base in self.marks:
                return f"on_{base.__name__}"
        return "handle" if self.handle else None


marks = st.dictionaries(st.sampled_from(KINDS), st.sampled_from(WAYS))
inner_layers = st.builds(Layer, handle=st.sampled_from(WAYS), marks=marks)
outer_layers = st.builds(Layer, handle=st.sampled_from((None, *WAYS)), marks=marks)


def method(name: str, depth: int, how: str, log: list[Any], *, forwards: bool) -> Any:
    """A method that notes where it is, and passes the message on when it stands in a wrapper."""

    def plain(self: Any, ctx: Any, message: Any) -> Any:
        log.append((depth, name, message))
        return Wrapper.handle(self, ctx, message) if forwards else None

    async def waiting(self: Any, ctx: Any, message: Any) -> None:
        await turns(1)
        log.append((depth, name, message))
        if forwards:
            await Wrapper.handle(self, ctx, message)

    return waiting if how == "async" else plain


def class_of_layer(layer: Layer, depth: int, log: list[Any], *, forwards: bool) -> Any:
    body: dict[str, Any] = {}
    if layer.handle:
        body["handle"] = method("handle", depth, layer.handle, log, forwards=forwards)
    for kind, how in layer.marks.items():
        name = f"on_{kind.__name__}"
        body[name] = handles(kind)(method(name, depth, how, log, forwards=forwards))
    return type(f"Layer{depth}", (Wrapper if forwards else Actor,), body)


def expected(layers: list[Layer], messages: list[Any]) -> list[Any]:
    found = []
    for message in messages:
        for depth, layer in enumerate(layers):
            name = layer.method_for(type(message))
            if name is not None:
                found.append((depth, name, message))
                if depth == len(layers) - 1:
                    break
    return found


@given(
    outer=st.lists(outer_layers, min_size=1, max_size=3),
    inner=inner_layers,
    kinds=st.lists(st.sampled_from(KINDS), max_size=6),
)
@settings(max_examples=examples(150), deadline=None)
def test_each_message_passes_the_outermost_method_of_each_class_in_turn(
    outer: list[Layer], inner: Layer, kinds: list[Any]
) -> None:
    layers = [*outer, inner]
    messages = [kind(n) for n, kind in enumerate(kinds)]
    log: list[Any] = []
    actor = class_of_layer(inner, len(outer), log, forwards=False)()
    for depth, layer in reversed(list(enumerate(outer))):
        actor = class_of_layer(layer, depth, log, forwards=True)(actor)

    @orchestra(signal=Bell, event=Knock)
    class App:
        worker: Actor[Any, Any] = subsystem(consumes=Job | Note)

    async def main() -> None:
        async with start(App(worker=actor)) as running:
            for message in messages:
                await running.send(message)
            await running.drain()

    run(main())
    assert log == expected(layers, messages)
