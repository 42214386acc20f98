"""The report of a sweep: what was chosen, on what, and what that does not show; one page, and results.json."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attnlab.base.console import clock
from attnlab.config.axes import short_names, show, varied
from attnlab.config.sections import machine_of
from attnlab.experiments import sweep_baselines as baselines
from attnlab.experiments.results import ExperimentRow, SweepResults, TestScores, seeds_text
from attnlab.report.page import Figure, Passage, Table, draw, reproduction_passage, write_page
from attnlab.stats.intervals import Measure, plain, plus_minus

SEARCHES = {
    "grid": "every value with every other",
    "random": "settings drawn at random",
    "guided": "settings drawn by TPE from the scores so far",
}


def write_sweep_page(
    root: Path, results: SweepResults, tested: TestScores | None, importance: Mapping[str, float]
) -> Path:
    """Write report.html and figures/*.png into a sweep's folder."""
    (root / "figures").mkdir(exist_ok=True)
    config = results.config
    reasons = [
        [row.label, str(seed), row.state, reason] for row in results.rows for seed, reason in row.failures.items()
    ]
    unfinished = Table(["cell", "seed", "state", "reason"], reasons)
    passages = [
        Passage("What came out", verdicts(results, tested), [table(results)], _landscape(root, results, importance)),
        baselines.passage(root, results, tested),
        _settings(root, results, importance),
        _history(root, results),
        Passage("What it cost", [counts(results)]),
        Passage("What did not finish", tables=[unfinished]) if reasons else None,
        Passage("Read with care", cautions(results)),
        reproduction_passage(results.record, config.model_dump(mode="json"), results.data, machine_of(config).threads),
    ]
    path = root / "report.html"
    title = f"Sweep of {results.job}: {', '.join(results.axes)}"
    shown = [passage for passage in passages if passage is not None]
    write_page(path, title, lead(results), shown, warning=baselines.first_words(root, results, tested))
    return path


def _landscape(root: Path, results: SweepResults, importance: Mapping[str, float]) -> list[Figure]:
    from attnlab.report import sweep_figures

    names = varied(results.axes)
    top = sorted(names, key=lambda name: -importance.get(name, 0.0))[:2]
    if not results.finished or not top:
        return []
    shown = [name for name in names if name in top]  # in the order they were given
    rest = "" if len(names) <= 2 else f" The two most important settings; the best over {len(names) - 2} more."
    seeds = "mean over seeds" if results.config.sweep.seeds > 1 else "one seed"
    caption = f"{results.measure.title.capitalize()}, {seeds}.{rest}"
    return [draw(root, "landscape", sweep_figures.landscape(results, shown), caption)]


def _settings(root: Path, results: SweepResults, importance: Mapping[str, float]) -> Passage | None:
    from attnlab.report import sweep_figures

    if not results.finished or len(results.axes) < 2:
        return None
    caption = "One line per cell, bright is better, the best one thick; dotted: pruned."
    drawn = [draw(root, "parallel", sweep_figures.parallel(results), caption)]
    if importance:
        drawn.append(draw(root, "importance", sweep_figures.weights(importance), "Importance of settings (PED-ANOVA)."))
    few = [] if importance else ["There are too few finished cells to estimate the importance of each setting."]
    return Passage("How the settings matter", few, figures=drawn)


def _history(root: Path, results: SweepResults) -> Passage | None:
    from attnlab.report import sweep_figures

    if results.config.sweep.search == "grid" or not results.finished:
        return None
    caption = "Every trial in the order it was started, and the best so far."
    return Passage("The way there", figures=[draw(root, "history", sweep_figures.way(results), caption)])


def table(results: SweepResults, most: int | None = None) -> Table:
    """One row per cell, the best first; the rest is counted where there are very many."""
    names = short_names(results.axes)
    header = ["rank", *names.values(), results.measure.title, "time", "state"]
    eligible = {row.folder for row in results.finished}
    rows = [
        [
            str(place) if row.folder in eligible else "",
            *[show(row.settings.get(name)) for name in names],
            plus_minus(results.score(row), results.measure.form) if row.runs else "",
            _duration(row.seconds),
            _state(row),
        ]
        for place, row in enumerate(results.ordered, start=1)
    ]
    if most is not None and len(rows) > most:
        rows = [*rows[:most], ["", *[""] * len(names), f"and {len(rows) - most} more", "", ""]]
    return Table(header, rows)


def _state(row: ExperimentRow) -> str:
    return f"{row.state}: {next(iter(row.failures.values()))}" if row.state == "failed" and row.failures else row.state


def _duration(seconds: float) -> str:
    return clock(seconds) if seconds >= 60 else f"{seconds:.1f} s"


def verdicts(results: SweepResults, tested: TestScores | None) -> list[str]:
    """What may be concluded, in sentences."""
    best, measure = results.best, results.measure
    if best is None:
        return ["No cell is finished: there is nothing to choose from."]
    score = results.score(best)
    runs = f"the mean of {score.count} seeds" if score.count > 1 else "one seed"
    sentences = [f"Best on dev: {best.label}, {measure.title} {plus_minus(score, measure.form)} ({runs})."]
    if others := results.not_worse:
        few = ", ".join(f"({row.label})" for row in others[:3])
        rest = f" and {len(others) - 3} more" if len(others) > 3 else ""
        by = "over these seeds" if score.count > 1 else "within its interval over the dev examples"
        sentences.append(f"No significant difference to it {by}: {few}{rest}.")
    return [*sentences, *edge_notes(results), on_test(results, tested)]


def edge_notes(results: SweepResults) -> list[str]:
    return [
        f"{name}={show(value)}, the best, is the {edge} that was tried: the optimum may lie beyond it; try more there."
        for name, value, edge in results.edges
    ]


def on_test(results: SweepResults, tested: TestScores | None) -> str:
    """The winner on test, and no other."""
    if not results.on_test:
        return "This job has no test measure: the winner's score on dev, which chose it, is optimistic."
    if tested is None or not tested.scores:
        return f"The winner has no score on test{f' ({tested.reason})' if tested and tested.reason else ''}."
    scores = "; ".join(_test_score(results, tested, measure) for measure in results.on_test)
    return f"The winner on test, which was computed for it alone: {scores}."


def _test_score(results: SweepResults, tested: TestScores, measure: Measure) -> str:
    mean = tested.mean(measure)
    if not mean.count:
        return f"{measure.title} not measured"
    share = results.over_examples(mean.mean, measure)
    seeds = f", mean of {mean.count} seeds ± {mean.half_width:{measure.form}}" if mean.half_width is not None else ""
    if share is None:
        return f"{measure.title} {mean.mean:{measure.form}}{seeds}"
    low, high = share.interval
    return f"{measure.title} {mean.mean:.1%} ({low:.1%} to {high:.1%} over {share.count} examples{seeds})"


def lead(results: SweepResults) -> str:
    sweep = results.config.sweep
    return (
        f"A {sweep.search} search over the job '{sweep.job}': {SEARCHES[sweep.search]}; {len(results.rows)} cells, "
        f"{seeds_text(sweep.seeds)} each. {counts(results)}"
    )


def counts(results: SweepResults) -> str:
    """The states of the cells, and what they have cost."""
    names = ("finished", "pruned", "failed", "running", "waiting")
    states = [f"{count} {state}" for state in names if (count := results.count(state))]
    return f"{', '.join(states)}; {_duration(sum(row.seconds for row in results.rows))} in training steps."


def cautions(results: SweepResults) -> list[str]:
    sweep = results.config.sweep
    sentences = [
        f"Chosen by {results.measure.title}. The score of the best of many is optimistic: expect less elsewhere."
    ]
    if sweep.seeds == 1:
        sentences.append("One seed per cell: small differences may be the seed's. Resume with --seeds 3 to see.")
    else:
        sentences.append("Intervals (±) are 95% after Student over the seeds, on this data.")
    if sweep.prune != "none":
        sentences.append("Pruned cells were worse when they were ended; whether they would have caught up is unknown.")
    looks = results.record.get("tested", [])
    if len(looks) > 1:
        sentences.append(f"The test split was used {len(looks)} times, once per winner, because the sweep was resumed.")
    return sentences


def plain_results(results: SweepResults, tested: TestScores | None, importance: Mapping[str, float]) -> dict[str, Any]:
    """Every number of the report. Test measures are in it for the winner alone."""
    best = results.best
    return {
        "job": results.job,
        "search": results.config.sweep.search,
        "chosen_by": results.measure.name,
        "best": _plain_row(best, results) if best else None,
        "test": _plain_test(results, tested) if tested else None,
        "edges": {name: edge for name, _, edge in results.edges},
        "alike": [row.settings for row in results.not_worse],
        "importance": dict(importance),
        "seconds": sum(row.seconds for row in results.rows),
        "cells": [_plain_row(row, results) for row in results.ordered],
        "data": results.data,
    }


def _plain_row(row: ExperimentRow, results: SweepResults) -> dict[str, Any]:
    return {
        "settings": row.settings,
        "state": row.state,
        "trial": row.number,
        "folder": row.folder,
        "dev": plain(results.score(row), row.by_seed(results.measure.name)) if row.runs else None,
        "seconds": row.seconds,
        "reasons": row.failures,
    }


def _plain_test(results: SweepResults, tested: TestScores) -> dict[str, Any]:
    content: dict[str, Any] = {"folder": f"trials/{tested.folder}", "reason": tested.reason}
    for measure in results.on_test:
        mean = tested.mean(measure)
        if mean.count:
            share = results.over_examples(mean.mean, measure)
            by_seed = {seed: scores[measure.name] for seed, scores in tested.scores.items() if measure.name in scores}
            content[measure.name] = plain(mean, by_seed) | {"over_examples": share.interval if share else None}
    return content
