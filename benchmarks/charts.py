"""Charts as SVG, made from the committed figures; they follow the reader's light or dark theme."""

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

import attrs

WIDTH = 760
LABELS = 260
ROW = 22
PLOT = WIDTH - LABELS - 70

_STYLE = """<style>
text { font: 12px system-ui, sans-serif; fill: #333 }
.title { font-weight: 600; font-size: 14px }
.ours { fill: #3f6fb5 } .other { fill: #b9bec6 } .second { fill-opacity: .55 }
.grid { stroke: #8888; stroke-width: .5 } .line { fill: none; stroke-width: 2 }
@media (prefers-color-scheme: dark) { text { fill: #ddd } .other { fill: #6c727c } .ours { fill: #6f9fe0 } }
</style>"""

COLOURS = ("#3f6fb5", "#d08a2e", "#4b9b6a", "#a05195")


@attrs.frozen
class Bar:
    """One row: a value on asyncio's loop, and perhaps one on uvloop."""

    label: str
    value: float
    second: float | None = None
    ours: bool = False


def bars(title: str, rows: Sequence[Bar]) -> str:
    """A bar for each row, on a logarithmic scale, with its value at its end; the paler half is uvloop."""
    most = max(max(row.value, row.second or 0) for row in rows)
    least = min(row.value for row in rows) / 2

    def length(value: float) -> float:
        return PLOT * math.log(max(value, least) / least) / math.log(most / least)

    lines = [f'<text class="title" x="0" y="16">{escape(title)}</text>']
    for place, row in enumerate(rows):
        top = 30 + place * ROW
        kind = "ours" if row.ours else "other"
        lines.append(f'<text x="{LABELS - 8}" y="{top + 13}" text-anchor="end">{escape(row.label)}</text>')
        height = 16 if row.second is None else 8
        lines.append(_rectangle(kind, top, length(row.value), height))
        told = f"{row.value:,.1f}"
        if row.second is not None:
            lines.append(_rectangle(f"{kind} second", top + 8, length(row.second), 8))
            told += f" / {row.second:,.1f}"
        end = LABELS + max(length(row.value), length(row.second or 0)) + 6
        lines.append(f'<text x="{end:.0f}" y="{top + 13}">{told}</text>')
    return _svg(lines, 36 + len(rows) * ROW, WIDTH + 60)


def _rectangle(kind: str, top: int, width: float, height: int) -> str:
    return f'<rect class="{kind}" x="{LABELS}" y="{top}" width="{width:.1f}" height="{height}"/>'


def curves(title: str, series: Mapping[str, Sequence[tuple[float, float]]], most: float = 4.0) -> str:
    """A line for each series of (how many, how many times the cost of the fewest), how many logarithmic."""
    counts = [count for points in series.values() for count, _ in points]
    first, last = math.log10(min(counts)), math.log10(max(counts))
    left, top, height = 40, 34, 200

    def x(count: float) -> float:
        return left + (WIDTH - left - 20) * (math.log10(count) - first) / (last - first)

    def y(ratio: float) -> float:
        return top + height * (1 - min(ratio, most) / most)

    lines = [f'<text class="title" x="0" y="16">{escape(title)}</text>']
    lines += [
        f'<line class="grid" x1="{left}" x2="{WIDTH - 20}" y1="{y(ratio):.0f}" y2="{y(ratio):.0f}"/>'
        f'<text x="{left - 8}" y="{y(ratio) + 4:.0f}" text-anchor="end">{ratio} ×</text>'
        for ratio in range(int(most) + 1)
    ]
    lines += [
        f'<text x="{x(10**power):.0f}" y="{top + height + 18}" text-anchor="middle">{10**power:,}</text>'
        for power in range(math.ceil(first), math.floor(last) + 1)
    ]
    for place, (name, points) in enumerate(series.items()):
        colour = COLOURS[place % len(COLOURS)]
        path = " ".join(f"{x(count):.1f},{y(ratio):.1f}" for count, ratio in points)
        lines.append(f'<polyline class="line" stroke="{colour}" points="{path}"/>')
        below = top + height + 40 + place * 18
        lines.append(f'<rect x="{left}" y="{below - 10}" width="12" height="12" style="fill:{colour}"/>')
        lines.append(f'<text x="{left + 20}" y="{below}">{escape(name)}</text>')
    return _svg(lines, top + height + 44 + len(series) * 18, WIDTH)


def _svg(lines: Sequence[str], height: int, width: int) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">'
    return "\n".join([head, _STYLE, *lines, "</svg>", ""])


Record = Mapping[str, Any]


def beside_peers(title: str, results: Sequence[Record], ours: Sequence[str]) -> str:
    """A chart of ratios to the floor, with those of orchestra marked."""
    rows = [
        Bar(
            result["name"],
            result["ratio_to_floor"],
            result.get("uvloop", {}).get("ratio_to_floor"),
            ours=result["name"] in ours,
        )
        for result in results
    ]
    return bars(title, sorted(rows, key=lambda row: row.value))


def growth(record: Record) -> Iterator[tuple[str, Sequence[tuple[float, float]]]]:
    """The series of the group `scale`."""
    for name in ("subsystems", "waiting", "decorating"):
        group = record["groups"][name]
        points = [(_count(result["name"]), float(result["ratio"])) for result in group["results"]]
        yield f"{group['title']}, {group['unit']}", points


def _count(name: str) -> float:
    """The number in the name of a case."""
    return float("".join(letter for letter in name if letter.isdigit()))
