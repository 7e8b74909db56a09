"""`python -m benchmarks.figures [--check]`: put the committed figures into the documentation.

In README.md and the pages of docs/, what stands between `<!-- figures: NAME -->` and
`<!-- end of figures -->` is made from a file in `benchmarks/results/`, from that of the newest Python, and so
are the charts in docs/charts/.
With `--check` nothing is written, and the exit status is 1 when a page is not up to date.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks import against_bars, bars, charts
from benchmarks.parts import tables
from benchmarks.report import RESULTS

Record: TypeAlias = Mapping[str, Any]
"""A file of figures, or a part of it."""

LOOPS = ("uvloop",)
"""The loops beside asyncio's."""

DOCS = Path(__file__).parents[1] / "docs"
NOT_MEASURED = "(Not measured yet.)"

_PLACE = re.compile(r"(<!-- figures: ([\w-]+) -->\n).*?(<!-- end of figures -->)", re.DOTALL)


def newest(name: str, folder: Path = RESULTS) -> Record | None:
    """The figures of this name from the newest Python that there are some of, or None."""
    return next(reversed(every(name, folder)), None)


def every(name: str, folder: Path = RESULTS) -> Sequence[Record]:
    """The figures of this name from each Python that there are some of, the oldest first."""
    files = sorted(folder.glob(f"{name}-*.json"), key=_version)
    return [json.loads(path.read_text(encoding="utf-8")) for path in files]


def _version(path: Path) -> list[int]:
    return [int(number) for number in path.stem.rpartition("-")[2].split(".")]


def congestion(record: Record) -> Iterator[str]:
    """A chart of what the fast subscriber keeps of its paced rate, and the tables."""
    paced, full = (record["groups"][name] for name in ("paced", "at full speed"))
    beside = [result for result in paced["results"] if "alone" not in result["name"]]
    yield "```mermaid"
    yield "xychart-beta"
    yield '    title "What the fast subscriber gets beside a slow one, in % of its rate alone"'
    yield f"    x-axis {json.dumps([_short(result) for result in beside])}"
    yield '    y-axis "% of its rate alone" 0 --> 105'
    yield f"    bar {[round(100 * result['ratio'], 2) for result in beside]}"
    yield "```"
    yield ""
    yield "| the fast one gets, messages/s | paced | of its rate alone | at full speed | of its rate alone |"
    yield "|---|--:|--:|--:|--:|"
    for one, other in zip(paced["results"], full["results"], strict=True):
        yield f"| {_short(one)} | {_rate(one)} | {_percent(one)} | {_rate(other)} | {_percent(other)} |"
    yield ""
    yield "| one message, synchronous handlers | × a send to one |"
    yield "|---|--:|"
    for result in record["groups"]["publish"]["results"]:
        yield f"| {result['name']} | {result['ratio']:.2f} |"
    yield ""
    yield _where(record)


def priority(record: Record) -> Iterator[str]:
    """A table of how long an urgent message takes."""
    (group,) = record["groups"].values()
    yield "| messages that wait in the lower lane | from the send to the handler | × the first row |"
    yield "|---|--:|--:|"
    for result in group["results"]:
        yield f"| {result['name']} | {result['median']:.0f} {group['unit']} | {result['ratio']:.2f} |"
    yield ""
    yield _where(record)


def to_floor(record: Record) -> Iterator[str]:
    """A table of what was measured, each as a ratio to the floor of its round, on each loop."""
    (group,) = record["groups"].values()
    loops = _loops(group)
    others = "".join(f" on {loop} | × floor |" for loop in loops)
    yield f"| {group['title']} | {group['unit']} | × floor |{others}"
    yield f"|---|--:|--:|{'--:|--:|' * len(loops)}"
    for result in group["results"]:
        yield f"| {result['name']} | {_with_ratio(result)} |{''.join(_on(result, loop) for loop in loops)}"
    yield ""
    if leads := group.get("leads"):
        yield from _leads(leads, loops)
        yield ""
    yield _where(record)


def _loops(group: Record) -> Sequence[str]:
    return [loop for loop in LOOPS if any(loop in result for result in group["results"])]


def _with_ratio(result: Record) -> str:
    return f"{result['median']:,.0f} | {result['ratio_to_floor']:.1f}"


def _on(result: Record, loop: str) -> str:
    return f" {_with_ratio(result[loop])} |" if loop in result else " | |"


def _leads(leads: Sequence[Record], loops: Sequence[str]) -> Iterator[str]:
    """How many times as long the fastest other one takes."""
    heading = "".join(f" {loop} |" for loop in ("asyncio", *loops))
    yield f"| beside orchestra, takes so many times as long |{heading}"
    yield f"|---|--:|{'--:|' * len(loops)}"
    for lead in leads:
        others = "".join(f" {lead[loop]['times_as_fast']:.1f} × |" for loop in loops if loop in lead)
        yield f"| {lead['name']} | {lead['times_as_fast']:.1f} × |{others}"


def costs(record: Record) -> Iterator[str]:
    """A table of what was measured, in its own units."""
    loops = [loop for loop in LOOPS if any(loop in _loops(group) for group in record["groups"].values())]
    yield f"| | |{''.join(f' on {loop} |' for loop in loops)}"
    yield f"|---|--:|{'--:|' * len(loops)}"
    for group in record["groups"].values():
        for result in group["results"]:
            cells = "".join(
                f" {_cost(result[loop], group['unit'])} |" if loop in result else " |" for loop in loops
            )
            yield f"| {result['name']} | {_cost(result, group['unit'])} |{cells}"
    yield ""
    yield _where(record)


def _cost(result: Record, unit: str) -> str:
    return f"{result['median']:,.{0 if result['median'] >= 100 else 1}f} {unit}"


def scale(record: Record) -> Iterator[str]:
    """A table of how cost grows."""
    yield "| | | × the first of its kind |"
    yield "|---|--:|--:|"
    for group in record["groups"].values():
        for result in group["results"]:
            yield f"| {result['name']} | {_cost(result, group['unit'])} | {result['ratio']:.2f} |"
    yield ""
    yield _where(record)


def ask(record: Record) -> Iterator[str]:
    """A table of round trips, each beside that of two tasks that hand futures to each other."""
    (group,) = record["groups"].values()
    beside = next(result["median"] for result in group["results"] if result["name"] == bars.FUTURES)
    yield f"| {group['title']} | {group['unit']} | × {bars.FUTURES} |"
    yield "|---|--:|--:|"
    for result in group["results"]:
        yield f"| {result['name']} | {result['median']:,.0f} | {result['median'] / beside:.2f} |"
    yield ""
    yield _where(record)


def thread(record: Record) -> Iterator[str]:
    """A table of messages to a thread and back, each beside the same through a queue of culsans."""
    (group,) = record["groups"].values()
    yield f"| {group['title']} | {group['unit']} | × culsans |"
    yield "|---|--:|--:|"
    for result in group["results"]:
        yield f"| {result['name']} | {result['median']:,.0f} | {result['ratio']:.2f} |"
    yield ""
    yield _where(record)


def box(record: Record) -> Iterator[str]:
    """A chart of what a backlog takes beside that of a slotted class, and tables of all that a box costs."""
    groups = record["groups"]
    time, memory, pause = (groups[f"backlog {what}"]["results"] for what in ("time", "memory", "pause"))
    others = [result for pair in zip(time[1:], memory[1:], strict=True) for result in pair]
    count = re.search(r"[\d,]+ messages", groups["backlog time"]["title"])
    assert count is not None
    yield "```mermaid"
    yield "xychart-beta"
    yield f'    title "A backlog of {count[0]}, in % of a slotted class"'
    yield f"    x-axis {json.dumps([result['name'] for result in others])}"
    yield '    y-axis "% of a slotted class" 0 --> 110'
    yield f"    bar {[round(100 * result['ratio'], 1) for result in others]}"
    yield "```"
    yield ""
    yield f"| {count[0]} wait | fill and drain, ns each | bytes each | longest pause of the collector |"
    yield "|---|--:|--:|--:|"
    for row in zip(time, memory, pause, strict=True):
        kind = str(row[0]["name"]).partition(":")[0]
        took, held, paused = (result["median"] for result in row)
        yield f"| {kind} | {took:,.0f} | {held:,.0f} | {paused:,.0f} ms |"
    yield ""
    yield from _by_way("one send, to the end of its handler", groups["sends"])
    yield ""
    yield from _by_way("ten small dicts, to the end of all handlers", groups["broadcasts"])
    yield ""
    yield "| boxes of ten small dicts for 16 receivers | |"
    yield "|---|--:|"
    for result in groups["seals"]["results"]:
        yield f"| {result['name']} | {result['median']:,.0f} ns |"
    yield ""
    yield _where(record)


def _by_way(heading: str, group: Record) -> Iterator[str]:
    """A table with a column for each way to send, and how many times the first one the others cost."""
    costs: dict[str, dict[str, Record]] = {}
    for result in group["results"]:
        what, _, way = str(result["name"]).rpartition(", ")
        costs.setdefault(what, {})[way] = result
    ways = list(next(iter(costs.values())))
    yield f"| {heading} | {' | '.join(ways)} |"
    yield f"|---|{'--:|' * len(ways)}"
    for what, by_way in costs.items():
        first, *rest = by_way.values()
        cells = [f"{each['median']:,.0f} ns ({each['ratio']:.1f} ×)" for each in rest]
        yield f"| {what} | {first['median']:,.0f} ns | {' | '.join(cells)} |"


def link(record: Record) -> Iterator[str]:
    """Tables of what a link carries, and of what must not take long over it."""
    groups = record["groups"]
    yield f"| {groups['rate']['title']} | messages/s | × plain Zenoh |"
    yield "|---|--:|--:|"
    for result in groups["rate"]["results"]:
        yield f"| {result['name']} | {result['median']:,.0f} | {result['ratio']:.2g} |"
    yield ""
    yield "| | | |"
    yield "|---|---|--:|"
    for name in ("ask", "urgent", "recovery", "inbox"):
        group = groups[name]
        for result in group["results"]:
            yield f"| {group['title']} | {result['name']} | {result['median']:,.3g} {group['unit']} |"
    yield ""
    yield _where(record).replace("one core", "all cores")


MAKERS: Mapping[str, tuple[str, Callable[[Record], Iterator[str]]]] = {
    "ask": ("ask", ask),
    "box": ("box", box),
    "congestion": ("congestion", congestion),
    "fanout": ("fanout", to_floor),
    "link": ("link", link),
    "memory": ("memory", costs),
    "priority": ("priority", priority),
    "ring": ("ring", to_floor),
    "scale": ("scale", scale),
    "send": ("send", to_floor),
    "start": ("start", costs),
    "thread": ("thread", thread),
}
"""For each name in a page: the file of figures, and what is made of it."""

_PARTS = "parts-"
"""Before the name of a group of steps, of which each Python has a column."""


_EIGHT = "to 8 subscribers, "

_BARS = "bars"
"""The name of the table of all bars."""

_FILES = (
    "send",
    "ring",
    "fanout",
    "congestion",
    "priority",
    "thread",
    "box",
    "start",
    "memory",
    "scale",
    "link",
)
"""The files of figures in which some have a bar."""


def _send_chart(record: Record) -> str:
    ours = [bars.U8_PLAIN, bars.U8_TRY, bars.U8_RECV]
    shown = [each for each in _results(record) if each["name"] in ours or each["name"].startswith("u8, ")]
    return charts.beside_peers("A message, × floor (asyncio, paler uvloop), logarithmic", shown, ours)


def _ring_chart(record: Record) -> str:
    shown = [each for each in _results(record) if each["name"].startswith("ring of 2,")]
    ours = [bars.ring(2, bars.SYNCHRONOUS), bars.ring(2, bars.ASYNCHRONOUS)]
    return charts.beside_peers(
        "A hop in a ring of two, × floor (asyncio, paler uvloop), logarithmic", shown, ours
    )


def _fanout_chart(record: Record) -> str:
    shown = [each for each in _results(record) if each["name"].startswith("to 8 ")]
    return charts.beside_peers(
        "A message to eight, for each of them, × floor (asyncio, paler uvloop), logarithmic",
        [{**each, "name": each["name"].removeprefix(_EIGHT)} for each in shown],
        [bars.fanout(8)],
    )


def _scale_chart(record: Record) -> str:
    return charts.curves("How cost grows, × the cost of the fewest", dict(charts.growth(record)))


def _results(record: Record) -> Sequence[Record]:
    (group,) = record["groups"].values()
    results: Sequence[Record] = group["results"]
    return results


CHARTS: Mapping[str, Callable[[Record], str]] = {
    "send": _send_chart,
    "ring": _ring_chart,
    "fanout": _fanout_chart,
    "scale": _scale_chart,
}
"""For each file of figures with a chart: what draws it."""


def _short(result: Record) -> str:
    name = str(result["name"]).rpartition(",")[0]
    return name.removeprefix("the fast subscriber ").removeprefix("beside a slow one, ")


def _rate(result: Record) -> str:
    return f"{result['median']:,.0f}"


def _percent(result: Record) -> str:
    return f"{100 * result['ratio']:.2g} %" if result["ratio"] < 0.1 else f"{100 * result['ratio']:.0f} %"


def _where(record: Record) -> str:
    return f"Python {record['python']}, {record['processor']}, one core; medians."


def filled(text: str, folder: Path = RESULTS) -> str:
    """A page with the figures of `folder` in their places."""

    def fill(place: re.Match[str]) -> str:
        start, name, end = place.groups()
        lines = list(_lines(name, folder)) or [NOT_MEASURED]
        return "\n".join([start, *lines, "", end])

    return _PLACE.sub(fill, text)


def _lines(name: str, folder: Path) -> Iterator[str]:
    """What is made for a name in a page; nothing where nothing was measured."""
    if name.startswith(_PARTS):
        if records := every("parts", folder):
            yield from tables.table(records, name.removeprefix(_PARTS))
            yield ""
            yield _where(records[-1]).partition(", ")[2]
        return
    if name == _BARS:
        files = {each: records for each in _FILES if (records := every(each, folder))}
        if files:
            yield from against_bars.table(files)
        return
    source, make = MAKERS[name]
    if (record := newest(source, folder)) is not None:
        yield from make(record)


def main(words: Sequence[str] | None = None, docs: Path = DOCS, folder: Path = RESULTS) -> int:
    """Fill the pages, or check them; gives the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.figures", description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit with 1 if a page would change"
    )
    check = parser.parse_args(words).check
    stale = False
    for page, text in _made(docs, folder):
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            stale = True
            print(f"{page.name} {'is not up to date' if check else 'is up to date now'}")
            if not check:
                page.parent.mkdir(parents=True, exist_ok=True)
                page.write_text(text, encoding="utf-8")
    return 1 if check and stale else 0


def _made(docs: Path, folder: Path) -> Iterator[tuple[Path, str]]:
    """The pages and charts as they should be."""
    for page in [docs.parent / "README.md", *sorted(docs.glob("*.md"))]:
        if page.exists():
            yield page, filled(page.read_text(encoding="utf-8"), folder)
    for name, draw in CHARTS.items():
        if (record := newest(name, folder)) is not None:
            yield docs / "charts" / f"{name}.svg", draw(record)


if __name__ == "__main__":
    sys.exit(main())
