"""Every public name is told of in docs/: it stands there as code, in a sentence or a table."""

import re
from pathlib import Path

import pytest

import orchestra
import orchestra.link
import orchestra.testing
import orchestra.wrappers

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


def told_of(text: str) -> set[str]:
    """The words that stand as code in the text of a page, outside its blocks."""
    return set(re.findall(r"\w+", " ".join(re.findall(r"`[^`]+`", BLOCK.sub("", text)))))


TOLD = {word for page in DOCS.glob("*.md") for word in told_of(page.read_text(encoding="utf-8"))}


@pytest.mark.parametrize(
    "module", [orchestra, orchestra.link, orchestra.testing, orchestra.wrappers], ids=lambda it: it.__name__
)
def test_each_public_name_is_told_of(module: object) -> None:
    names = set(module.__all__)  # type: ignore[attr-defined]  # each of them has it
    assert names - TOLD == set()


def test_code_in_a_sentence_counts_and_a_block_does_not() -> None:
    page = "Use `one(two=1)` or three.\n\n```python\n`four`\n```\n"
    assert told_of(page) == {"one", "two", "1"}
