"""The picture of the README, from results of the lab notebook: `python docs/images/overview.py` draws overview.png.

Left: eleven kinds of attention on one text. Right: facts read in few or many wordings, and recalled.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from matplotlib import pyplot as plt
from matplotlib.ticker import PercentFormatter

from attnlab.report.figures import COLOURS, STYLE

HERE = Path(__file__).parent
DATA = HERE.parent / "notebook" / "data"
MARKED = COLOURS[4]


def main() -> None:
    with plt.rc_context(STYLE):
        figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.6))
        _attention(left, _variants("attention"))
        _recall(right, _variants("paraphrases"))
        figure.savefig(HERE / "overview.png", dpi=110)


def _variants(name: str) -> list[dict[str, Any]]:
    return list(json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))["variants"])


def _attention(axes: Any, rows: list[dict[str, Any]]) -> None:
    """Perplexity prefix by prefix, where nothing can see the future; the ring: one pass, of the variant that does."""
    rows = sorted(rows, key=lambda row: -row["prefix_perplexity"])
    for place, row in enumerate(rows):
        colour = MARKED if row["sees_future"] else COLOURS[0]
        if row["sees_future"]:
            axes.plot(row["sample_perplexity"], place, "o", color=colour, markerfacecolor="white")
            tail, head = row["sample_perplexity"] * 1.07, row["prefix_perplexity"] * 0.95
            axes.annotate("", (head, place), (tail, place), arrowprops={"arrowstyle": "->", "color": colour})
            axes.text(tail, place + 0.3, "measured in one pass it sees the future", color=colour, fontsize=8)
        axes.plot(row["prefix_perplexity"], place, "o", color=colour)
    axes.set_yticks(range(len(rows)), [row["label"] for row in rows])
    axes.set_xscale("log")
    ticks = (6, 8, 10, 20, 30)
    axes.set_xticks(ticks, map(str, ticks))
    axes.minorticks_off()
    axes.set(title="Eleven kinds of attention, one text", xlabel="perplexity, prefix by prefix (mean of 3 seeds)")
    axes.grid(axis="y", visible=False)


def _recall(axes: Any, rows: list[dict[str, Any]]) -> None:
    rows = sorted(rows, key=lambda row: row["settings"]["world.paraphrases"])
    wordings = [str(row["settings"]["world.paraphrases"]) for row in rows]
    for measure, label, colour in (
        ("told_accuracy", "place known in the text", COLOURS[2]),
        ("test_accuracy", "question answered", COLOURS[1]),
    ):
        means = [row[measure]["mean"] for row in rows]
        low = [row[measure]["mean"] - row[measure]["interval"][0] for row in rows]
        high = [min(row[measure]["interval"][1], 1.0) - row[measure]["mean"] for row in rows]
        axes.errorbar(wordings, means, yerr=(low, high), label=label, color=colour, marker="o", capsize=3)
    axes.axhline(rows[0]["test_baseline"]["mean"], color="#4a5568", linestyle=":", label="most common place")
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.set_ylim(0, 1.05)
    axes.set(
        title="Stored is not the same as recalled", xlabel="wordings per fact in pretraining (3 seeds, 95% intervals)"
    )
    axes.legend(loc="lower right", bbox_to_anchor=(1, 0.1))


if __name__ == "__main__":
    main()
