"""Whatever is declared: each message has one route, and the spelling of unions does not matter."""

import typing
from typing import Any, Union

from hypothesis import given, settings
from hypothesis import strategies as st

from orchestra import Actor, DeclarationError, orchestra, plan_of, subsystem
from orchestra.plan import Plan


class Sig: ...


class M0: ...


class M1(M0): ...


class M2(M1): ...


class M3: ...


class M4(M3): ...


class M5(M1, M3): ...


KINDS = (M0, M1, M2, M3, M4, M5)


class Taker(Actor):
    def handle(self, ctx: Any, message: Any) -> None: ...


kinds = st.sampled_from(KINDS)
roles = st.fixed_dictionaries({kind: st.sampled_from(["none", "out", 0, 1, 2, "all"]) for kind in KINDS})
sends = st.lists(st.lists(kinds, max_size=4, unique=True), min_size=3, max_size=3)


def flat(chosen: list[type]) -> Any:
    return Union[tuple(chosen)] if chosen else typing.Never


def nested(chosen: list[type]) -> Any:
    """The same union, written with bars from the right, with one of them twice."""
    if not chosen:
        return typing.NoReturn
    made: Any = chosen[-1]
    for kind in reversed(chosen):
        made = Union[kind, typing.Annotated[made, "note"]]
    return made


def declared(roles: dict[type, Any], sends: list[list[type]], spell: Any) -> Plan | str:
    """The plan of a declaration, or the text that refuses it."""
    everyone = [kind for kind, role in roles.items() if role == "all"]
    outgoing = [kind for kind, role in roles.items() if role == "out"]
    consumes = [[kind for kind, role in roles.items() if role == n] for n in range(3)]

    def field(n: int) -> Any:
        return subsystem(
            consumes=spell(consumes[n]),
            sends=[spell(sends[n])],
            subscribes=[spell(everyone)] if n < 2 else (),
        )

    try:

        @orchestra(signal=Sig, event=Sig, outgoing=spell(outgoing) if outgoing else None)
        class App:
            first: Taker = field(0)
            second: Taker = field(1)
            third: Taker = field(2)

            async def on_event(self, conductor: Any, event: Any) -> None: ...

    except DeclarationError as error:
        return str(error).rpartition(", at ")[0]
    return plan_of(App)


@settings(max_examples=60, deadline=None)
@given(roles, sends)
def test_each_message_has_one_route_by_its_nearest_received_base(
    roles: dict[type, Any], sends: list[list[type]]
) -> None:
    plan = declared(roles, sends, flat)
    received = [kind for kind, role in roles.items() if role != "none"]
    sent = {kind for each in sends for kind in each}
    lost = [
        kind
        for kind in sent
        if not any(issubclass(kind, each) or issubclass(each, kind) for each in received)
    ]
    assert isinstance(plan, str) == bool(lost)
    if isinstance(plan, str):
        assert "which nobody receives" in plan
        return
    assert set(plan.routes) == set(received)
    assert set(plan.messages) == set(received) | sent
    for kind in KINDS:
        nearest = next((base for base in kind.__mro__ if base in received), None)
        route = plan.route_of(kind)
        assert (route.kind if route else None) is nearest
        if nearest is None or route is None:
            continue
        role = roles[nearest]
        names = {"out": (), "all": ("first", "second")}.get(role, ())
        assert route.receivers == (names if isinstance(role, str) else (("first", "second", "third")[role],))
        assert route.outgoing is (role == "out")


@settings(max_examples=60, deadline=None)
@given(roles, sends)
def test_senders_are_all_that_reach_a_subsystem_by_a_type_in_line_with_a_declared_one(
    roles: dict[type, Any], sends: list[list[type]]
) -> None:
    # A class with two bases may be sent as the one and routed by the other (M5 as M3, to who consumes
    # M1). Subclasses are unknown at decoration, so such a sender is not listed.
    plan = declared(roles, sends, flat)
    if isinstance(plan, str):
        return
    names = ("first", "second", "third")
    for receiver in names:
        for sender, chosen in zip(names, sends, strict=True):
            reaching = [
                kind
                for kind in KINDS
                if (route := plan.route_of(kind)) is not None
                and receiver in route.receivers
                and any(
                    issubclass(kind, each) and (issubclass(route.kind, each) or issubclass(each, route.kind))
                    for each in chosen
                )
            ]
            if reaching:
                assert sender in plan.subsystems[receiver].senders


@settings(max_examples=60, deadline=None)
@given(roles, sends)
def test_the_spelling_of_a_union_does_not_matter(roles: dict[type, Any], sends: list[list[type]]) -> None:
    plain, other = declared(roles, sends, flat), declared(roles, sends, nested)
    if isinstance(plain, str) or isinstance(other, str):
        assert plain == other
        return
    for name, each in plain.subsystems.items():
        assert set(other.subsystems[name].consumes) == set(each.consumes)
        assert other.subsystems[name].senders == each.senders
    assert dict(plain.routes) == dict(other.routes)
    assert set(plain.messages) == set(other.messages)
