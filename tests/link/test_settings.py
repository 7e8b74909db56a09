"""A ZenohLink is plain values: what it refuses, and what Zenoh is told."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from orchestra.link import Tls, User, ZenohLink

AT = "tcp/127.0.0.1:7447"
SAFE = "tls/127.0.0.1:7447"
TLS = Tls(ca="ca.pem", certificate="a.pem", key="a.key")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "needs listen="),
        ({"listen": AT}, "listen is 'tcp/127.0.0.1:7447': give a list"),
        ({"connect": 7447}, "connect is 7447: give a list"),
        ({"connect": ["127.0.0.1:7447"]}, "connect has '127.0.0.1:7447': write PROTOCOL/HOST:PORT"),
        ({"connect": ["udp/127.0.0.1:7447"]}, "with tcp or tls"),
        ({"connect": ["tcp/127.0.0.1"]}, "write PROTOCOL/HOST:PORT"),
        ({"connect": ["tcp/127.0.0.1:0"]}, "write PROTOCOL/HOST:PORT"),
        ({"connect": ["tcp/127.0.0.1:65536"]}, "write PROTOCOL/HOST:PORT"),
        ({"connect": [AT + "?prio=1-7"]}, "write PROTOCOL/HOST:PORT"),
        ({"connect": [AT + "#iface=lo"]}, "write PROTOCOL/HOST:PORT"),
        ({"connect": [None]}, "connect has None"),
        ({"connect": [AT], "name": "a/b"}, "name is 'a/b'"),
        ({"connect": [AT], "name": ""}, "name is ''"),
        ({"connect": [AT], "app": "**"}, "app is '\\*\\*'"),
        ({"connect": [AT], "app": 3}, "app is 3"),
        ({"connect": [AT], "lease": 0}, "lease is 0: give a number of seconds from 0.1 to 3600"),
        ({"connect": [AT], "lease": "2"}, "lease is '2'"),
        ({"connect": [AT], "lease": True}, "lease is True"),
        ({"connect": [AT], "lease": math.nan}, "lease is nan"),
        ({"connect": [AT], "patience": -1}, "patience is -1: give a number of seconds of 0 or more"),
        ({"connect": [AT], "tls": "ca.pem"}, "tls is 'ca.pem': give Tls"),
        ({"connect": [AT], "user": ("a", "b")}, "user is no User"),
        ({"connect": [AT], "tls": TLS}, "write 'tls/127.0.0.1:7447'"),
        ({"connect": [SAFE]}, "'tls/127.0.0.1:7447' needs tls=Tls"),
        ({"listen": [SAFE, AT], "tls": TLS}, "'tcp/127.0.0.1:7447' is not protected, and tls= is given"),
        ({"connect": [AT], "allow": [User("a", "b")]}, "has no listen="),
        ({"listen": [AT], "allow": "hand"}, "allow takes a list"),
        ({"listen": [AT], "allow": [("hand", "secret")]}, "allow has"),
        ({"listen": [AT], "allow": ["hand"]}, "without tls=Tls"),
        ({"listen": [AT], "allow": [User("a", "b"), User("a", "c")]}, "two passwords for one name"),
        ({"listen": [AT], "user": User("a", "c"), "allow": [User("a", "b")]}, "two passwords"),
    ],
)
def test_a_bad_argument_is_one_error_that_names_it(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises((TypeError, ValueError), match=text) as caught:
        ZenohLink(**arguments)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "endpoint", ["tcp/127.0.0.1:7447", "tcp/[::1]:7447", "tcp/shop.example:1", "tcp/my-host_1:65535"]
)
def test_endpoints_that_are_right(endpoint: str) -> None:
    assert ZenohLink(connect=[endpoint]).connect == (endpoint,)


@pytest.mark.parametrize("bad", ["", None, 3, b"ca.pem"])
@pytest.mark.parametrize("name", ["ca", "certificate", "key"])
def test_tls_takes_paths(name: str, bad: Any) -> None:
    with pytest.raises(TypeError, match=f"{name} of Tls is"):
        Tls(**{"ca": "a", "certificate": "b", "key": "c", name: bad})


def test_tls_takes_path_objects() -> None:
    assert Tls(ca=Path("a"), certificate="b", key="c").ca == "a"


@pytest.mark.parametrize(("name", "password"), [("", "p"), ("a:b", "p"), ("a\n", "p"), (None, "p")])
def test_a_name_that_cannot_be_one(name: Any, password: Any) -> None:
    with pytest.raises(TypeError, match="name of User is"):
        User(name, password)


@pytest.mark.parametrize("password", ["", "two\nlines", b"bytes-that-are-secret", None])
def test_a_password_that_cannot_be_one_is_not_told(password: Any) -> None:
    with pytest.raises(TypeError, match="password of User is") as caught:
        User("a", password)
    assert "secret" not in str(caught.value)
    assert "lines" not in str(caught.value)


def test_no_password_is_shown() -> None:
    link = ZenohLink(listen=[AT], user=User("own", "hidden-1"), allow=[User("guest", "hidden-2")])
    for text in (repr(link), str(link), repr(link.user), repr(link.users), f"{link.allow}"):
        assert "hidden" not in text
    assert "own" in repr(link)


def test_who_listens_passes_on_and_who_connects_is_a_client() -> None:
    assert ZenohLink(listen=[AT]).config()["mode"] == "router"
    assert ZenohLink(connect=[AT]).config()["mode"] == "client"
    assert ZenohLink(listen=[AT], connect=["tcp/127.0.0.1:7448"]).config()["mode"] == "router"


def test_each_endpoint_is_two_links_by_priority() -> None:
    (connected,) = ZenohLink(connect=[AT]).config()["connect/endpoints"]  # type: ignore[misc]
    assert connected == {"strategy": "allOf", "locators": [f"{AT}?prio=1-4", f"{AT}?prio=5-7"]}
    assert ZenohLink(connect=[AT]).config()["transport/unicast/max_links"] == 2


def test_nobody_is_looked_for() -> None:
    assert ZenohLink(listen=[AT]).config()["scouting/multicast/enabled"] is False


def test_the_lease() -> None:
    assert ZenohLink(listen=[AT], lease=0.5).config()["transport/link/tx/lease"] == 500


def test_only_the_protected_protocol_is_spoken() -> None:
    assert ZenohLink(listen=[SAFE], tls=TLS).config()["transport/link/protocols"] == ["tls"]


def test_access_is_denied_but_to_those_allowed_and_for_the_keys_of_the_app() -> None:
    link = ZenohLink(listen=[SAFE], tls=TLS, app="shop", allow=["hand", "boss", User("guest", "p")])
    control: Any = link.config()["access_control"]
    assert control["enabled"] is True
    assert control["default_permission"] == "deny"
    assert [rule["permission"] for rule in control["rules"]] == ["allow"]
    assert control["rules"][0]["key_exprs"] == ["orchestra/shop/**"]
    assert [subject.get("cert_common_names") for subject in control["subjects"]] == [["hand", "boss"], None]
    assert [subject.get("usernames") for subject in control["subjects"]] == [None, ["guest"]]
    assert "access_control" not in ZenohLink(listen=[AT]).config()


def test_the_users_of_who_listens() -> None:
    own, guest = User("own", "a"), User("guest", "b")
    assert ZenohLink(listen=[AT], user=own, allow=[guest, own]).users == (own, guest)
    assert ZenohLink(listen=[AT]).users == ()


def test_the_configuration_is_plain() -> None:
    link = ZenohLink(listen=[SAFE], connect=[SAFE], tls=TLS, user=User("a", "b"), allow=["hand"])
    assert json.loads(json.dumps(link.config())) == link.config()
