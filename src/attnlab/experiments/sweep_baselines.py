"""What the winner of a sweep of classifiers is put beside: the baselines on its rows and texts, once it is chosen.

SWEEP/baselines/NAME/seed-N/    a run folder each
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attnlab.base import console
from attnlab.base.interrupts import Stopped
from attnlab.config.classify import BASELINES, EMBEDDINGS, MAJORITY
from attnlab.config.recipe import value_of
from attnlab.experiments.cells import ENCODER, MODEL, PLAIN
from attnlab.experiments.config import SweepConfig
from attnlab.experiments.experiment import SWEEP
from attnlab.experiments.results import ExperimentRow, SweepResults, TestScores, finished_runs
from attnlab.experiments.space import job_config
from attnlab.jobs.registry import KINDS
from attnlab.jobs.subruns import reason_of
from attnlab.report.page import Passage, Table, draw
from attnlab.report.pairs import pair_details
from attnlab.runs.paired import RunsOnTest, all_pairs
from attnlab.runs.predictions import Prediction, read_predictions
from attnlab.stats.intervals import plus_minus

FOLDER = "baselines"
ABOUT = (
    "The baselines are fitted to the rows and texts of the winner, cut at the same length, and scored on the same "
    "rows. They were not searched for: the weight decay of each is chosen by cross-validation on the training rows."
)


def run_baselines(root: Path, config: SweepConfig, results: SweepResults) -> None:
    """Those that are not finished; one that fails is said, and the sweep is finished without it."""
    best = results.best
    if not config.sweep.baselines or best is None:
        return
    for name in _missing(config, best):
        for seed in best.runs:
            path = root / FOLDER / name / f"seed-{seed}"
            try:
                SWEEP.train(root, results.job, _config(config, best, name, seed), path, f"baseline {name}, seed {seed}")
            except (Stopped, KeyboardInterrupt):
                raise
            except Exception as failure:
                console.warn(f"baseline {name}: {reason_of(failure)}")


def _missing(config: SweepConfig, best: ExperimentRow) -> list[str]:
    model = _model(config, best)
    without_encoder = (*BASELINES[: BASELINES.index(EMBEDDINGS)],)
    return [name for name in (without_encoder if model in BASELINES else BASELINES) if name != model]


def _model(config: SweepConfig, best: ExperimentRow) -> str:
    return str(value_of(job_config(config, best.settings), MODEL))


def _config(config: SweepConfig, best: ExperimentRow, name: str, seed: int) -> Any:
    """The winner's settings, except for what makes it the model it is."""
    model = _model(config, best)
    reading = {ENCODER: model} if model not in BASELINES and name != MAJORITY else {}
    own = {MODEL: name, **reading, **PLAIN, KINDS[config.sweep.job].seed: seed, ("watch", "baselines"): False}
    about_rows = {key: value for key, value in best.settings.items() if key.startswith("data.")}
    kept = config.model_copy(deep=True)
    return job_config(kept, about_rows | {".".join(key): value for key, value in own.items()})


def baseline_rows(root: Path) -> list[ExperimentRow]:
    """Those that are finished."""
    rows = []
    for name in BASELINES:
        folder = root / FOLDER / name
        paths = {int(p.name[5:]): p for p in sorted(folder.glob("seed-*")) if p.name[5:].isdigit()}
        done, runs, record = finished_runs(paths)
        if runs:
            rows.append(ExperimentRow(name, f"{FOLDER}/{name}", {}, runs, paths=done, record=record))
    return rows


def first_words(root: Path, results: SweepResults, tested: TestScores | None) -> str:
    """A winner below a baseline is the first thing to know."""
    measure = results.on_test[0] if results.on_test else None
    if measure is None or tested is None or not tested.mean(measure).count:
        return ""
    score, rows = tested.mean(measure).mean, baseline_rows(root)
    below = [f"{r.label} ({r.mean(measure.name).mean:.1%})" for r in rows if r.mean(measure.name).mean > score]
    return f"The winner, {score:.1%} by {measure.title}, is below {' and '.join(below)}." if below else ""


def passage(root: Path, results: SweepResults, tested: TestScores | None) -> Passage | None:
    """None for a sweep without baselines."""
    from attnlab.report.classifier_figures import bars

    rows, best = baseline_rows(root), results.best
    if not rows or best is None:
        return None
    scored = {seed: run | (tested.scores.get(seed, {}) if tested else {}) for seed, run in best.runs.items()}
    winner = ExperimentRow("the winner", best.folder, best.settings, scored, paths=best.paths, record=best.record)
    every, measures = [winner, *rows], KINDS[results.job].measures
    shown = [[row.label, *[plus_minus(row.mean(m.name), m.form) for m in measures], _cost(row)] for row in every]
    pairs = [pair for pair in all_pairs([_on_test(row) for row in every]) if pair.first == winner.label]
    tables = [Table(["", *[m.title for m in measures], "seconds per run"], shown)]
    figure = draw(root, "baselines", bars(every, measures, []), "Accuracy on dev and test; ticks are runs.")
    return Passage("Beside baselines", [ABOUT], [*tables, *([pair_details(pairs)] if pairs else [])], [figure])


def _cost(row: ExperimentRow) -> str:
    seconds = row.record.get("training", {}).get("seconds", 0.0) + row.record.get("results", {}).get(
        "feature_seconds", 0
    )
    return f"{seconds:.1f}"


def _on_test(row: ExperimentRow) -> RunsOnTest:
    places = {seed: [path, path / "evaluations" / "test"] for seed, path in row.paths.items()}
    found: dict[int, Prediction] = {}
    for seed, folders in places.items():
        for folder in folders:
            if (read := read_predictions(folder)) is not None:
                found[seed] = read
    return RunsOnTest(row.label, found, row.by_seed("dev_accuracy"), "its test split was left alone.")
