"""A session of Zenoh: opened with errors that say what is wrong, and always closed.

Nothing else imports Zenoh. It calls back in threads of Python that the interpreter would wait for at its
exit, for ever; so what is still open then is closed by a thread that waits for the end of the main one.
"""

import contextlib
import ctypes
import functools
import json
import os
import re
import socket
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Final

from orchestra.errors import LinkError
from orchestra.link.settings import ZenohLink
from orchestra.link.strangers import dictionary

if TYPE_CHECKING:
    import zenoh

CLOSING: Final = 10.0
"""Seconds that the end of the program gives to what is still open."""

Arrived = Callable[[str, bytes, bytes], object]
Changed = Callable[[str, bool], object]

_open: "weakref.WeakSet[Session]" = weakref.WeakSet()
_lock = threading.Lock()
_guarded = False


class Closer:
    """Ends what was declared; idempotent, also after the session was closed."""

    __slots__ = ("_among", "_declared")

    def __init__(self, declared: Any, among: "set[Any]") -> None:
        self._declared = declared
        self._among = among
        among.add(declared)  # Zenoh ends an announcement that nobody holds

    def close(self) -> None:
        """Returns when nothing more is called back, but for what had begun."""
        self._among.discard(self._declared)
        with contextlib.suppress(_zenoh().ZError):
            self._declared.undeclare()


class Publisher:
    """Puts to one key.

    It is no publisher of Zenoh's: that declares its key as a number over one link, and what is put over
    another one may be there before, and is dropped silently.
    """

    __slots__ = ("_put",)

    def __init__(self, put: Callable[..., object]) -> None:
        self._put = put

    def put(self, payload: bytes, attachment: bytes) -> None:
        """Hand a payload to Zenoh. It may block when the publisher was made so. LinkError once closed."""
        try:
            self._put(payload, attachment=attachment)
        except _zenoh().ZError as error:
            raise LinkError(f"the link is closed: {_clean(error)}") from None

    def close(self) -> None:
        """Nothing was declared, so there is nothing to end."""


class Session:
    """One session of Zenoh. All of it may be called from any thread, and may block: keep it out of the loop.

    Its callbacks run in threads of its own and should only hand over: a slow one stalls the whole link.
    """

    def __init__(self, session: "zenoh.Session") -> None:
        self._session = session
        self._pid = os.getpid()
        self._closing: threading.Thread | None = None
        self._declared: set[Any] = set()
        _open.add(self)

    @classmethod
    def open(cls, link: ZenohLink, given_up: threading.Event | None = None) -> "Session":
        """Open a session: blocking, for up to `link.patience` seconds where this process only connects.

        It tries again until somebody listens there, or until `given_up` is set. Raises LinkError when the
        extra is missing, a file of certificates cannot be read, the port is in use, or nobody lets this
        process in.
        """
        _zenoh()
        _check_files(link)
        _guard()
        given_up = given_up or threading.Event()
        end = time.monotonic() + link.patience
        attempt = 0.5
        while True:
            try:
                session = cls(_attempt(link, min(attempt, max(0.05, end - time.monotonic()))))
            except _zenoh().ZError as error:
                if link.listen or time.monotonic() >= end or given_up.is_set():
                    raise LinkError(_reason(link, error)) from None
                attempt = min(2 * attempt, 4.0)
                given_up.wait(0.05)
                continue
            if given_up.is_set():
                session.close(CLOSING)
                raise LinkError("the start was given up")
            return session

    @property
    def id(self) -> str:
        """Zenoh's id of this session."""
        return str(self._session.zid())

    def publisher(self, key: str, *, priority: int, block: bool) -> Publisher:
        """What puts to `key`, at a priority from 1 (most urgent) to 7.

        With `block` a put waits for room in the buffers, else it is dropped, silently, when there is none.
        """
        zenoh = _zenoh()
        control = zenoh.CongestionControl.BLOCK if block else zenoh.CongestionControl.DROP
        levels = (
            zenoh.Priority.REAL_TIME,
            zenoh.Priority.INTERACTIVE_HIGH,
            zenoh.Priority.INTERACTIVE_LOW,
            zenoh.Priority.DATA_HIGH,
            zenoh.Priority.DATA,
            zenoh.Priority.DATA_LOW,
            zenoh.Priority.BACKGROUND,
        )
        where = zenoh.KeyExpr(_plain(key))
        return Publisher(
            functools.partial(
                self._session.put, where, congestion_control=control, priority=levels[priority - 1]
            )
        )

    def subscribe(self, key: str, arrived: Arrived) -> Closer:
        """Call `arrived(key, payload, attachment)` for each put; `key` may have the wildcards * and **."""

        def take(sample: "zenoh.Sample") -> None:
            attachment = sample.attachment
            arrived(
                str(sample.key_expr),
                sample.payload.to_bytes(),
                b"" if attachment is None else attachment.to_bytes(),
            )

        with self._clearly():
            subscriber = self._session.declare_subscriber(key, take)
        return Closer(subscriber, self._declared)

    def announce(self, key: str) -> Closer:
        """Let all that `watch` see `key` for as long as this session lives and the token is not closed."""
        with self._clearly():
            token = self._session.liveliness().declare_token(_plain(key))
        return Closer(token, self._declared)

    def watch(self, key: str, changed: Changed) -> Closer:
        """Call `changed(key, True)` for each key that is or was announced; with False when it goes."""
        put = _zenoh().SampleKind.PUT

        def take(sample: "zenoh.Sample") -> None:
            changed(str(sample.key_expr), sample.kind == put)

        with self._clearly():
            watcher = self._session.liveliness().declare_subscriber(key, take, history=True)
        return Closer(watcher, self._declared)

    def announced(self, key: str, timeout: float = 1.0) -> list[str]:
        """The keys that are announced now; whoever does not answer within `timeout` seconds is left out."""
        with self._clearly():
            replies = list(self._session.liveliness().get(key, timeout=timeout))
        return sorted({str(reply.ok.key_expr) for reply in replies if reply.ok is not None})

    def answer(self, key: str, give: Callable[[], bytes]) -> Closer:
        """Answer whoever asks for `key` with what `give` gives, in a thread of Zenoh's."""

        def reply(query: "zenoh.Query") -> None:
            with query:
                query.reply(key, give())

        with self._clearly():
            queryable = self._session.declare_queryable(_plain(key), reply)
        return Closer(queryable, self._declared)

    def ask(self, key: str, timeout: float = 1.0) -> dict[str, bytes]:
        """The answers that come within `timeout` seconds; `key` may have the wildcards * and **."""
        with self._clearly():
            replies = list(self._session.get(key, timeout=timeout))
        found = (reply.ok for reply in replies)
        return {str(each.key_expr): each.payload.to_bytes() for each in found if each is not None}

    def connections(self, changed: Changed) -> Closer:
        """Call `changed(id, True)` for each session connected to this one; with False when it goes."""
        put = _zenoh().SampleKind.PUT

        def take(event: "zenoh.TransportEvent") -> None:
            changed(str(event.transport.zid), event.kind == put)

        with self._clearly():
            listener = self._session.info.declare_transport_events_listener(take, history=True)
        return Closer(listener, self._declared)

    @property
    def closed(self) -> bool:
        return self._closing is not None

    def close(self, timeout: float) -> bool:
        """Close, within a limit of seconds. Returns whether it has; else it goes on in a thread of its own.

        May be called again, to wait longer. In a process that was forked nothing is left to close: True.
        """
        if os.getpid() != self._pid:
            return True
        with _lock:
            if self._closing is None:
                self._closing = threading.Thread(target=self._close, name="orchestra-link-close")
                self._closing.start()
        self._closing.join(timeout)
        return not self._closing.is_alive()

    def _close(self) -> None:
        with contextlib.suppress(_zenoh().ZError):
            close: Callable[[], object] = self._session.close
            close()
        self._declared.clear()
        _open.discard(self)

    def leak(self) -> None:
        """In a forked child: keep for ever what would wait at its end for threads that are not there."""
        for each in (self._session, *self._declared):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(each))

    @contextlib.contextmanager
    def _clearly(self) -> Generator[None, None, None]:
        if os.getpid() != self._pid:
            raise LinkError(
                "this process was forked after the link was opened: open it in the child (use spawn)"
            )
        try:
            yield
        except _zenoh().ZError as error:
            raise LinkError(f"the link is closed: {_clean(error)}") from None


def _zenoh() -> Any:
    """The module, or a LinkError that says how to get it."""
    try:
        import zenoh
    except ImportError as error:
        raise LinkError(
            f"a ZenohLink needs Eclipse Zenoh, which cannot be imported ({error}): "
            "pip install 'orchestra-wiring[zenoh]'"
        ) from None
    return zenoh


def _attempt(link: ZenohLink, seconds: float) -> "zenoh.Session":
    library = _zenoh()
    config = library.Config()
    with _users_file(link) as users:
        for key, value in {**link.config(), **users}.items():
            config.insert_json5(key, json.dumps(value))
        if not link.listen:
            config.insert_json5("connect/timeout_ms", json.dumps(round(seconds * 1000)))
        session: zenoh.Session = library.open(config)
        return session


@contextlib.contextmanager
def _users_file(link: ZenohLink) -> Generator[dict[str, object], None, None]:
    """The passwords that this process knows, in a file of this user alone, while Zenoh reads it."""
    if not link.listen or not link.users:
        yield {}
        return
    handle, path = tempfile.mkstemp(prefix="orchestra-link-")
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(dictionary(link.users))
        yield {"transport/auth/usrpwd/dictionary_file": path}
    finally:
        os.unlink(path)


def _check_files(link: ZenohLink) -> None:
    if link.tls is None:
        return
    for name in ("ca", "certificate", "key"):
        path = getattr(link.tls, name)
        try:
            with open(path, "rb") as file:
                text = file.read()
        except OSError as error:
            raise LinkError(f"{name} of Tls, {path!r}, cannot be read: {error.strerror}") from None
        if b"-----BEGIN " not in text:
            raise LinkError(f"{name} of Tls, {path!r}, is no PEM file: it has no -----BEGIN line")


def _reason(link: ZenohLink, error: Exception) -> str:
    text = _clean(error)
    if link.listen:
        where = ", ".join(link.listen)
        if "already in use" in text:
            return f"cannot listen at {where}: the port is in use by another program"
        return f"cannot listen at {where}: {text}"
    tried = "; ".join(f"{each}: {_probe(each)}" for each in link.connect)
    return f"no connection within {link.patience:g} s to {tried}"


def _probe(endpoint: str) -> str:
    """Why there is no connection to `endpoint`, as far as plain TCP can tell."""
    host, _, port = endpoint.partition("/")[2].rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=1.0):
            return (
                "somebody listens there, and does not let this process in "
                "(is it an orchestra, and are tls, user and password right on both sides?)"
            )
    except socket.gaierror:
        return f"the host {host!r} is unknown"
    except ConnectionRefusedError:
        return "nobody listens there"
    except OSError as error:
        return str(error.strerror or error)


def _clean(error: Exception) -> str:
    """Without the places in Zenoh's own source."""
    return re.sub(r"\s+at /\S+\.rs:\d+\.?", "", str(error)).strip()


def _plain(key: str) -> str:
    """Zenoh puts to a key with wildcards silently; nothing here means that."""
    if not key or set("*$?#") & set(key) or "" in key.split("/"):
        raise LinkError(f"{key!r} is no key to put to: parts between slashes, without * $ ? #")
    return key


def _guard() -> None:
    global _guarded  # noqa: PLW0603 - one thread for the process
    with _lock:
        if not _guarded:
            _guarded = True
            threading.Thread(target=_close_at_exit, name="orchestra-link-exit").start()


def _close_at_exit() -> None:
    threading.main_thread().join()
    for session in list(_open):
        session.close(CLOSING)


def _after_fork() -> None:
    global _guarded, _lock  # noqa: PLW0603 - the child has neither the thread nor who held the lock
    _guarded = False
    _lock = threading.Lock()
    for session in _open:
        session.leak()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
