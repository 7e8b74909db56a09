"""A session of Zenoh opens with clear errors, hands over what comes, and closes whatever happens."""

import socket
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from orchestra.errors import LinkError
from orchestra.link import Tls, ZenohLink
from orchestra.link.session import Session
from tests.link.sessions import free_port, opened, until


def test_what_is_put_arrives_with_its_attachment() -> None:
    at = f"tcp/127.0.0.1:{free_port()}"
    got: list[tuple[str, bytes, bytes]] = []
    with opened(listen=[at]) as hub, opened(connect=[at]) as leaf:
        subscription = hub.subscribe("orchestra/shop/**", lambda *what: got.append(what))
        urgent = leaf.publisher("orchestra/shop/a", priority=1, block=True)
        bulk = leaf.publisher("orchestra/shop/b", priority=7, block=False)
        until(lambda: bulk.put(b"try", b"") or len(got))
        got.clear()
        urgent.put(b"payload", b"beside")
        until(lambda: ("orchestra/shop/a", b"payload", b"beside") in got)
        subscription.close()
        got.clear()
        urgent.put(b"later", b"")
        time.sleep(0.1)
        assert all(payload != b"later" for _, payload, _ in got)
    with pytest.raises(LinkError, match="the link is closed"):
        urgent.put(b"", b"")


def test_the_first_put_of_each_priority_arrives() -> None:
    at = f"tcp/127.0.0.1:{free_port()}"
    with opened(listen=[at]):
        for number in range(20):
            got: list[bytes] = []
            seen: list[bool] = []
            with opened(connect=[at]) as one, opened(connect=[at]) as other:
                other.watch(f"orchestra/shop/alive/{number}", lambda _, here, seen=seen: seen.append(here))
                one.subscribe("orchestra/shop/to/*", lambda _, payload, beside, got=got: got.append(payload))
                one.announce(f"orchestra/shop/alive/{number}")
                until(lambda seen=seen: seen)
                for priority in (1, 4, 5, 7):
                    put = other.publisher("orchestra/shop/to/one", priority=priority, block=False).put
                    put(b"%d" % priority, b"")
                until(lambda got=got: len(got) == 4)


def test_two_leaves_reach_each_other_through_the_hub() -> None:
    at = f"tcp/127.0.0.1:{free_port()}"
    got: list[bytes] = []
    with opened(listen=[at]), opened(connect=[at]) as one, opened(connect=[at]) as other:
        one.subscribe("orchestra/shop/x", lambda key, payload, beside: got.append(payload))
        put = other.publisher("orchestra/shop/x", priority=5, block=True).put
        until(lambda: put(b"hello", b"") or b"hello" in got)


def test_announcements_are_seen_by_those_before_and_after() -> None:
    at = f"tcp/127.0.0.1:{free_port()}"
    seen: list[tuple[str, bool]] = []
    late: list[tuple[str, bool]] = []
    with opened(listen=[at]) as hub:
        hub.watch("orchestra/shop/alive/*", lambda *what: seen.append(what))
        with opened(connect=[at]) as leaf:
            leaf.announce("orchestra/shop/alive/one")
            token = leaf.announce("orchestra/shop/alive/two")
            until(lambda: {key[-3:] for key, here in seen if here} == {"one", "two"})
            hub.watch("orchestra/shop/alive/*", lambda *what: late.append(what))
            until(lambda: len(late) == 2)
            token.close()
            until(lambda: ("orchestra/shop/alive/two", False) in seen)
            assert ("orchestra/shop/alive/one", False) not in seen
        until(lambda: ("orchestra/shop/alive/one", False) in seen)


def test_announcements_are_listed() -> None:
    at = f"tcp/127.0.0.1:{free_port()}"
    with opened(listen=[at]) as hub, opened(connect=[at]) as leaf, opened(connect=[at]) as asking:
        hub.announce("orchestra/shop/alive/hub")
        token = leaf.announce("orchestra/shop/alive/leaf")
        both = ["orchestra/shop/alive/hub", "orchestra/shop/alive/leaf"]
        until(lambda: asking.announced("orchestra/*/alive/*") == both)
        token.close()
        until(lambda: asking.announced("orchestra/*/alive/*") == both[:1])


def test_answers() -> None:
    at = f"tcp/127.0.0.1:{free_port()}"
    with opened(listen=[at]) as hub, opened(connect=[at]) as leaf, opened(connect=[at]) as asking:
        hub.answer("orchestra/shop/about/hub", lambda: b"one")
        answer = leaf.answer("orchestra/shop/about/leaf", lambda: b"two")
        leaf.answer("orchestra/shop/about/broken", lambda: bytes(1 // 0))
        both = {"orchestra/shop/about/hub": b"one", "orchestra/shop/about/leaf": b"two"}
        until(lambda: asking.ask("orchestra/shop/about/*") == both)
        answer.close()
        until(lambda: list(asking.ask("orchestra/shop/about/*")) == ["orchestra/shop/about/hub"])


def test_connections_are_told() -> None:
    at = f"tcp/127.0.0.1:{free_port()}"
    told: list[tuple[str, bool]] = []
    with opened(listen=[at]) as hub:
        hub.connections(lambda *what: told.append(what))
        with opened(connect=[at]) as leaf:
            until(lambda: (leaf.id, True) in told)
            assert (leaf.id, False) not in told
        until(lambda: (leaf.id, False) in told)


def test_nobody_listens() -> None:
    at = f"tcp/127.0.0.1:{free_port()}"
    began = time.monotonic()
    with pytest.raises(LinkError, match=rf"no connection within 0.3 s to {at}: nobody listens there"):
        Session.open(ZenohLink(connect=[at], patience=0.3))
    assert time.monotonic() - began < 5


def test_somebody_listens_who_is_no_orchestra() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        at = f"tcp/127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(LinkError, match="somebody listens there, and does not let this process in"):
            Session.open(ZenohLink(connect=[at], patience=0.3))


def test_the_port_is_in_use() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        at = f"tcp/127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(LinkError, match=f"cannot listen at {at}: the port is in use"):
            Session.open(ZenohLink(listen=[at]))


def test_who_connects_waits_for_who_listens() -> None:
    at = f"tcp/127.0.0.1:{free_port()}"
    leaves: list[Session] = []
    opening = threading.Thread(target=lambda: leaves.append(Session.open(ZenohLink(connect=[at]))))
    opening.start()
    time.sleep(0.5)
    assert not leaves
    with opened(listen=[at]):
        opening.join(20)
        assert leaves
        assert leaves[0].close(10)


def test_a_start_that_is_given_up() -> None:
    given_up = threading.Event()
    threading.Timer(0.3, given_up.set).start()
    began = time.monotonic()
    with pytest.raises(LinkError):
        Session.open(ZenohLink(connect=[f"tcp/127.0.0.1:{free_port()}"], patience=60), given_up)
    assert time.monotonic() - began < 20


def test_the_hub_comes_back_at_its_port() -> None:
    at = f"tcp/127.0.0.1:{free_port()}"
    got: list[bytes] = []
    with opened(listen=[at]):
        leaf = Session.open(ZenohLink(connect=[at]))
    try:
        put = leaf.publisher("orchestra/shop/x", priority=5, block=False).put
        with opened(listen=[at]) as hub:
            hub.subscribe("orchestra/shop/x", lambda key, payload, beside: got.append(payload))
            until(lambda: put(b"again", b"") or got)
    finally:
        assert leaf.close(10)


def test_close_is_idempotent_and_what_follows_says_closed() -> None:
    session = Session.open(ZenohLink(listen=[f"tcp/127.0.0.1:{free_port()}"]))
    token = session.announce("orchestra/shop/alive/x")
    assert not session.closed
    assert session.close(10)
    assert session.closed
    assert session.close(0)
    token.close()
    with pytest.raises(LinkError, match="the link is closed"):
        session.announce("orchestra/shop/alive/y")


@pytest.mark.parametrize("key", ["a/*", "a/**", "a//b", "/a", "a/", "", "a?b", "a#b", "a/$*"])
def test_keys_that_mean_many_are_not_put_to(key: str) -> None:
    with opened(listen=[f"tcp/127.0.0.1:{free_port()}"]) as session:
        with pytest.raises(LinkError, match="is no key to put to"):
            session.publisher(key, priority=5, block=False)
        with pytest.raises(LinkError, match="is no key to put to"):
            session.announce(key)


def test_files_of_certificates_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("nothing")
    for ca, text in (("none.pem", "cannot be read: No such file"), ("ca.pem", "is no PEM file")):
        tls = Tls(ca=tmp_path / ca, certificate="b", key="c")
        with pytest.raises(LinkError, match=f"ca of Tls, .*{text}"):
            Session.open(ZenohLink(connect=["tls/127.0.0.1:7447"], tls=tls))


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zenoh", None)
    with pytest.raises(LinkError, match=r"pip install 'orchestra-wiring\[zenoh\]'"):
        Session.open(ZenohLink(listen=["tcp/127.0.0.1:7447"]))


def test_the_core_does_not_import_zenoh() -> None:
    script = "import sys, orchestra, orchestra.link; assert 'zenoh' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", script], check=False, timeout=30).returncode == 0


PROGRAM = """
    import os, sys, threading
    from orchestra.link import ZenohLink
    from orchestra.link.session import Session
    from orchestra.errors import LinkError
    session = Session.open(ZenohLink(listen=[sys.argv[1]]))
    session.subscribe("**", print)
    session.watch("**", print)
"""


@pytest.mark.parametrize(
    ("end", "status"), [("", 0), ("sys.exit(3)", 3), ("raise KeyError", 1), ("del session", 0)]
)
def test_a_program_that_forgets_to_close_still_ends(end: str, status: int) -> None:
    program = textwrap.dedent(PROGRAM) + end
    at = f"tcp/127.0.0.1:{free_port()}"
    done = subprocess.run(
        [sys.executable, "-c", program, at], check=False, timeout=30, capture_output=True, text=True
    )
    assert done.returncode == status, done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_a_forked_child_is_told_and_ends() -> None:
    child = """
if (child := os.fork()) == 0:
    try:
        session.announce("a/b")
    except LinkError as error:
        print(error, session.close(1), flush=True)
    sys.exit(4)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    program = textwrap.dedent(PROGRAM) + child
    at = f"tcp/127.0.0.1:{free_port()}"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, at],
        check=False,
        timeout=30,
        capture_output=True,
        text=True,
    )
    assert "forked" in done.stdout, done
    assert "True" in done.stdout
    assert done.stdout.splitlines()[-1] == "4", done
