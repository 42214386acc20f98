"""Run a sweep, resume one, or join one as a further worker.

Besides what every experiment stores, the folder holds journal.log (the trials, unless --store keeps them elsewhere)
and claims/ (one lock per trial). Every worker continues until nothing waits and no other worker runs. The one that
holds the folder writes the report; where that one was lost, whichever worker ends first does.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attnlab.base import console
from attnlab.base.console import clock
from attnlab.base.errors import RunFailed, UserError
from attnlab.base.interrupts import listening
from attnlab.config.axes import Choices, Settings, label_of
from attnlab.config.recipe import leaves, value_of
from attnlab.experiments.addresses import JOURNAL
from attnlab.experiments.config import DEFAULT_TRIALS, SweepConfig
from attnlab.experiments.experiment import SWEEP, stored, write_results
from attnlab.experiments.queue import Queue, QueuedTrial
from attnlab.experiments.records import check_finished, check_record
from attnlab.experiments.results import WORST_FIRST, ExperimentRow, SweepResults, TestScores, seeds_text
from attnlab.experiments.space import axes_of, grid, identity, job_config
from attnlab.experiments.store import importances, open_store
from attnlab.experiments.sweep_baselines import run_baselines
from attnlab.experiments.sweep_page import plain_results, write_sweep_page
from attnlab.experiments.worker import Worker
from attnlab.jobs.registry import KINDS
from attnlab.jobs.subruns import ending_recorded, reason_of
from attnlab.runs import RunFolder, is_run, read_record, read_status
from attnlab.runs.metrics import trained_seconds

QUEUED = "workers on a cluster run its trials"
GROWS = ("vary", "seeds", "trials", "seconds")
"""What a resumed sweep may be given more of."""


def check_sweep(config: SweepConfig) -> None:
    """Mistakes that concern every cell are errors; what is wrong with one will be its row."""
    sweep = config.sweep
    SWEEP.check(config, sweep.job)
    axes = axes_of(config)
    if sweep.search == "grid" and sweep.trials is not None:
        raise UserError("--trials is for random and guided: a grid runs all of its cells.")
    for settings in grid(axes) if all(isinstance(axis, Choices) for axis in axes.values()) else []:
        job_config(config, settings)  # refuses values that exclude each other
    if sweep.prune == "none":
        return
    if not KINDS[sweep.job].job().prunable:
        raise UserError(
            f"--prune: the job {sweep.job!r} consists of several runs, of which none can be ended early: use none."
        )
    if any(key[-1] == "evaluate_every" and value_of(config, key).startswith("0") for key in leaves(type(config))):
        raise UserError("--prune judges by the evaluations, and evaluate_every is 0: give it a number.")


def run_sweep(config: SweepConfig, path: Path, overwrite: bool = False) -> Path:
    """A new sweep; returns its folder."""
    config.sweep.decide_baselines()
    check_sweep(config)
    config = SWEEP.resolved(config)
    run = _created(config, path, overwrite)
    with ending_recorded(run):
        queue = _filled(config, run)
        _work(queue)
        _end(run, queue)
    return path


def queue_sweep(config: SweepConfig, path: Path) -> None:
    """A new sweep for workers that will join it. 'auto' is resolved on their machine."""
    config.sweep.decide_baselines()
    check_sweep(config)
    run = _created(config, path, overwrite=False)
    with ending_recorded(run):
        _filled(config, run)
        run.set_status("queued", QUEUED)


def requeue_sweep(config: SweepConfig, path: Path, retry_failed: bool) -> None:
    """The same for one that was started."""
    check_sweep(config)
    queue = Queue(path, config, study_of(path))
    run = RunFolder.join(path)
    with run.locked():
        run.write_config(stored(config))
        queue.fill()
        if retry_failed:
            queue.retry()
        run.set_status("queued", QUEUED)


def _created(config: SweepConfig, path: Path, overwrite: bool) -> RunFolder:
    if config.sweep.store != JOURNAL:
        open_store(config.sweep.store, path)  # one that cannot be used is refused before anything is written
    return SWEEP.create(config, path, overwrite)


def _filled(config: SweepConfig, run: RunFolder) -> Queue:
    study = f"{run.path.name}-{uuid.uuid4().hex[:12]}"  # a database may hold many sweeps
    queue = Queue(run.path, config, study, new=True)
    queue.fill()
    run.update_record(study=study)  # from here on other workers may join
    return queue


def resume_sweep(path: Path, config: SweepConfig, retry_failed: bool = False) -> Path:
    """Run what is missing; `config` is the saved one, or asks for more values, seeds or trials."""
    check_sweep(config)
    queue = Queue(path, config, study_of(path))
    try:
        run = RunFolder.reopen(path)
    except UserError:
        raise UserError(
            f"{path} is being run: wait for it, or join it with 'attnlab sweep --run {path} --worker'."
        ) from None
    run.write_config(stored(config))
    with ending_recorded(run):
        added = queue.fill() + (queue.retry() if retry_failed else 0)
        console.say(f"{added} trials were added to the sweep." if added else "no trials were added to the sweep.")
        _work(queue)
        _end(run, queue)
    return path


def join_sweep(path: Path) -> Path:
    """Work beside other workers; write the report if no other will. A finished sweep stays as it is."""
    queue = Queue(path, SWEEP.saved(path), study_of(path))
    if read_status(path)["state"] == "finished" and not queue.busy():
        console.say(f"{path} is finished: nothing is left for a worker (more: --resume with --trials or --seeds).")
        return path
    done = _work(queue)
    try:
        run = RunFolder.reopen(path)
    except UserError:
        console.say(f"this worker ran {done} trials; the worker that started the sweep writes the report.")
        return path
    with ending_recorded(run):
        _end(run, queue)
    return path


def study_of(path: Path) -> str:
    record = read_record(path)
    name: str | None = record.get("study")
    if name is None:
        raise UserError(
            f"{path} has no trials yet: wait a moment if it was just started, else start it again with --overwrite."
        )
    check_record(path, record)
    return name


def _work(queue: Queue) -> int:
    """Run one worker; returns the number of trials it ran."""
    with listening() as stop:
        worker = Worker(queue, stop)
        worker.work()
        stop.check()
    return worker.done


def _end(run: RunFolder, queue: Queue) -> None:
    """Choose on dev, score the winner on test, and write the report."""
    results = gather(queue)
    tested = _score_winner(run, results)
    run_baselines(run.path, queue.config, results)
    importance = importances(results)
    write_results(run.path, plain_results(results, tested, importance), queue.config, results.record)
    write_sweep_page(run.path, results, tested, importance)
    if results.best is None and results.count("failed"):
        first = next(row for row in results.rows if row.state == "failed")
        raise RunFailed(f"no cell could be run; the first failed: {next(iter(first.failures.values()), 'no reason')}")
    left = [f"{count} {state}" for state in ("failed", "waiting", "running") if (count := results.count(state))]
    run.set_status("finished", f"except for cells that are {', '.join(left)}" if left else "")


def sweep_results(path: Path) -> tuple[SweepResults, TestScores | None]:
    """What a sweep has measured so far, with the winner's test scores if they were computed."""
    results = gather(Queue(path, SWEEP.saved(path), study_of(path)))
    return results, _stored_test_scores(results)


def _stored_test_scores(results: SweepResults) -> TestScores | None:
    best = results.best
    for look in results.record.get("tested", []):
        scores = {int(seed): values for seed, values in look["scores"].items() if seed.isdigit()}
        if best is not None and f"trials/{look['folder']}" == best.folder and set(scores) == set(best.runs):
            return TestScores(look["folder"], scores)
    return None


def _score_winner(run: RunFolder, results: SweepResults) -> TestScores | None:
    """The winner's scores on test, computed once per winner and stored in the record."""
    best, tested = results.best, _stored_test_scores(results)
    if tested is not None or best is None or not results.on_test:
        return tested
    folder, names = Path(best.folder).name, {measure.name for measure in results.on_test}
    job = KINDS[results.job].job()
    try:
        every = {seed: job.score_test(run.path / best.folder / f"seed-{seed}") for seed in best.runs}
    except Exception as failure:
        console.warn(f"the winner could not be scored on test: {reason_of(failure)}")
        return TestScores(folder, reason=reason_of(failure))
    scores = {seed: {n: float(value) for n, value in by_name.items() if n in names} for seed, by_name in every.items()}
    looks = [*results.record.get("tested", []), {"folder": folder, "scores": scores}]
    run.update_record(tested=looks)
    results.record["tested"] = looks
    return TestScores(folder, scores)


def gather(queue: Queue) -> SweepResults:
    """Every cell of the sweep in its present state."""
    cells: dict[str, dict[int, QueuedTrial]] = {}
    for queued in queue.trials():
        for seed in queued.seeds:
            cells.setdefault(identity(queued.settings), {})[seed] = queued  # the latest trial of a seed counts
    rows = [_row(queue, by_seed) for by_seed in cells.values()]
    data: dict[str, Any] = next((row.record.get("data", {}) for row in rows if row.runs), {})
    return SweepResults(queue.config, queue.sweep.job, rows, read_record(queue.root), data, queue.axes)


def _row(queue: Queue, by_seed: Mapping[int, QueuedTrial]) -> ExperimentRow:
    first = min(by_seed.values(), key=lambda queued: queued.number)
    name = KINDS[queue.sweep.job].chooses_by.name
    runs: dict[int, dict[str, Any]] = {}
    failures, paths, seconds, record = {}, {}, 0.0, {}
    for seed, queued in sorted(by_seed.items()):
        path = queued.path(queue.root, seed)
        if is_run(path):
            record, paths[seed] = read_record(path), path
            if queued.state == "finished" and record.get("results"):
                check_finished(path, record, [name])
                runs[seed] = record["results"]
            seconds += trained_seconds(path, record)
        if queued.reason and queued.state in ("failed", "pruned"):
            failures[seed] = queued.reason
    state = min((queued.state for queued in by_seed.values()), key=WORST_FIRST.index)
    return ExperimentRow(
        label_of(first.settings),
        f"trials/{first.folder}",
        first.settings,
        runs,
        failures,
        state,
        paths,
        record,
        number=first.number,
        seconds=seconds,
    )


def grown(saved: SweepConfig, given: SweepConfig) -> SweepConfig:
    """The saved configuration with more values, seeds, trials or seconds; nothing is ever removed."""
    config = saved.model_copy(deep=True)
    if given.sweep.vary:
        config.sweep.vary = _more_values(saved, given)
    config.sweep.seeds = max(saved.sweep.seeds, given.sweep.seeds)
    if given.sweep.trials is not None:
        config.sweep.trials = max(saved.sweep.trials or 0, given.sweep.trials)
    if given.sweep.seconds is not None:
        config.sweep.seconds = given.sweep.seconds
    return config


def _more_values(saved: SweepConfig, given: SweepConfig) -> dict[str, list[Any]]:
    old, new = axes_of(saved), axes_of(given)
    if strange := [name for name in new if name not in old]:
        raise UserError(f"a resumed sweep keeps its settings ({', '.join(old)}): {strange[0]} is not among them.")
    written = dict(zip(old, saved.sweep.vary.values(), strict=True))
    for name, axis in new.items():
        before = old[name]
        if saved.sweep.search != "grid" and axis != before:
            raise UserError(f"a resumed {saved.sweep.search} search keeps its space, and {name} is {before} there.")
        if isinstance(axis, Choices) and isinstance(before, Choices):
            written[name] = [*before.values, *[value for value in axis.values if value not in before.values]]
    return written


def preview(config: SweepConfig) -> Iterator[str]:
    """What a sweep would run and cost: the lines of a dry run."""
    sweep, axes = config.sweep, axes_of(config)
    for name, axis in axes.items():
        yield f"{name}: {axis}"
    cells = math.prod(len(axis.values) for axis in axes.values() if isinstance(axis, Choices))
    if sweep.search != "grid":
        cells = sweep.trials or (0 if sweep.seconds else DEFAULT_TRIALS)
    seeds = f"with {seeds_text(sweep.seeds)} each"
    number = f"{cells} cells {seeds}, {cells * sweep.seeds} runs" if cells else f"runs {seeds}"
    yield f"{sweep.search}: {number}" + (f", none started after {clock(sweep.seconds)}" if sweep.seconds else "")
    first: Settings = {name: axis.values[0] if isinstance(axis, Choices) else axis.low for name, axis in axes.items()}
    cost = KINDS[sweep.job].job()(job_config(config, first)).estimate()
    if cost is None:
        yield f"time: not known before the first run, since the job {sweep.job!r} consists of several"
    else:
        yield f"time: about {clock(cost.seconds)} for the steps of one run ({label_of(first)}), evaluations not counted"
