"""The fenced blocks of a page, and what the comments before them ask for (see CONTRIBUTING.md)."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs
from markdown_it import MarkdownIt

_REQUEST = re.compile(r"<!--\s*(continues|output|fails):?\s*(.*?)\s*-->\s*\Z")
_TITLE = re.compile(r'title="([^"]+)"')


@attrs.frozen
class Block:
    """One fenced block. `line` is the line of its first line of text, counted from 1."""

    page: Path
    line: int
    language: str
    title: str | None
    request: str | None
    argument: str
    text: str


def blocks_of(page: Path) -> list[Block]:
    """All fenced blocks of a page, from top to bottom, those in lists too."""
    return list(_blocks(page))


def _blocks(page: Path) -> Iterator[Block]:
    before = None
    for token in MarkdownIt().parse(page.read_text(encoding="utf-8")):
        if token.type == "fence" and token.map is not None:
            language, _, rest = token.info.strip().partition(" ")
            title = _TITLE.search(rest)
            yield Block(
                page=page,
                line=token.map[0] + 2,
                language=language,
                title=title and title[1],
                request=before and before[1],
                argument=before[2] if before else "",
                text=token.content,
            )
        if token.type in {"fence", "html_block", "inline"}:
            before = _REQUEST.search(token.content) if token.type == "html_block" else None


@attrs.frozen
class Program:
    """What is run for one Python block: the block, after those that it continues.

    `prints` is the text of the output block that follows it, or None.
    """

    blocks: Sequence[Block]
    prints: str | None

    @property
    def block(self) -> Block:
        return self.blocks[-1]

    @property
    def fails(self) -> str | None:
        """The text that is in the error with which the program ends, or None."""
        return self.block.argument if self.block.request == "fails" else None

    @property
    def source(self) -> str:
        """The program, each block on the lines that it has in the page."""
        lines: list[str] = []
        for block in self.blocks:
            lines += [""] * (block.line - 1 - len(lines)) + block.text.splitlines()
        return "\n".join(lines) + "\n"


def programs_of(blocks: Sequence[Block]) -> list[Program]:
    """One program for each Python block of a page."""
    programs: list[Program] = []
    chain: list[Block] = []
    for place, block in enumerate(blocks):
        if block.language not in {"python", "py"}:
            continue
        chain = [*chain, block] if block.request == "continues" else [block]
        after = blocks[place + 1] if place + 1 < len(blocks) else None
        prints = after.text if after is not None and after.request == "output" else None
        programs.append(Program(chain, prints))
    return programs


@attrs.frozen
class Command:
    """A command of a console block and what is shown below it, "" when nothing is."""

    block: Block
    words: str
    prints: str


def commands_of(blocks: Sequence[Block]) -> list[Command]:
    """The `orchestra` commands in the console blocks of a page."""
    commands: list[Command] = []
    for block in blocks:
        if block.language not in {"console", "shell-session"}:
            continue
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            words, _, prints = part.partition("\n")
            if re.match(r"(python -m )?orchestra\b", words):
                commands.append(Command(block, words.strip(), prints))
    return commands


def matches(shown: str, printed: str) -> bool:
    """Whether a program printed what its page shows, where `...` stands for any text."""
    pattern = ".*".join(map(re.escape, _tidy(shown).split("...")))
    return re.fullmatch(pattern, _tidy(printed), re.DOTALL) is not None


def _tidy(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())
