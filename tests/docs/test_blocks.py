"""The reader of the pages' blocks."""

from pathlib import Path

import pytest

from tests.docs.blocks import blocks_of, commands_of, matches, programs_of

PAGE = """\
# Title

```python title="first.py"
first = 1
```

Text.

<!-- continues -->
```python
print(first)
```

<!-- output -->
```text
1
```

- in a list

  <!-- fails: ZeroDivisionError -->
  ```python
  1 / 0
  ```

```console
$ make test
all well
$ orchestra check first:App
no cycle
$ python -m orchestra expand first:App
```
"""


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "page.md"
    path.write_text(PAGE)
    return path


def test_each_python_block_is_a_program(page: Path) -> None:
    first, second, third = programs_of(blocks_of(page))
    assert first.source.strip() == "first = 1"
    assert first.block.title == "first.py"
    assert second.source.split() == ["first", "=", "1", "print(first)"]
    assert third.source.strip() == "1 / 0"


def test_a_block_keeps_its_line_numbers(page: Path) -> None:
    lines = page.read_text().splitlines()
    for program in programs_of(blocks_of(page)):
        source = program.source.splitlines()
        assert source[program.block.line - 1] == lines[program.block.line - 1].strip()


def test_comments_say_what_a_block_prints_and_how_it_fails(page: Path) -> None:
    first, second, third = programs_of(blocks_of(page))
    assert (first.prints, second.prints) == (None, "1\n")
    assert (second.fails, third.fails) == (None, "ZeroDivisionError")


def test_only_the_commands_of_orchestra_are_taken(page: Path) -> None:
    check, expand = commands_of(blocks_of(page))
    assert (check.words, check.prints) == ("orchestra check first:App", "no cycle\n")
    assert (expand.words, expand.prints) == ("python -m orchestra expand first:App", "")


def test_dots_stand_for_any_text() -> None:
    assert matches("took ... s\nend\n", "took 1.5 s  \nend")
    assert not matches("took 1 s", "took 2 s")
