"""Run a sweep, go on with one, or join one as a further worker.

    sweep/
        config.yaml, run.json, status.json    what was asked, with what, how it stands
        journal.log                           the trials, unless --store keeps them elsewhere
        claims/                               locks: who is at work on what
        trials/CELL/seed-N/                   a run folder for each cell and seed
        results.json, report.html, figures/

Every worker goes on until nothing waits and nobody is at work. The one that holds the folder writes the report; where
that one is gone, whoever ends first does.
"""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

from attnlab.base import console
from attnlab.base.errors import RunFailed, UserError
from attnlab.base.interrupts import listening
from attnlab.config import check, leaves, value_of
from attnlab.experiments.sweep.config import JOURNAL, sweep_of
from attnlab.experiments.sweep.held_out import scores_on_test
from attnlab.experiments.sweep.importance import importances
from attnlab.experiments.sweep.page import write_sweep_page
from attnlab.experiments.sweep.queue import Queue
from attnlab.experiments.sweep.results import Results, Tested, gather
from attnlab.experiments.sweep.results_file import write_results
from attnlab.experiments.sweep.space import Choices, axes_of, grid, job_config
from attnlab.experiments.sweep.store import open_store
from attnlab.experiments.sweep.worker import Worker, in_stages
from attnlab.jobs.several import must_fix_the_batch, must_not_name_a_seed, reason_of
from attnlab.jobs.stages import ending_told
from attnlab.runs import RunFolder, read_config, read_record
from attnlab.training import setup

KIND = "sweep"
QUEUED = "workers on a cluster run its trials"


def run_sweep(config: Any, path: Path, overwrite: bool = False) -> Path:
    """A new sweep; returns its folder."""
    config = config.model_copy(deep=True)
    must_make_sense(config)
    setup.must_be_together(config.machine)
    config.machine = setup.resolve(config.machine)  # once, so that all cells run alike
    run = _created(config, path, overwrite)
    with ending_told(run):
        queue = _filled(config, run)
        _work(queue)
        _end(run, queue)
    return path


def queue_sweep(config: Any, path: Path) -> None:
    """A new sweep for workers that will join it. What 'auto' means is left to their machine."""
    must_make_sense(config)
    run = _created(config, path, overwrite=False)
    with ending_told(run):
        _filled(config, run)
        run.set_status("queued", QUEUED)


def requeue_sweep(config: Any, path: Path, retry_failed: bool) -> None:
    """The same for one that was begun."""
    must_make_sense(config)
    queue = Queue(path, config, study_of(path))
    run = RunFolder.join(path)
    with run.locked():
        run.write_config(_told(config))
        queue.fill()
        if retry_failed:
            queue.retry()
        run.set_status("queued", QUEUED)


def _created(config: Any, path: Path, overwrite: bool) -> RunFolder:
    if config.sweep.store != JOURNAL:
        open_store(config.sweep.store, path)  # one that cannot be used, before anything is written
    return RunFolder.create(path, KIND, _told(config), 0, overwrite)


def _filled(config: Any, run: RunFolder) -> Queue:
    study = f"{run.path.name}-{uuid.uuid4().hex[:12]}"  # a database may hold many sweeps
    queue = Queue(run.path, config, study, new=True)
    queue.fill()
    run.update_record(study=study)  # from here on others may join
    return queue


def resume_sweep(path: Path, config: Any, retry_failed: bool = False) -> Path:
    """Go on with what is missing; `config` is the saved one, or asks for more values, seeds or trials."""
    must_make_sense(config)
    queue = Queue(path, config, study_of(path))
    try:
        run = RunFolder.reopen(path)
    except UserError:
        raise UserError(
            f"{path} is being run: wait for it, or join it with 'attnlab sweep --run {path} --worker'."
        ) from None
    run.write_config(_told(config))
    with ending_told(run):
        added = queue.fill() + (queue.retry() if retry_failed else 0)
        console.say(f"{added} trials were added to the sweep." if added else "no trials were added to the sweep.")
        _work(queue)
        _end(run, queue)
    return path


def join_sweep(path: Path) -> Path:
    """Work beside whoever runs the sweep; write the report if nobody else will."""
    queue = Queue(path, saved_sweep(path), study_of(path))
    done = _work(queue)
    try:
        run = RunFolder.reopen(path)
    except UserError:
        console.say(f"this worker did {done} trials; the report is written by the one that started the sweep.")
        return path
    with ending_told(run):
        _end(run, queue)
    return path


def saved_sweep(path: Path) -> Any:
    """What a sweep was told."""
    kind = read_record(path)["kind"]
    if kind != KIND:
        raise UserError(f"{path} is a {kind} run, not a sweep.")
    values = read_config(path)
    return check(sweep_of(values["sweep"]["job"]), values)


def study_of(path: Path) -> str:
    name: str | None = read_record(path).get("study")
    if name is None:
        raise UserError(
            f"{path} has no trials yet: wait a moment if it was just started, else start it anew with --overwrite."
        )
    return name


def must_make_sense(config: Any) -> None:
    """Whatever is wrong for all cells is an error; what is wrong for one will be a row."""
    sweep = config.sweep
    must_fix_the_batch(config)
    must_not_name_a_seed(config, sweep.job, "sweep")
    axes = axes_of(config)
    if sweep.search == "grid" and sweep.trials is not None:
        raise UserError("--trials is for random and guided: a grid runs all of its cells.")
    for settings in grid(axes) if all(isinstance(axis, Choices) for axis in axes.values()) else []:
        job_config(config, settings)  # refuses values that exclude each other
    if sweep.prune != "none":
        if in_stages(sweep.job):
            raise UserError(
                f"--prune: the job {sweep.job!r} consists of several runs, of which none can be ended early: use none."
            )
        if any(key[-1] == "evaluate_every" and value_of(config, key).startswith("0") for key in leaves(type(config))):
            raise UserError("--prune judges by the evaluations, and evaluate_every is 0: give it a number.")


def _told(config: Any) -> dict[str, Any]:
    """What was said, without the defaults: a job may take what is left out from a run it starts from."""
    told: dict[str, Any] = config.model_dump(mode="json", exclude_unset=True)
    return told


def _work(queue: Queue) -> int:
    """One worker's share; how many trials that was."""
    with listening() as stop:
        worker = Worker(queue, stop)
        worker.work()
        stop.check()
    return worker.done


def _end(run: RunFolder, queue: Queue) -> None:
    """Choose on dev, score the winner on test, and write it down."""
    results = gather(queue)
    tested = _tested(run, results)
    importance = importances(results)
    write_results(run.path, results, tested, importance)
    write_sweep_page(run.path, results, tested, importance)
    if results.best is None and results.count("failed"):
        first = next(row for row in results.rows if row.state == "failed")
        raise RunFailed(f"no cell could be run; the first says: {next(iter(first.reasons.values()), 'nothing')}")
    left = [f"{count} {state}" for state in ("failed", "waiting", "running") if (count := results.count(state))]
    run.set_status("finished", f"but for cells that are {', '.join(left)}" if left else "")


def found_by(path: Path) -> tuple[Results, Tested | None]:
    """What a sweep has found so far, with the winner's test scores if they were looked at."""
    results = gather(Queue(path, saved_sweep(path), study_of(path)))
    return results, _kept(results)


def _kept(results: Results) -> Tested | None:
    best = results.best
    for look in results.record.get("tested", []):
        scores = {int(seed): found for seed, found in look["scores"].items()}
        if best is not None and look["folder"] == best.folder and set(scores) == set(best.scores):
            return Tested(best.folder, scores)
    return None


def _tested(run: RunFolder, results: Results) -> Tested | None:
    """The winner's scores on test, looked at once for each winner and kept in the record."""
    best, known = results.best, _kept(results)
    if known is not None or best is None or not results.on_test:
        return known
    try:
        scores = {seed: scores_on_test(results.config.sweep.job, best.path(run.path, seed)) for seed in best.scores}
    except Exception as failure:
        console.warn(f"the winner could not be scored on test: {reason_of(failure)}")
        return Tested(best.folder, reason=reason_of(failure))
    looks = [*results.record.get("tested", []), {"folder": best.folder, "scores": scores}]
    run.update_record(tested=looks)
    results.record["tested"] = looks
    return Tested(best.folder, scores)
