"""The figures of report.md from results/*.json: `python figures.py` writes them to figures/.

The word-level recipe's curves come from the lab notebook; one of its positions is a word, 5.02 characters of
`wiki.txt` on average (415,415 characters, 82,705 words and marks).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from attnlab.report.figures import COLOURS, STYLE, plt

HERE = Path(__file__).resolve().parent
NOTEBOOK = HERE.parents[1] / "docs" / "notebook" / "data" / "birthplaces.json"
CHARACTERS_PER_WORD = 415_415 / 82_705
LONDON = 25 / 500
SIDES = (("characters", 1e6, "million characters read in pretraining"), ("seconds", 60.0, "minutes of pretraining"))
GROUPS = {
    "preset fast, vanilla": ("ten-minutes", "fast-vanilla-half-2", "fast-vanilla-half-3", "fast-vanilla"),
    "preset fast, synthesizer": ("fast-synthesizer",),
    "the course's settings, vanilla": ("course-vanilla",),
}
ABLATIONS = ("ten-minutes", "ten-all", "ten-whole-text", "ten-no-rank", "ten-no-place", "ten-everywhere")
ABLATIONS += ("ten-adamw", "ten-learned")


def results() -> dict[str, dict[str, Any]]:
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(HERE.glob("results/*.json"))}


def accuracy_by_cost(measured: dict[str, dict[str, Any]]) -> Any:
    """Dev accuracy against characters read and against time; bars are 95% intervals over the questions."""
    words = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["modern"]
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, 2, figsize=(10.5, 4.2), sharey=True)
        for side, (key, unit, label) in zip(axes, SIDES, strict=True):
            for number, (group, names) in enumerate(GROUPS.items()):
                points = [measured[name] for name in names if name in measured]
                if points:
                    values = [point["dev"]["accuracy"] for point in points]
                    spread = [
                        [value - point["dev"]["interval"][0] for value, point in zip(values, points, strict=True)],
                        [point["dev"]["interval"][1] - value for value, point in zip(values, points, strict=True)],
                    ]
                    costs = [point["pretrain"][key] / unit for point in points]
                    side.errorbar(costs, values, spread, fmt="o", capsize=3, color=COLOURS[number], label=group)
            factor = CHARACTERS_PER_WORD if key == "characters" else 1.0
            for number, run in enumerate(words):
                costs = [cost * factor / unit for cost in run["positions" if key == "characters" else key]]
                name = "words as tokens, questions mixed in, three seeds" if number == 0 else None
                side.plot(costs, run["accuracy"], color=COLOURS[3], linewidth=1, label=name)
            side.axhline(LONDON, linestyle=":", color="#4a5568", label='always "London"')
            side.set(xlabel=label, ylim=(0, None))
        axes[0].set(ylabel="accuracy on dev questions")
        axes[0].yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        axes[1].legend(fontsize=8)
        return figure


def ablation_bars(measured: dict[str, dict[str, Any]]) -> Any:
    """Dev accuracy after ten minutes of pretraining, one ingredient changed at a time."""
    rows = [measured[name] for name in reversed(ABLATIONS) if name in measured]
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(7.5, 0.8 + 0.42 * len(rows)))
        values = [row["dev"]["accuracy"] for row in rows]
        spread = [
            [value - row["dev"]["interval"][0] for value, row in zip(values, rows, strict=True)],
            [row["dev"]["interval"][1] - value for value, row in zip(values, rows, strict=True)],
        ]
        axes.barh([row["about"] for row in rows], values, xerr=spread, color=COLOURS[0], error_kw={"capsize": 3})
        axes.axvline(LONDON, linestyle=":", color="#4a5568")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        axes.grid(axis="y", visible=False)
        axes.set(xlabel='accuracy on dev questions (dotted: always "London")')
        return figure


def main() -> None:
    (HERE / "figures").mkdir(exist_ok=True)
    measured = results()
    for name, figure in {"accuracy": accuracy_by_cost(measured), "ablations": ablation_bars(measured)}.items():
        path = HERE / "figures" / f"{name}.png"
        figure.savefig(path, dpi=130, bbox_inches="tight")
        plt.close(figure)
        print(path.relative_to(HERE))


if __name__ == "__main__":
    main()
