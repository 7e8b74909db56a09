"""Where the parts of an orchestra meet, told in a few plain arguments. Pure: nothing is opened here."""

import math
import re
import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from orchestra.link.strangers import Tls, User, access_control

if TYPE_CHECKING:
    from orchestra.link.session import Session

LEASE: Final = 2.0
"""Seconds after which a process that shows no life is taken for gone."""

PATIENCE: Final = 30.0
"""Seconds that a start waits for the process that listens."""

_ENDPOINT = re.compile(r"(?P<protocol>tcp|tls)/(?P<host>[^\s/?#:\[\]]+|\[[0-9a-fA-F:.]+\]):(?P<port>\d{1,5})")
_NO_CHUNK = frozenset("/*$?#@")
_BUFFER = 32768
_URGENT, _BULK = "prio=1-4", "prio=5-7"


def _texts(value: Any) -> Any:
    return tuple(value) if isinstance(value, Iterable) and not isinstance(value, str | bytes) else value


def _are_endpoints(link: "ZenohLink", attribute: "attrs.Attribute[Any]", value: Any) -> None:
    if not isinstance(value, tuple):
        raise TypeError(f"{attribute.name} is {value!r}: give a list, such as ['tcp/127.0.0.1:7447']")
    for each in value:
        if not isinstance(each, str) or not _is_endpoint(each):
            raise ValueError(
                f"{attribute.name} has {each!r}: write PROTOCOL/HOST:PORT with tcp or tls, "
                "such as 'tcp/127.0.0.1:7447'"
            )


def _is_endpoint(text: str) -> bool:
    found = _ENDPOINT.fullmatch(text)
    return found is not None and 0 < int(found["port"]) < 65536


def _is_chunk(link: "ZenohLink", attribute: "attrs.Attribute[Any]", value: Any) -> None:
    if value is None:
        return
    if not isinstance(value, str) or not value.isprintable() or not value or _NO_CHUNK & set(value):
        raise ValueError(
            f"{attribute.name} is {value!r}: give a text without / * $ ? # @ and line ends, or None"
        )


def _is_span(link: "ZenohLink", attribute: "attrs.Attribute[Any]", value: Any) -> None:
    numeric = isinstance(value, int | float) and not isinstance(value, bool)
    least = 0.1 if attribute.name == "lease" else 0.0
    most = 3600.0 if attribute.name == "lease" else math.inf
    if not numeric or not least <= value <= most:
        limits = f"from {least:g} to {most:g}" if most < math.inf else f"of {least:g} or more"
        raise ValueError(f"{attribute.name} is {value!r}: give a number of seconds {limits}")


def _are_guests(link: "ZenohLink", attribute: "attrs.Attribute[Any]", value: Any) -> None:
    if not isinstance(value, tuple):
        raise TypeError("allow takes a list of names of certificates, and of User(name, password)")
    for each in value:
        if not isinstance(each, str | User) or not each:
            raise TypeError(
                f"allow has {each!r}: give the common name of a certificate, or User(name, password)"
            )


@attrs.frozen(kw_only=True)
class ZenohLink:
    """How this process reaches the other parts of its orchestra: `start(app, link=ZenohLink(...))`.

    One process listens and the others connect to it; what goes from one to another of these goes through it.
    Endpoints are `tcp/HOST:PORT` or `tls/HOST:PORT`. Nobody is looked for on the network.

    `name` is that of this process, and must be another in each; by default it is made of what it hosts.
    `app` separates orchestras that meet at one place; by default it is the name of the class. A process that
    freezes is taken for gone after `lease` seconds; one that ends is noticed at once. A process that only
    connects waits up to `patience` seconds at its start for the one that listens.

    Strangers stay out by `tls` (each side shows a certificate), `user` (name and password, which the one
    that listens must know) and `allow`, which the one that listens has: the common names of certificates, and
    users with their passwords, that may take part; all others are denied everything. Without `allow`, `user`
    at the one that listens is the one user that it lets in.

    Raises TypeError and ValueError that name the argument and say what would be right.
    """

    listen: Sequence[str] = attrs.field(default=(), converter=_texts, validator=_are_endpoints)
    connect: Sequence[str] = attrs.field(default=(), converter=_texts, validator=_are_endpoints)
    name: str | None = attrs.field(default=None, validator=_is_chunk)
    app: str | None = attrs.field(default=None, validator=_is_chunk)
    tls: Tls | None = attrs.field(default=None)
    user: User | None = attrs.field(default=None)
    allow: Sequence[str | User] = attrs.field(default=(), converter=_texts, validator=_are_guests)
    lease: float = attrs.field(default=LEASE, validator=_is_span)
    patience: float = attrs.field(default=PATIENCE, validator=_is_span)

    def __attrs_post_init__(self) -> None:
        if not self.listen and not self.connect:
            raise ValueError(
                "a ZenohLink needs listen=['tcp/HOST:PORT'] in the process that the others connect to, "
                "and connect=['tcp/HOST:PORT'] in the others"
            )
        if self.tls is not None and not isinstance(self.tls, Tls):
            raise TypeError(f"tls is {self.tls!r}: give Tls(ca=..., certificate=..., key=...)")
        if self.user is not None and not isinstance(self.user, User):
            raise TypeError("user is no User: give User(name, password)")
        self._check_protocols()
        self._check_allow()

    def _check_protocols(self) -> None:
        protocol = "tcp" if self.tls is None else "tls"
        for each in (*self.listen, *self.connect):
            if not each.startswith(f"{protocol}/"):
                why = "needs tls=Tls(...)" if self.tls is None else "is not protected, and tls= is given"
                right = each if self.tls is None else f"tls/{each.partition('/')[2]}"
                raise ValueError(f"the endpoint {each!r} {why}" + (f": write {right!r}" if self.tls else ""))

    def _check_allow(self) -> None:
        if self.allow and not self.listen:
            raise ValueError("allow tells who may connect to this process, and it has no listen=[...]")
        if self.tls is None and any(isinstance(each, str) for each in self.allow):
            raise ValueError("allow has names of certificates, and without tls=Tls(...) nobody shows one")
        names = [user.name for user in self.users]
        if len(set(names)) < len(names):
            raise ValueError("allow and user have two passwords for one name of a user")

    def open(self, given_up: threading.Event, app: str | None = None) -> "Session":
        """Open a session, for what is said under the name `app`; see `Session.open`. `start` does it."""
        from orchestra.link.session import Session

        return Session.open(attrs.evolve(self, app=app or self.app), given_up)

    @property
    def mode(self) -> str:
        """Zenoh's name for what this process is: one that listens passes on what others send each other."""
        return "router" if self.listen else "client"

    @property
    def users(self) -> tuple[User, ...]:
        """Those whose passwords this process knows, without repetition."""
        own = () if self.user is None else (self.user,)
        return tuple(dict.fromkeys((*own, *(each for each in self.allow if isinstance(each, User)))))

    @property
    def keys(self) -> str:
        """All that this orchestra says, as a key expression."""
        return f"orchestra/{self.app or '*'}/**"

    def config(self) -> dict[str, object]:
        """The configuration of Zenoh: its keys, and plain values for them.

        What is not in it: the file of the users that are let in, which is made when the session is opened.
        """
        return {
            "mode": self.mode,
            "listen/endpoints": list(self.listen),
            "connect/endpoints": [self._split(each) for each in self.connect],
            "connect/exit_on_failure": not self.listen,
            "connect/retry": {"period_init_ms": 100, "period_max_ms": 500, "period_increase_factor": 2.0},
            "scouting/multicast/enabled": False,
            "scouting/delay": 0,
            "timestamping/enabled": False,
            "transport/shared_memory/enabled": False,
            "transport/unicast/max_links": 2,
            "transport/unicast/open_timeout": 5000,
            "transport/unicast/accept_timeout": 5000,
            "transport/link/protocols": ["tcp" if self.tls is None else "tls"],
            "transport/link/tx/lease": round(self.lease * 1000),
            "transport/link/tx/queue/congestion_control/block/wait_before_close": round(self.lease * 1e6),
            "transport/link/tcp/so_sndbuf": _BUFFER,
            "transport/link/tcp/so_rcvbuf": _BUFFER,
            "transport/link/tls/so_sndbuf": _BUFFER,
            "transport/link/tls/so_rcvbuf": _BUFFER,
            **({} if self.tls is None else self.tls.config()),
            **self._user(),
            **(access_control(self.keys, self.allow) if self.allow else {}),
        }

    @staticmethod
    def _split(endpoint: str) -> object:
        """One endpoint as two links: what is urgent never stands behind bulk in a buffer of the system."""
        return {"strategy": "allOf", "locators": [f"{endpoint}?{_URGENT}", f"{endpoint}?{_BULK}"]}

    def _user(self) -> dict[str, object]:
        if self.user is None:
            return {}
        at = "transport/auth/usrpwd/"
        return {f"{at}user": self.user.name, f"{at}password": self.user.password}
