"""Tables and figure of what `attention.py` measured."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from attention_cells import Cell
from PIL import Image

from attnlab.attention.audit.cost import exponent
from attnlab.report.figures import COLOURS, styled, subplots

FITTED = 4
"""The powers are fitted over this many of the longest lengths: short ones are dominated by call overhead."""

Rows = dict[str, list[Cell]]
Value = Callable[[Cell], float]


def exponents(cells: Sequence[Cell]) -> dict[str, dict[str, Any]]:
    """Fitted and promised powers of T, by side; None where fewer than two lengths ran."""
    powers = {}
    for name, row in _rows(cells).items():
        ran = [cell for cell in row if not cell.skipped]
        lengths = [cell.length for cell in ran]
        enough = len(lengths) >= 2
        powers[name] = {
            "over": lengths[-FITTED:],
            "time": exponent(lengths, [cell.seconds for cell in ran], FITTED) if enough else None,
            "time_promised": row[0].side.time,
            "memory": exponent(lengths, [cell.megabytes for cell in ran], FITTED) if enough else None,
            "memory_promised": row[0].side.memory,
        }
    return powers


def tables(cells: Sequence[Cell]) -> str:
    """Markdown: each side at the longest length, the ratios at all lengths, and the skipped cells."""
    rows = _rows(cells)
    lengths = sorted({cell.length for cell in cells})
    parts = [
        f"### At T = {lengths[-1]}\n",
        _longest(rows, exponents(cells)),
        "\n### Time as a multiple of torch-fused\n",
        _ratios(rows, lengths, _time_ratio),
        "\n### Peak memory as a multiple of torch-fused\n",
        _ratios(rows, lengths, lambda cell, base: cell.megabytes / base.megabytes),
        "",
        *(f"{cell.side.name} at T = {cell.length} was skipped: it {cell.skipped}." for cell in cells if cell.skipped),
        _verdict(cells),
    ]
    return "\n".join(parts) + "\n"


def _rows(cells: Sequence[Cell]) -> Rows:
    rows: Rows = {}
    for cell in cells:
        rows.setdefault(cell.side.name, []).append(cell)
    return rows


def _longest(rows: Rows, powers: dict[str, dict[str, Any]]) -> str:
    head = [
        "",
        "forward ms",
        "backward ms",
        "× torch-fused",
        "× gpt2-sdpa",
        "MB",
        "time",
        "promised",
        "memory",
        "promised",
    ]
    body = []
    for name, row in rows.items():
        cell, power = row[-1], powers[name]
        fits = [_power(power[key]) for key in ("time", "time_promised", "memory", "memory_promised")]
        if cell.skipped:
            body.append([name, *["–"] * 5, *fits])
            continue
        passes = [f"{1e3 * statistics.median(samples):.1f}" for samples in (cell.forward, cell.backward)]
        ratios = [_ratio(_time_ratio(cell, rows[peer][-1])) for peer in ("torch-fused", "gpt2-sdpa")]
        body.append([name, *passes, *ratios, f"{cell.megabytes:.0f}", *fits])
    return _table(head, body)


def _ratios(rows: Rows, lengths: Sequence[int], ratio: Callable[[Cell, Cell], float | None]) -> str:
    body = []
    for name, row in rows.items():
        pairs = zip(row, rows["torch-fused"], strict=True)
        body.append([name, *("–" if a.skipped or b.skipped else _ratio(ratio(a, b)) for a, b in pairs)])
    return _table(["T", *map(str, lengths)], body)


def _time_ratio(cell: Cell, base: Cell) -> float | None:
    """The median over rounds of the ratio within the round."""
    pairs = list(zip(cell.samples, base.samples, strict=False))
    return statistics.median(a / b for a, b in pairs) if pairs else None


def _ratio(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}" if value < 10 else f"{value:.0f}"


def _power(value: float | None) -> str:
    return "–" if value is None else f"T^{value:.2f}" if value != round(value) else f"T^{value:g}"


def _table(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, rule, *body])


def _verdict(cells: Sequence[Cell]) -> str:
    """The largest power among the variants that promise to be linear."""
    linear = {
        name: power["time"]
        for name, power in exponents(cells).items()
        if power["time_promised"] == 1 and power["time"] is not None
    }
    if not linear:
        return ""
    worst = max(linear, key=lambda name: linear[name])
    return f"Of those that promise O(T), the steepest is {worst}: T^{linear[worst]:.2f} in time."


STYLES = {"torch-fused": "-", "gpt2-sdpa": "--", "gpt2-eager": ":"}


def draw(cells: Sequence[Cell], path: Path) -> None:
    """Time and memory over T, both logarithmic: peers black, linear ones in colour, the others grey."""
    rows = _rows([cell for cell in cells if not cell.skipped])
    lengths = sorted({cell.length for cell in cells})
    panels: dict[str, Value] = {
        "milliseconds, forward and backward": lambda cell: 1e3 * cell.seconds,
        "megabytes at the peak": lambda cell: cell.megabytes,
    }
    with styled():
        figure, places = subplots(1, 2, figsize=(10, 5))
        for axes, (title, value) in zip(places, panels.items(), strict=True):
            for name, look in _looks(rows).items():
                axes.plot([cell.length for cell in rows[name]], [value(cell) for cell in rows[name]], **look)
                last = rows[name][-1]
                if last.length < lengths[-1]:  # the rest was skipped
                    axes.annotate(
                        name, (last.length, value(last)), textcoords="offset points", xytext=(5, -3), fontsize=8
                    )
            axes.set(title=title, xlabel="T", xscale="log", yscale="log")
            axes.set_xticks(lengths, [str(length) for length in lengths])
            axes.minorticks_off()
            _guides(axes, [[value(cell) for cell in row] for row in rows.values()], lengths)
        places[0].legend(fontsize=8, loc="upper left")
        figure.savefig(path, dpi=100)
    # With few colours a palette makes the file a quarter as large.
    Image.open(path).convert("RGB").quantize(256).save(path, optimize=True)


def _looks(rows: Rows) -> dict[str, dict[str, Any]]:
    """How the line of each side is drawn."""
    looks: dict[str, dict[str, Any]] = {}
    colours = iter((*COLOURS[:5], COLOURS[7]) * 9)  # grey is used already, and ochre is too similar to orange
    grey = "all others, O(T²) in time"
    for name, row in rows.items():
        side = row[0].side
        if side.peer:
            looks[name] = {"color": "black", "linestyle": STYLES[name], "linewidth": 1.6, "label": name, "zorder": 3}
        elif side.time == 1:
            looks[name] = {"color": next(colours), "marker": "o", "markersize": 3.5, "label": name, "zorder": 4}
        else:
            looks[name] = {"color": "#a0aec0", "linewidth": 0.9, "label": grey, "zorder": 2}
            grey = "_"  # one entry in the legend is enough for all
    return looks


def _guides(axes: Any, heights: list[list[float]], lengths: Sequence[int]) -> None:
    """Slopes of T and T² for reference, below all measurements."""
    low = min(min(row) for row in heights) * 0.7
    for power, label in ((1, "T"), (2, "T²")):
        ends = [lengths[-1] / 4, lengths[-1]]
        axes.plot(ends, [low, low * 4**power], color="#4a5568", linewidth=0.8, linestyle="-.")
        axes.annotate(label, (ends[-1], low * 4**power), textcoords="offset points", xytext=(4, -3), fontsize=8)
