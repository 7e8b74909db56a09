"""Strangers stay out: who has not the right certificate or password connects, reads and sends nothing."""

import contextlib
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestra.errors import LinkError
from orchestra.link import User, ZenohLink
from orchestra.link.session import Session
from tests.link.certificates import Authority
from tests.link.sessions import free_port, opened, until

KEY = "orchestra/shop/hand"


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ours"), "ours")


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("foreign"), "foreign")


class Hub:
    """One that listens, and what it hears."""

    def __init__(self, session: Session, at: str) -> None:
        self.session = session
        self.at = at
        self.heard: list[bytes] = []
        self.seen: list[str] = []
        session.subscribe("**", lambda key, payload, beside: self.heard.append(payload))
        session.watch("**", lambda key, here: self.seen.append(key))
        session.announce("orchestra/shop/alive/hub")
        self.put = session.publisher(KEY, priority=5, block=True).put

    def refuses(self, **settings: Any) -> None:
        """Whoever has `settings` is not even connected."""
        with pytest.raises(LinkError, match="does not let this process in"):
            Session.open(
                ZenohLink(connect=[settings.pop("at", self.at)], app="shop", patience=0.5, **settings)
            )

    def talks(self, **settings: Any) -> None:
        """Whoever has `settings` sends, hears, announces itself, and sees who is there."""
        with opened(connect=[self.at], **settings) as guest:
            heard, seen = self._listen(guest, KEY)
            put = guest.publisher(KEY, priority=1, block=True).put
            until(lambda: put(b"from guest", b"") or b"from guest" in self.heard)
            until(lambda: self.put(b"from hub", b"") or b"from hub" in heard)
            guest.announce("orchestra/shop/alive/guest")
            until(lambda: "orchestra/shop/alive/guest" in self.seen)
            until(lambda: "orchestra/shop/alive/hub" in seen)

    def denies(self, key: str = KEY, **settings: Any) -> None:
        """Whoever has `settings` is connected and alone: nothing that it says or listens for goes through."""
        with opened(connect=[self.at], **settings) as stranger:
            heard, seen = self._listen(stranger, key)
            everything, _ = self._listen(stranger, "**")
            stranger.announce(f"{key}/stranger")
            put = stranger.publisher(key, priority=1, block=True).put
            for _ in range(10):
                put(b"from stranger", b"")
                self.put(b"not for strangers", b"")
                time.sleep(0.02)
            if key == KEY:
                assert b"not for strangers" not in heard + everything
                assert "orchestra/shop/alive/hub" not in seen
        assert b"from stranger" not in self.heard
        assert not any("stranger" in each for each in self.seen)

    @staticmethod
    def _listen(session: Session, key: str) -> tuple[list[bytes], list[str]]:
        heard: list[bytes] = []
        seen: list[str] = []
        session.subscribe(key, lambda key, payload, beside: heard.append(payload))
        session.watch("orchestra/shop/alive/*", lambda key, here: seen.append(key))
        return heard, seen


@contextlib.contextmanager
def hub(protocol: str, **settings: Any) -> Iterator[Hub]:
    at = f"{protocol}/127.0.0.1:{free_port()}"
    with opened(listen=[at], **settings) as session:
        yield Hub(session, at)


def test_by_certificate(ours: Authority, foreign: Authority) -> None:
    with hub("tls", tls=ours.tls("hub")) as there:
        there.talks(tls=ours.tls("hand"))
        there.refuses(tls=foreign.tls("hand", ca=ours.ca))
        there.refuses(tls=foreign.tls("hand"))
        there.refuses(at=there.at.replace("tls/", "tcp/"))
        there.talks(tls=ours.tls("other"))


def test_a_certificate_of_another_authority_is_no_server_either(ours: Authority, foreign: Authority) -> None:
    with hub("tls", tls=foreign.tls("hub", ca=ours.ca)) as there:
        there.refuses(tls=ours.tls("hand"))


def test_a_certificate_for_another_host(ours: Authority) -> None:
    import attrs

    with hub("tls", tls=ours.tls("hub", host="127.0.0.9")) as there:
        there.refuses(tls=ours.tls("hand"))
        there.talks(tls=attrs.evolve(ours.tls("hand"), verify_name=False))


def test_no_certificate(ours: Authority) -> None:
    """Whoever speaks TLS and shows nothing: Zenoh as it is, without the settings of this library."""
    import json

    import zenoh

    with hub("tls", tls=ours.tls("hub")) as there:
        config = zenoh.Config()
        for key, value in {
            "mode": "client",
            "connect/endpoints": [there.at],
            "connect/timeout_ms": 500,
            "scouting/multicast/enabled": False,
            "transport/link/tls/root_ca_certificate": ours.ca,
        }.items():
            config.insert_json5(key, json.dumps(value))
        with pytest.raises(zenoh.ZError, match="Unable to connect"):
            zenoh.open(config)


def test_allowed_certificates(ours: Authority) -> None:
    with hub("tls", tls=ours.tls("hub"), allow=["hand", "boss"]) as there:
        there.talks(tls=ours.tls("hand"))
        there.denies(tls=ours.tls("other"))
        there.denies(key="orchestra/other/hand", tls=ours.tls("hand"))
        there.talks(tls=ours.tls("boss"))


def test_allowed_certificates_do_not_reach_those_that_are_not(ours: Authority) -> None:
    with hub("tls", tls=ours.tls("hub"), allow=["hand", "boss"]) as there:
        with (
            opened(connect=[there.at], tls=ours.tls("hand")) as hand,
            opened(connect=[there.at], tls=ours.tls("boss")) as boss,
            opened(connect=[there.at], tls=ours.tls("other")) as other,
        ):
            heard, seen = Hub._listen(boss, KEY)
            secret, watched = Hub._listen(other, KEY)
            hand.announce("orchestra/shop/alive/hand")
            other.announce("orchestra/shop/alive/other")
            for each, text in ((hand, b"hand"), (other, b"other")):
                put = each.publisher(KEY, priority=5, block=True).put
                for _ in range(10):
                    put(text, b"")
                    time.sleep(0.02)
            until(lambda: b"hand" in heard and "orchestra/shop/alive/hand" in seen)
            assert set(heard) == {b"hand"}
            assert set(secret) <= {b"other"}  # its own
            assert not {"orchestra/shop/alive/hand", "orchestra/shop/alive/hub"} & set(watched)
            assert "orchestra/shop/alive/other" not in seen


def test_by_password() -> None:
    with hub("tcp", user=User("shop", "secret")) as there:
        there.talks(user=User("shop", "secret"))
        there.refuses(user=User("shop", "Secret"))
        there.refuses(user=User("other", "secret"))
        there.refuses()


def test_allowed_users() -> None:
    with hub("tcp", user=User("hub", "own"), allow=[User("hand", "one"), User("boss", "two")]) as there:
        there.talks(user=User("hand", "one"))
        there.talks(user=User("boss", "two"))
        there.refuses(user=User("hand", "two"))
        there.refuses()
        there.denies(user=User("hub", "own"))


def test_certificate_and_password(ours: Authority, foreign: Authority) -> None:
    user = User("shop", "secret")
    with hub("tls", tls=ours.tls("hub"), user=user, allow=["hand"]) as there:
        there.talks(tls=ours.tls("hand"), user=user)
        there.refuses(tls=ours.tls("hand"))
        there.refuses(tls=foreign.tls("hand", ca=ours.ca), user=user)
        there.denies(tls=ours.tls("other"), user=user)


def test_passwords_lie_in_no_file_that_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    modes: list[int] = []
    make = tempfile.mkstemp

    def watched(**options: Any) -> Any:
        handle, path = make(**options)
        modes.append(stat.S_IMODE(Path(path).stat().st_mode))
        return handle, path

    monkeypatch.setattr(tempfile, "mkstemp", watched)
    with hub("tcp", user=User("shop", "secret")):
        assert modes == [0o600]
        assert not list(tmp_path.iterdir())


def test_an_error_does_not_tell_the_password() -> None:
    at = f"tcp/127.0.0.1:{free_port()}"
    with pytest.raises(LinkError) as caught:
        Session.open(ZenohLink(connect=[at], user=User("shop", "hidden"), patience=0.2))
    assert "hidden" not in str(caught.value)
