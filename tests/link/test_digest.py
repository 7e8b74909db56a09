"""What two processes compare before they talk."""

from typing import Any

import msgspec

from orchestra import plan_of
from orchestra.link.digest import described, differences, digest, told
from tests.link import other, shop


def test_the_same_declaration_has_the_same_digest() -> None:
    description = described(plan_of(shop.Shop))
    again = msgspec.msgpack.decode(msgspec.msgpack.encode(description))
    assert digest(description) == digest(again) == digest(described(plan_of(shop.Shop)))
    assert description["subsystems"]["pad"]["lanes"] == {"DATA": "2, DropOldest()"}
    assert description["types"]["Question"] == {"n": "int", "reply": "Reply[int]"}


def test_modules_do_not_matter() -> None:
    description = described(plan_of(shop.Shop))
    assert "tests" not in str(description)


def test_what_differs_is_told() -> None:
    here, there = described(plan_of(shop.Shop)), described(plan_of(other.Shop))
    assert digest(here) != digest(there)
    assert list(differences(here, there)) == ["types.Task.n is int here and str there"]


def test_of_many_differences_a_few_are_told() -> None:
    here: dict[str, Any] = {str(n): n for n in range(9)}
    text = told(here, {})
    assert text.startswith("0 is declared here and not there; 1 ") and text.endswith("and 6 more")


def test_another_order_is_a_difference() -> None:
    assert list(differences({"a": 1, "b": 2}, {"b": 2, "a": 1})) == [
        "what is declared stands in another order"
    ]
