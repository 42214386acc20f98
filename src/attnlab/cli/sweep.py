"""`attnlab sweep`: search over the settings of a job, chosen on dev, the winner alone reported on test."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated, Any

import typer

from attnlab.base import console
from attnlab.base.errors import UserError
from attnlab.cli.experiments import Request, Settings, folder_of, given_keys, print_table, to_resume
from attnlab.cli.help import example
from attnlab.cli.launch_options import check_files_exist, finish_submission, refuse_with_slurm, require_one_node
from attnlab.cli.train import Overwrite, Recipe, must_keep
from attnlab.config.flags import with_flags
from attnlab.config.recipe import Key
from attnlab.experiments.config import SweepConfig, SweepFlags, sweep_of
from attnlab.launch.commandline import PROGRAM
from attnlab.launch.config import ArrayLaunchConfig, launch_settings
from attnlab.launch.submit import check_can_submit, check_no_active_jobs, submit_array
from attnlab.runs.folder import ROOT, fresh_path

Run = Annotated[Path | None, folder_of("sweep")]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Resume the sweep in --run: what is missing, more values, --seeds, --trials.",
        rich_help_panel="Run",
    ),
]
JoinAsWorker = Annotated[
    bool,
    typer.Option(
        "--worker",
        help="Join the sweep in --run as a further worker, from another terminal or machine.",
        rich_help_panel="Run",
    ),
]
Retry = Annotated[
    bool, typer.Option("--retry-failed", help="With --resume: try again what failed.", rich_help_panel="Run")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print what would be run and its cost, and stop.", rich_help_panel="Run")
]
REQUEST = Request("sweep", SweepFlags, "classify", sweep_of)
SHOWN = 40  # rows of the table on a terminal; the report has all


@with_flags(ArrayLaunchConfig)
@with_flags(SweepFlags)
def sweep(
    flags: dict[Key, Any],
    launching: dict[Key, Any],
    recipe: Recipe = None,
    settings: Settings = None,
    run: Run = None,
    overwrite: Overwrite = False,
    resume: Resume = False,
    worker: JoinAsWorker = False,
    retry_failed: Retry = False,
    dry_run: DryRun = False,
) -> None:
    """Search over settings of any job: a grid, at random or guided; chosen on dev, the winner reported on test."""
    from attnlab.experiments.store import must_have_optuna

    must_have_optuna()
    from attnlab.experiments.experiment import SWEEP
    from attnlab.experiments.sweep import join_sweep, resume_sweep, run_sweep

    launch = launch_settings(ArrayLaunchConfig, launching) if launching else None
    if launch is not None:
        refuse_with_slurm(overwrite=overwrite, dry_run=dry_run, worker=worker)
        require_one_node(launch, "a sweep")
    given = settings or []
    if retry_failed and not resume:
        raise UserError("--retry-failed needs --resume: it tries again what failed in a sweep that was run.")
    if worker:
        path = join_sweep(_to_join(run, recipe, flags, given, resume or overwrite or dry_run))
    elif resume:
        folder = to_resume(run, overwrite, "sweep")
        saved = SWEEP.saved(folder)
        config = _grown(saved, REQUEST.config(recipe, flags, given, saved.sweep.job), recipe, flags, given)
        if dry_run:
            return _preview(config)
        if launch is not None:
            return _submit(launch, config, folder, resume, retry_failed)
        check_no_active_jobs(folder)
        path = resume_sweep(folder, config, retry_failed)
    else:
        config = REQUEST.config(recipe, flags, given)
        if dry_run:
            return _preview(config)
        folder = run or fresh_path(ROOT, "sweep")
        if launch is not None:
            return _submit(launch, config, folder)
        path = run_sweep(config, folder, overwrite)
    return _report(path)


def _submit(
    launch: ArrayLaunchConfig, config: SweepConfig, path: Path, resume: bool = False, retry_failed: bool = False
) -> None:
    """Submit an array of workers that run until no trial is left, then a job that writes the report."""
    from attnlab.experiments.sweep import queue_sweep, requeue_sweep

    if launch.array.at_once is None:
        raise UserError("--launch slurm: give the number of workers with --at-once.")
    check_can_submit(path)
    check_files_exist(config)
    if resume:
        requeue_sweep(config, path, retry_failed)
    else:
        queue_sweep(config, path)
    worker = [*PROGRAM, "sweep", f"--run={path}", "--worker"]
    count = launch.array.at_once
    try:
        submission = submit_array(launch, "sweep", path, [worker] * count, ["."] * count, worker)
    except UserError:
        if not resume:
            shutil.rmtree(path)  # it was not submitted
        raise
    finish_submission(launch, path, submission)


def _to_join(run: Path | None, recipe: Path | None, flags: dict[Key, Any], given: list[str], more: bool) -> Path:
    if run is None:
        raise UserError("--worker needs --run: the folder of the sweep to join.")
    if recipe or flags or given or more:
        raise UserError("--worker takes --run and nothing else: a worker uses the settings of the sweep.")
    return run


def _grown(
    saved: SweepConfig, given: SweepConfig, recipe: Path | None, flags: dict[Key, Any], settings: list[str]
) -> SweepConfig:
    """The saved sweep with more values, seeds, trials or seconds; all else must be the same."""
    from attnlab.experiments.sweep import GROWS, grown

    if not (recipe or flags or settings):
        return saved
    config = grown(saved, given)
    if given.sweep.baselines is None:
        given.sweep.baselines = saved.sweep.baselines
    for name in GROWS:
        if name in ("vary", "seconds") or ("sweep", name) not in flags:
            setattr(given.sweep, name, getattr(config.sweep, name))
    must_keep(config, given, given_keys(type(config), flags, settings), recipe)
    return config


def _preview(config: SweepConfig) -> None:
    from attnlab.experiments.sweep import check_sweep, preview

    check_sweep(config)
    for line in preview(config):
        console.result(line)
    console.result("dry run: nothing was written")


def _report(path: Path) -> None:
    from attnlab.experiments.sweep import sweep_results
    from attnlab.experiments.sweep_baselines import first_words
    from attnlab.experiments.sweep_page import counts, table, verdicts

    results, tested = sweep_results(path)
    if first := first_words(path, results, tested):
        console.result(first)
    print_table(table(results, most=SHOWN))
    for sentence in verdicts(results, tested):
        console.result(sentence)
    console.result(counts(results))
    console.result(f"sweep: {path}\nreport: {path / 'report.html'}")


def register(app: typer.Typer) -> None:
    app.command(epilog=example('attnlab sweep --vary "optimizer.lr=1e-4,1e-3" --set task=reviews.csv'))(sweep)
