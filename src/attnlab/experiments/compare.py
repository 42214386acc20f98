"""Run a comparison: all cells one after the other, or one cell per process on machines that share its folder.

On a cluster one process writes down what is asked (`queue_comparison`), many run a cell (`run_cell`), one writes the
report (`gather_comparison`). None of them needs another to be alive. What is decided once per variant, and why a cell
has no result, is in the comparison's run.json; it is changed under the folder's lock.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attnlab.base import console
from attnlab.base.errors import RunFailed, UserError
from attnlab.base.interrupts import Interrupted, listening
from attnlab.config.recipe import lay_over
from attnlab.config.sections import Section, machine_of
from attnlab.experiments.cells import Cell, cells, seeds_of, variants
from attnlab.experiments.config import CompareConfig
from attnlab.experiments.experiment import COMPARISON, stored, write_results
from attnlab.experiments.records import check_record
from attnlab.experiments.results import ComparisonResults, ExperimentRow, finished_runs
from attnlab.experiments.views.view import View
from attnlab.jobs.registry import KINDS
from attnlab.jobs.subruns import ending_recorded, reason_of, set_machine
from attnlab.runs import RunFolder, is_run, read_record, read_status
from attnlab.training import setup

QUEUED = "a cluster runs its cells"
MISSING = "its run is "


def view_of(job: str) -> View:
    """The view of a job: of most the plain one."""
    if job == "language":
        from attnlab.experiments.views.language import LanguageView

        return LanguageView(job)
    if job == "classify":
        from attnlab.experiments.views.classify import ClassifyView

        return ClassifyView(job)
    return View(job)


def job_config(config: CompareConfig, cell: Cell, decided: Mapping[str, Any]) -> Section:
    """The configuration of one run: what all share, what makes this cell, and what was decided for its variant."""
    kind, view = KINDS[config.compare.job], view_of(config.compare.job)
    values = config.model_dump(exclude={"compare", "budget"}, exclude_unset=True)
    settings = view.settings(config, decided) | dict(cell.variant.settings) | {kind.seed: cell.seed}
    return lay_over(kind.config, values, settings)


def check_comparison(config: CompareConfig) -> None:
    """One sentence for a mistake that concerns every variant; what is wrong with one will be its row."""
    COMPARISON.check(config, config.compare.job)
    view = view_of(config.compare.job)
    view.check([job_config(config, Cell(variant, 0), view.undecided) for variant in variants(config)])


def run_comparison(config: CompareConfig, path: Path, overwrite: bool = False) -> Path:
    """A new comparison; returns its folder."""
    config.compare.decide_baselines()
    check_comparison(config)
    config = COMPARISON.resolved(config)
    return _run(config, COMPARISON.create(config, path, overwrite))


def resume_comparison(path: Path, config: CompareConfig) -> Path:
    """Run the cells that are missing; `config` is the saved one, or has more seeds."""
    check_comparison(config)
    run = RunFolder.reopen(path)
    run.write_config(stored(config))
    return _run(config, run)


def _run(config: CompareConfig, run: RunFolder) -> Path:
    with ending_recorded(run):
        with listening() as stop:
            every = list(cells(config))
            for number, cell in enumerate(every, start=1):
                stop.check()
                train_cell(config, run, cell, f"{number}/{len(every)} {cell.label}")
            stop.check()
        report(config, run)
    return run.path


def train_cell(config: CompareConfig, run: RunFolder, cell: Cell, label: str) -> str:
    """Train a cell, or record why it cannot be trained; returns that reason, or nothing."""
    try:
        with _notes(run, cell) as notes:
            notes["failures"].pop(str(cell.seed), None)  # it is tried again
            if set(notes) == {"failures"}:
                view = view_of(config.compare.job)
                notes |= view.decide(config, job_config(config, cell, view.undecided))
        settings = job_config(config, cell, notes)
        COMPARISON.train(run.path, config.compare.job, settings, cell.path(run.path), label)
    except Interrupted:
        raise
    except Exception as failure:
        reason = reason_of(failure)
        with _notes(run, cell) as notes:
            notes["failures"][str(cell.seed)] = reason
        console.warn(f"{cell.label}: {reason}")
        return reason
    return ""


@contextmanager
def _notes(run: RunFolder, cell: Cell) -> Iterator[dict[str, Any]]:
    """What run.json holds about a cell's variant, to be changed under the folder's lock."""
    with run.locked():
        record = read_record(run.path)
        check_record(run.path, record)
        noted = record.get("variants", {})
        yield noted.setdefault(cell.variant.label, {"failures": {}})
        run.update_record(variants=noted)


def report(config: CompareConfig, run: RunFolder) -> None:
    """Results and page of what is finished, and the status that goes with them."""
    from attnlab.experiments.compare_page import plain_results, write_comparison_page  # draws

    results, view = gather(run.path, config), view_of(config.compare.job)
    write_results(run.path, plain_results(results, view), config, results.record)
    write_comparison_page(run.path, results, view)
    if not results.finished:
        first = next((reason for row in results.rows for reason in row.failures.values()), "it was not started")
        raise RunFailed(f"no variant could be run; the first failed: {first}")
    failed = [row.label for row in results.rows if not row.runs]
    run.set_status("finished", f"without {', '.join(failed)}" if failed else "")


def gather(root: Path, config: CompareConfig) -> ComparisonResults:
    """Everything that is finished in a comparison's folder."""
    record, view = read_record(root), view_of(config.compare.job)
    check_record(root, record)
    measures = [measure.name for measure in view.measures]
    rows: list[ExperimentRow] = []
    for variant in variants(config):
        notes = record.get("variants", {}).get(variant.label, {})
        seeds = seeds_of(config, variant)
        paths, runs, first = finished_runs({seed: Cell(variant, seed).path(root) for seed in seeds}, measures)
        failures = {
            int(seed): reason
            for seed, reason in notes.get("failures", {}).items()
            if seed.isdigit() and int(seed) not in runs
        }
        row = ExperimentRow(
            variant.label,
            f"cells/{variant.folder}",
            {".".join(key): value for key, value in variant.settings.items()},
            runs,
            failures,
            paths=paths,
            record=first,
            decided=notes,
            choices=variant.choices,
            planned=len(seeds),
        )
        rows.append(view.judged(row))
    data: dict[str, Any] = next((row.record["data"] for row in rows if row.record), {})
    return ComparisonResults(config, config.compare.job, rows, record, data)


def queue_comparison(path: Path, config: CompareConfig) -> None:
    """A new comparison whose cells other processes run. 'auto' is resolved on their machine."""
    config.compare.decide_baselines()
    check_comparison(config)
    run = COMPARISON.create(config, path)
    run.set_status("queued", QUEUED)
    run.close()


def requeue_comparison(path: Path, config: CompareConfig) -> None:
    """The same for one that was started; `config` is the saved one, or has more seeds."""
    check_comparison(config)
    run = RunFolder.join(path)
    with run.locked():
        run.write_config(stored(config))
        run.set_status("queued", QUEUED)


def forget_comparison(path: Path, started: bool) -> None:
    """The cells will not be run after all: a new comparison is removed, one that was started stays."""
    if started:
        RunFolder.join(path).set_status("interrupted", "its runs could not be submitted")
    else:
        shutil.rmtree(path)


def missing_cells(path: Path, config: CompareConfig) -> list[tuple[int, Cell]]:
    """The cells without a finished run, with their numbers."""
    return [(number, cell) for number, cell in enumerate(cells(config)) if _state(cell, path) != "finished"]


def run_cell(path: Path, number: int) -> None:
    """One cell of a comparison, beside other processes that run the others."""
    run = RunFolder.join(path)
    with run.locked():  # the first process resolves every 'auto' of the machine, for all
        config = COMPARISON.saved(path)
        machine = machine_of(config)
        if (resolved := setup.resolve(machine)) != machine:
            set_machine(config, resolved)
            run.write_config(stored(config))
    every = list(cells(config))
    if not 0 <= number < len(every):
        raise UserError(f"--cell {number}: {path} has the cells 0 to {len(every) - 1}.")
    if reason := train_cell(config, run, every[number], every[number].label):
        raise RunFailed(reason)


def gather_comparison(path: Path) -> Path:
    """Results and report of what is finished; cells that never ran are named."""
    config, run = COMPARISON.saved(path), RunFolder.join(path)
    with ending_recorded(run):
        lost = 0
        for _, cell in missing_cells(path, config):
            with _notes(run, cell) as notes:
                reason = notes["failures"].get(str(cell.seed), MISSING)
                if reason.startswith(MISSING):  # it did not record a reason itself
                    notes["failures"][str(cell.seed)] = MISSING + _state(cell, path)
                    lost += 1
        report(config, run)
        if lost:
            total = len(list(cells(config)))
            raise RunFailed(f"{lost} of {total} runs are missing: resume with '{COMPARISON.resume_command(path)}'.")
    return path


def _state(cell: Cell, root: Path) -> str:
    path = cell.path(root)
    return str(read_status(path)["state"]) if is_run(path) else "not started"
