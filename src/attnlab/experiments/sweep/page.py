"""The page of a sweep: one self-contained report.html."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from attnlab.experiments.sweep import figures, words
from attnlab.experiments.sweep.results import Results, Tested
from attnlab.experiments.sweep.space import Choices
from attnlab.report.page import Figure, Passage, Table, draw, reproduction_passage, write_page


def write_sweep_page(root: Path, results: Results, tested: Tested | None, importance: Mapping[str, float]) -> Path:
    """Write report.html and figures/*.png into a sweep's folder."""
    (root / "figures").mkdir(exist_ok=True)
    config = results.config
    passages = [
        Passage(
            "What came out",
            words.verdicts(results, tested),
            [words.table(results)],
            _landscape(root, results, importance),
        ),
        _matters(root, results, importance),
        _way(root, results),
        Passage("What it cost", [words.counts(results)]),
        _reasons(results),
        Passage("Read with care", words.cautions(results)),
        reproduction_passage(
            results.record, config.model_dump(mode="json"), results.example.get("data", {}), config.machine.threads
        ),
    ]
    path = root / "report.html"
    title = f"Sweep of {config.sweep.job}: {', '.join(results.axes)}"
    write_page(path, title, words.lead(results), [passage for passage in passages if passage is not None])
    return path


def _landscape(root: Path, results: Results, importance: Mapping[str, float]) -> list[Figure]:
    varied = [name for name, axis in results.axes.items() if not isinstance(axis, Choices) or len(axis.values) > 1]
    shown = sorted(varied, key=lambda name: -importance.get(name, 0.0))[:2]
    if not results.finished or not shown:
        return []
    shown = [name for name in varied if name in shown]  # in the order they were named
    rest = "" if len(varied) <= 2 else f" The two settings that matter most; the best over {len(varied) - 2} more."
    seeds = "mean over seeds" if results.config.sweep.seeds > 1 else "one seed"
    caption = f"{results.measure.title.capitalize()}, {seeds}.{rest}"
    return [draw(root, "landscape", figures.landscape(results, shown), caption)]


def _matters(root: Path, results: Results, importance: Mapping[str, float]) -> Passage | None:
    if not results.finished or len(results.axes) < 2:
        return None
    caption = "A line for each cell, bright is better, the best one thick; dotted: pruned."
    drawn = [draw(root, "parallel", figures.parallel(results), caption)]
    if importance:
        drawn.append(
            draw(root, "importance", figures.weights(importance), "How much each setting matters (PED-ANOVA).")
        )
    few = "" if importance else "There are too few finished cells to say how much each setting matters."
    return Passage("How the settings matter", [few] if few else [], figures=drawn)


def _way(root: Path, results: Results) -> Passage | None:
    if results.config.sweep.search == "grid" or not results.finished:
        return None
    caption = "Every trial in the order it was begun, and the best so far."
    return Passage("The way there", figures=[draw(root, "history", figures.way(results), caption)])


def _reasons(results: Results) -> Passage | None:
    rows = [[row.label, str(seed), row.state, reason] for row in results.rows for seed, reason in row.reasons.items()]
    return Passage("What did not finish", tables=[Table(["cell", "seed", "state", "reason"], rows)]) if rows else None
