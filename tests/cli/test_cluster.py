"""The commands for several processes: who passes on, who is there, and what they refuse."""

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestra.cli.presence import presence_of
from orchestra.link import User, ZenohLink
from orchestra.link.session import Session
from tests.cli.test_command import ROOT, Command, one_line_on_stderr
from tests.link.certificates import Authority
from tests.link.sessions import free_port, opened, until

ALIVE = "orchestra/shop/alive/hand/0123456789abcdef"
ABOUT = "orchestra/shop/about/0123456789abcdef"
HAND = {"app": "shop", "process": "hand", "epoch": "0123456789abcdef", "hosts": ["hand"]}


@contextlib.contextmanager
def running(*words: str, cwd: Path = ROOT, **options: Any) -> Iterator["subprocess.Popen[str]"]:
    """The command in the background; ended at the end, whatever happens."""
    process = subprocess.Popen(
        [sys.executable, "-m", "orchestra", *words],
        cwd=cwd,
        stdout=options.pop("stdout", subprocess.PIPE),
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": str(ROOT), **options.pop("env", {})},
        **options,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@contextlib.contextmanager
def router(
    *words: str, protocol: str = "tcp", **options: Any
) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """A router that listens, and where."""
    at = f"{protocol}/127.0.0.1:{free_port()}"
    with running("router", "--listen", at, *words, **options) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line == f"passing on at {at}\n", (line, process.communicate(timeout=10))
        yield process, at


@contextlib.contextmanager
def hand(at: str, about: bytes = b'{"hosts": ["hand"]}', **settings: Any) -> Iterator[Session]:
    """A process that announces itself."""
    with opened(connect=[at], **settings) as session:
        session.answer(ABOUT, lambda: about)
        session.announce(ALIVE)
        yield session


def test_peers_shows_who_is_there(command: Command) -> None:
    with router() as (_, at), hand(at) as session:
        until(lambda: session.announced("orchestra/**"))
        done = command("peers", "--connect", at)
        assert done.returncode == 0, done.stderr
        for word in ("shop", "hand", "0123456789abcdef"):
            assert word in done.stdout
        listed = command("peers", "--json", "--connect", at)
        assert json.loads(listed.stdout) == [HAND]
        assert json.loads(command("peers", "--json", "--app", "shop", "--connect", at).stdout) == [HAND]
        other = command("peers", "--json", "--app", "other", "--connect", at)
        assert (other.returncode, json.loads(other.stdout)) == (1, [])


def test_peers_says_by_its_status_that_nobody_is_there(command: Command) -> None:
    with router() as (_, at):
        done = command("peers", "--json", ORCHESTRA_CONNECT=at)
        assert (done.returncode, json.loads(done.stdout)) == (1, [])
        done = command("peers", "--connect", at)
        assert (done.returncode, done.stdout) == (1, "")
        assert "nobody is there; who is let in by allow=" in done.stderr
        assert command("peers", "--connect", at, "--app", "shop").stderr == "orchestra: nobody is there\n"


@pytest.mark.parametrize("json_too", [False, True])
def test_peers_watches_who_comes_and_goes(json_too: bool) -> None:
    words = ["--json"] if json_too else []
    with router() as (_, at), running("peers", "--watch", *words, "--connect", at) as watching:
        assert watching.stdout is not None
        with hand(at):
            here = watching.stdout.readline()
        gone = watching.stdout.readline()
        if json_too:
            assert json.loads(here) == {"here": True, **HAND}
            assert json.loads(gone) == {"here": False, **HAND}
        else:
            assert here == "here: shop hand hosting hand (0123456789abcdef)\n"
            assert gone == "gone: shop hand hosting hand (0123456789abcdef)\n"
        watching.send_signal(signal.SIGINT)
        assert watching.wait(20) == 0


def test_a_process_that_hosts_nothing_is_said_to() -> None:
    with router() as (_, at), running("peers", "--watch", "--connect", at) as watching:
        assert watching.stdout is not None
        with hand(at, b'{"hosts": []}'):
            assert watching.stdout.readline() == "here: shop hand hosting nothing (0123456789abcdef)\n"


def test_peers_shows_a_live_table_on_a_terminal() -> None:
    parent, child = pty.openpty()
    environment = {"TERM": "xterm-256color", "COLUMNS": "100"}
    with router() as (_, at), hand(at):
        with running("peers", "--watch", "--connect", at, stdout=child, env=environment) as watching:
            os.close(child)
            shown = b""
            while b"0123456789abcdef" not in shown:
                shown += os.read(parent, 4096)
            watching.send_signal(signal.SIGTERM)
            with contextlib.suppress(OSError):  # how Linux tells that the other end is closed
                while os.read(parent, 4096):
                    pass
            assert watching.wait(20) == 0
    os.close(parent)
    assert "process" in re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", shown).decode()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_a_router_with_status_0(number: signal.Signals) -> None:
    with router() as (process, at):
        process.send_signal(number)
        assert process.wait(20) == 0
        out, err = process.communicate()
        assert (out, err) == ("", "")
        with opened(listen=[at]):
            pass  # the port is free again


def test_an_interrupt_ends_the_wait_for_a_connection() -> None:
    with running("peers", "--connect", f"tcp/127.0.0.1:{free_port()}") as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("orchestra: nobody answers yet at tcp/127.0.0.1:")
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
        assert process.returncode == 1
        assert err == "orchestra: interrupted before there was a connection\n"


def test_a_wait_for_a_connection_is_told_after_a_moment_and_goes_on(command: Command) -> None:
    at = f"tcp/127.0.0.1:{free_port()}"
    done = command("peers", "--connect", at, "--patience", "1.7")
    assert done.returncode == 1
    first, second = done.stderr.splitlines()
    assert first == f"orchestra: nobody answers yet at {at}; trying for 1.7 s"
    assert "nobody listens there" in second


def test_nobody_listens(command: Command) -> None:
    done = command("peers", "--connect", f"tcp/127.0.0.1:{free_port()}", "--patience", "0.2")
    assert done.returncode == 1
    assert "nobody listens there" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_port_of_a_router_is_in_use(command: Command) -> None:
    with router() as (_, at):
        done = command("router", "--listen", at)
        assert done.returncode == 1
        assert done.stderr == f"orchestra: cannot listen at {at}: the port is in use by another program\n"


def test_a_password_from_the_environment_or_a_file(command: Command, tmp_path: Path) -> None:
    (tmp_path / "users").write_text("# who may\nhand:secret\nwatch:se:cret\n")
    (tmp_path / "password").write_text("se:cret\n")
    with router("--users", str(tmp_path / "users")) as (_, at):
        with hand(at, user=User("hand", "secret")):
            words = ["peers", "--json", "--patience", "1", "--connect", at, "--user", "watch"]
            by_file = command(*words, "--password-file", str(tmp_path / "password"))
            assert json.loads(by_file.stdout) == [HAND], by_file
            by_variable = command(*words, ORCHESTRA_PASSWORD="se:cret")
            assert json.loads(by_variable.stdout) == [HAND], by_variable
            wrong = command(*words, ORCHESTRA_PASSWORD="hidden")
            assert wrong.returncode == 1
            assert "does not let this process in" in wrong.stderr
            assert "hidden" not in wrong.stderr


def test_certificates(command: Command, tmp_path: Path) -> None:
    ours = Authority(tmp_path, "ours")
    tls = {name: ours.tls(name) for name in ("hub", "hand", "watch", "other")}

    def options(name: str) -> dict[str, str]:
        names = {"CA": tls[name].ca, "CERTIFICATE": tls[name].certificate, "KEY": tls[name].key}
        return {f"ORCHESTRA_TLS_{key}": value for key, value in names.items()}

    with router("--allow", "hand", "watch", protocol="tls", env=options("hub")) as (_, at):
        with hand(at, tls=tls["hand"]):
            shown = command("peers", "--json", "--connect", at, **options("watch"))
            assert json.loads(shown.stdout) == [HAND], shown
            hidden = command("peers", "--json", "--connect", at, **options("other"))
            assert (hidden.returncode, json.loads(hidden.stdout)) == (1, [])
            words = ("--tls-ca", tls["watch"].ca, "--tls-certificate", tls["watch"].certificate)
            by_options = command("peers", "--json", "--connect", at, *words, "--tls-key", tls["watch"].key)
            assert json.loads(by_options.stdout) == [HAND], by_options


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["peers"], "peers needs --connect"),
        (["router"], "router needs --listen"),
        (["router", "--connect", "tcp/127.0.0.1:1"], "router needs --listen"),
        (["peers", "--connect", "127.0.0.1:1"], "write PROTOCOL/HOST:PORT"),
        (["peers", "--connect", "tls/127.0.0.1:1"], "needs tls="),
        (["peers", "--connect", "tcp/h:1", "--tls-ca", "x"], "--tls-certificate and --tls-key"),
        (["peers", "--connect", "tcp/h:1", "--user", "a"], "needs its password"),
        (
            ["peers", "--connect", "tcp/h:1", "--user", "a", "--password-file", "none"],
            "'none' cannot be read",
        ),
        (["router", "--listen", "tcp/h:1", "--users", "shop.py"], "needs a line NAME:PASSWORD"),
        (["router", "--listen", "tcp/h:1", "--lease", "0"], "lease is 0"),
        (["peers", "--connect", "tcp/h:1", "--listen", "tcp/h:1"], "--listen"),
        (["serve", "shop:Shop", "--connect", "tcp/h:1"], "--host"),
        (["serve", "shop:Shop", "--host", "desk"], "serve needs --connect"),
        (["serve", "shop:Shop", "--host", "desks", "--connect", "tcp/h:1"], "'desks' is no subsystem"),
        (["serve", "shop:Leaky", "--host", "later", "--connect", "tcp/h:1"], "'later' is wip"),
        (["serve", "shop:number", "--host", "desk", "--connect", "tcp/h:1"], "'shop:number' is no orchestra"),
        (["serve", "shop:Plain", "--host", "desk", "--connect", "tcp/h:1"], "Plain"),
        (["serve", "shop:nothing", "--host", "desk", "--connect", "tcp/h:1"], "gave a NoneType"),
    ],
)
def test_a_mistake_is_one_line(command: Command, words: list[str], text: str) -> None:
    assert text in one_line_on_stderr(command(*words))


@pytest.mark.parametrize("about", [b"", b"nonsense", b"[1]", b'{"hosts": 3}', b"\xff", b"{}"])
def test_what_a_process_says_of_itself_may_be_anything(about: bytes) -> None:
    presence = presence_of(ALIVE, {ABOUT: about})
    assert presence is not None
    assert presence.hosts is None


@pytest.mark.parametrize("key", ["orchestra/shop/alive/hand", "orchestra/shop/to/hand/0123456789abcdef", "x"])
def test_other_keys_are_nobody(key: str) -> None:
    assert presence_of(key) is None


def test_who_waits_for_a_router_finds_it(command: Command) -> None:
    link = ZenohLink(connect=[f"tcp/127.0.0.1:{free_port()}"])
    with running("peers", "--watch", "--connect", *link.connect):
        time.sleep(0.5)
        with running("router", "--listen", *link.connect), hand(link.connect[0]) as session:
            until(lambda: ALIVE in session.announced("orchestra/**"))
