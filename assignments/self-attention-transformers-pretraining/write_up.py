"""The figures and tables of report.md from results/*.json: `python write_up.py` renews both.

A table stands between `<!-- table: NAME -->` and `<!-- end -->`, and has a row for every result that is there; the
output of a command, results/NAME.txt, between `<!-- output: NAME -->` and `<!-- end -->`.

The word-level recipe's curves come from the lab notebook; one of its positions is a word, 5.02 characters of
`wiki.txt` on average (415,415 characters, 82,705 words and marks).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from matplotlib.ticker import MaxNLocator

from attnlab.report.figures import COLOURS, styled, subplots

HERE = Path(__file__).resolve().parent
NOTEBOOK = HERE.parents[1] / "docs" / "notebook" / "data" / "birthplaces.json"
CHARACTERS_PER_WORD = 415_415 / 82_705
LONDON = 25 / 500
SIDES = (("characters", 1e6, "million characters read in pretraining"), ("seconds", 60.0, "minutes of pretraining"))
GROUPS = {
    "preset fast, vanilla": ("ten-minutes", "fast-vanilla-half-2", "fast-vanilla-half-3", "fast-vanilla"),
    "preset fast, synthesizer": ("ten-synthesizer", "fast-synthesizer"),
    "the course's settings, vanilla": ("course-vanilla",),
}
ACCURACIES = ("scratch-vanilla", "scratch-fast", "course-vanilla", "fast-vanilla-half-2", "fast-vanilla-half-3")
ACCURACIES += ("fast-vanilla", "fast-synthesizer")
ABLATIONS = ("ten-minutes", "ten-all", "ten-whole-text", "ten-no-rank", "ten-no-place", "ten-everywhere")
ABLATIONS += ("ten-adamw", "ten-learned", "ten-synthesizer")
PASSES, EPOCHS = 650, 75  # of the course's pretraining, and of its fine-tuning without pretraining


def results() -> dict[str, dict[str, Any]]:
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(HERE.glob("results/*.json"))}


def word_level_runs() -> list[dict[str, Any]]:
    """Those of the notebook; none beside a copy of this folder alone."""
    if not NOTEBOOK.is_file():
        print(
            "note: the lab notebook is not beside this folder: figures/accuracy.png is without the word-level recipe."
        )
        return []
    runs: list[dict[str, Any]] = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["modern"]
    return runs


def accuracy_by_cost(measured: dict[str, dict[str, Any]]) -> Any:
    """Dev accuracy against characters read and against time; bars are 95% intervals over the questions."""
    words = word_level_runs()
    with styled():
        figure, axes = subplots(1, 2, figsize=(10.5, 4.2), sharey=True)
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
        lines, names = axes[1].get_legend_handles_labels()
        figure.legend(lines, names, loc="upper center", bbox_to_anchor=(0.5, 0.02), ncol=3, fontsize=9)
        return figure


def ablation_bars(measured: dict[str, dict[str, Any]]) -> Any:
    """Dev accuracy after ten minutes of pretraining, one ingredient changed at a time."""
    rows = [measured[name] for name in reversed(ABLATIONS) if name in measured]
    with styled():
        figure, axes = subplots(figsize=(7.5, 0.8 + 0.42 * len(rows)))
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


def course_curve(measured: dict[str, dict[str, Any]]) -> Any:
    """The training loss of the course's settings, pass by pass."""
    curve = measured["course-vanilla"]["pretrain"]["losses"]
    with styled():
        figure, axes = subplots(figsize=(6.5, 3.2))
        axes.plot(range(1, len(curve) + 1), curve, color=COLOURS[0])
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set(xlabel="passes over wiki.txt", ylabel="training loss per character")
        return figure


def accuracies(measured: dict[str, dict[str, Any]]) -> Iterator[str]:
    """One row per model that was asked: what it read, for how long, and what it answers."""
    yield "| model | seed | passes | characters | minutes | dev accuracy (95% over questions) | retrieved | made up |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for name in ACCURACIES:
        if name in measured:
            row = measured[name]
            read = row.get("pretrain", {"epochs": 0, "characters": 0, "seconds": 0.0})
            cells = [
                f"{row['about']} (`{name}`)",
                str(row["seed"]),
                str(read["epochs"]),
                f"{read['characters']:,}",
                f"{read['seconds'] / 60:.0f}",
                _dev(row),
                *(_traced(row, kind) for kind in ("retrieved", "made_up")),
            ]
            yield f"| {' | '.join(cells)} |"


def ablations(measured: dict[str, dict[str, Any]]) -> Iterator[str]:
    """One ingredient of the preset changed at a time."""
    yield "| changed | characters read | minutes | dev accuracy (95% over questions) | against the preset |"
    yield "| --- | --- | --- | --- | --- |"
    base = measured.get(ABLATIONS[0])
    for name in ABLATIONS:
        if name in measured:
            row = measured[name]
            difference = ""
            if base is not None and name != ABLATIONS[0]:
                difference = f"{row['dev']['accuracy'] - base['dev']['accuracy']:+.1%}"
            read = row["pretrain"]
            cells = [row["about"], f"{read['characters']:,}", f"{read['seconds'] / 60:.0f}", _dev(row), difference]
            yield f"| {' | '.join(cells)} |"
    if any(name in measured for name in ABLATIONS):
        yield from ("", "![Dev accuracy with one ingredient changed at a time](figures/ablations.png)")


def course(measured: dict[str, dict[str, Any]]) -> Iterator[str]:
    """How far the course's settings came, and how long all of their passes would take."""
    if "course-vanilla" in measured:
        row = measured["course-vanilla"]
        read, losses = row["pretrain"], row["pretrain"]["losses"]
        yield (
            f"Here they had {read['epochs']} of the {PASSES} passes, with the schedule rescaled to them: "
            f"{read['characters']:,} characters in {read['seconds'] / 60:.0f} minutes. "
            f"The loss per character fell from {losses[0]:.2f} in the first pass to {losses[-1]:.2f} in the last, and "
            f"after fine-tuning {row['dev']['right']} of {row['dev']['total']} dev answers were right. All passes "
            f"would take {read['seconds'] / read['epochs'] * PASSES / 3600:.0f} hours at that rate."
        )
        yield from ("", "![Training loss of the course's settings by passes](figures/course.png)")


def scratch(measured: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Part (d) in a sentence per model without pretraining."""
    for name, settings in (("scratch-vanilla", "the course's settings"), ("scratch-fast", "those of the preset")):
        if name in measured:
            row = measured[name]
            trained = row["finetune"]
            minutes = trained["seconds"] / 60
            yield (
                f"- Fine-tuned without pretraining with {settings}, {trained['epochs']} epochs in {minutes:.0f} "
                f"minutes: {row['dev']['right']} of {row['dev']['total']} dev answers are right, **{_dev(row)}**."
            )
            if name == "scratch-vanilla" and trained["epochs"] < EPOCHS:
                yield (
                    f"  The document has {EPOCHS} epochs in ten minutes of its cloud machine; at this rate they would "
                    f"take {minutes / trained['epochs'] * EPOCHS:.0f} here, so the schedule is rescaled to fewer."
                )


def examples(measured: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Part 3 (b): the first right and wrong answers of the longest pretraining that kept some."""
    kept = [name for name in GROUPS["preset fast, vanilla"] if "examples" in measured.get(name, {})]
    if kept:
        row = measured[kept[-1]]
        yield f"The first right and wrong answers of `{kept[-1]}` on dev; nothing in an answer says which it is:"
        yield ""
        yield "| question | answer | right answer | where the answer stands |"
        yield "| --- | --- | --- | --- |"
        for shown in (*row["examples"]["right"], *row["examples"]["wrong"]):
            origin = f"line {shown['lines'].replace(',', ', ')}" if shown["lines"] else shown["kind"]
            yield f"| {shown['question']} | {shown['answer']} | {shown['expected']} | {origin} |"


def commands(measured: dict[str, dict[str, Any]]) -> Iterator[str]:
    """The options that pretrained each model."""
    yield "| model | pretraining | machine | notes |"
    yield "| --- | --- | --- | --- |"
    for name in dict.fromkeys((*ACCURACIES, *ABLATIONS)):
        if name in measured:
            row = measured[name]
            trained = row.get("pretrain", row.get("finetune", {}))
            first = row["commands"][0].partition(" wiki.txt ")[2]
            options = re.sub(r"--(writing_params_path|finetune_corpus_path) \S+ ?", "", first).strip()
            machine = trained.get("machine", {})
            what = row["variant"] if "pretrain" in row else f"{row['variant']}, none; fine-tuning"
            cells = [f"`{name}`", f"{what} `{options}`", f"{machine.get('cpu', '')}, {_cores(machine)}"]
            yield f"| {' | '.join([*cells, ' '.join(trained.get('notes', []))])} |"


def _cores(machine: dict[str, Any]) -> str:
    count = machine.get("cores", 0)
    return f"{count} core{'s' if count != 1 else ''}"


def _dev(row: dict[str, Any]) -> str:
    low, high = row["dev"]["interval"]
    return f"{row['dev']['accuracy']:.1%} ({low:.1%} to {high:.1%})"


def _traced(row: dict[str, Any], kind: str) -> str:
    counts = row["trace"].get(kind, {"answers": 0, "right": 0})
    return f"{counts['answers']}, {counts['right']} right"


TABLES: dict[str, Callable[[dict[str, dict[str, Any]]], Iterator[str]]] = {
    "scratch": scratch,
    "accuracies": accuracies,
    "ablations": ablations,
    "course": course,
    "examples": examples,
    "commands": commands,
}


def filled(report: str, measured: dict[str, dict[str, Any]]) -> str:
    """The report with every table as the results have it."""

    def table(match: re.Match[str]) -> str:
        rows = "\n".join(TABLES[match[2]](measured))
        return f"{match[1]}\n{rows}\n\n{match[3]}" if rows else f"{match[1]}{match[3]}"

    def output(match: re.Match[str]) -> str:
        path = HERE / "results" / f"{match[2]}.txt"
        text = f"\n```text\n{path.read_text(encoding='utf-8').rstrip()}\n```\n\n" if path.is_file() else ""
        return f"{match[1]}{text}{match[3]}"

    report = re.sub(r"(<!-- output: ([\w-]+) -->\n).*?(<!-- end -->)", output, report, flags=re.DOTALL)
    return re.sub(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", table, report, flags=re.DOTALL)


FIGURES: dict[str, tuple[Callable[[dict[str, dict[str, Any]]], Any], tuple[str, ...]]] = {
    "accuracy": (accuracy_by_cost, ()),
    "ablations": (ablation_bars, ABLATIONS),
    "course": (course_curve, ("course-vanilla",)),
}
"""Each with the results of which it needs one; the first has curves without any."""


def draw_all(measured: dict[str, dict[str, Any]], folder: Path) -> list[Path]:
    """The figures of the results that there are."""
    folder.mkdir(exist_ok=True)
    paths = []
    for name, (draw, needed) in FIGURES.items():
        if not needed or any(one in measured for one in needed):
            figure = draw(measured)
            paths.append(folder / f"{name}.png")
            figure.savefig(paths[-1], dpi=130, bbox_inches="tight")
    return paths


def main() -> None:
    measured = results()
    for path in draw_all(measured, HERE / "figures"):
        print(path.relative_to(HERE))
    report = HERE / "report.md"
    report.write_text(filled(report.read_text(encoding="utf-8"), measured), encoding="utf-8")
    print(report.relative_to(HERE))


if __name__ == "__main__":
    main()
