"""`attnlab compare`: variants of a job, several seeds each, one fair report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from attnlab.base import console
from attnlab.base.errors import UserError
from attnlab.cli.experiments import Asking, Settings, folder_of, given_keys, print_table, to_resume
from attnlab.cli.help import example
from attnlab.cli.launch_options import check_files_exist, finish_submission, refuse_with_slurm, require_one_node
from attnlab.cli.train import Overwrite, Recipe, must_keep
from attnlab.config import leaves
from attnlab.config.classify import ClassifyConfig
from attnlab.config.flags import part_of, with_flags
from attnlab.config.recipe import Key
from attnlab.experiments.compare.choices import AXES as CHOICES
from attnlab.experiments.compare.config import CompareConfig, comparison_of
from attnlab.launch.commandline import PROGRAM
from attnlab.launch.config import ArrayLaunchConfig, launch_settings
from attnlab.launch.submit import check_can_submit, check_no_active_jobs, submit_array
from attnlab.runs.folder import ROOT, fresh_path

Run = Annotated[Path | None, folder_of("comparison")]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume", help="Go on with the comparison in --run: what is missing, or more --seeds.", rich_help_panel="Run"
    ),
]

PairOf = Annotated[
    str | None,
    typer.Option(
        "--pair",
        metavar="A,B",
        help="Test two variants of the finished comparison in --run; run nothing.",
        rich_help_panel="Run",
    ),
]
CLASSIFIERS = part_of(
    ClassifyConfig,
    "Classifiers (--models, --methods, --optimizers)",
    "data.task",
    "data.max_tokens",
    "data.examples",
    "model.name",
    "tuning.method",
    "training.epochs",
)
IMPLIED = dict.fromkeys([*leaves(CLASSIFIERS), *(("compare", name) for name in CHOICES)], "classify")
ASKING = Asking("compare", CompareConfig, "language", comparison_of, IMPLIED)


OneCell = Annotated[
    int | None,
    typer.Option(
        "--cell",
        metavar="N",
        help="Run one cell of the comparison in --run: what a job of an array does.",
        hidden=True,
        rich_help_panel="Where it runs",
    ),
]
Gather = Annotated[
    bool,
    typer.Option(
        "--gather",
        help="Write results and report of what is finished in --run: what the last job does.",
        hidden=True,
        rich_help_panel="Where it runs",
    ),
]


@with_flags(ArrayLaunchConfig)
@with_flags(CompareConfig, CLASSIFIERS)
def compare(
    flags: dict[Key, Any],
    launching: dict[Key, Any],
    recipe: Recipe = None,
    settings: Settings = None,
    run: Run = None,
    overwrite: Overwrite = False,
    resume: Resume = False,
    pair: PairOf = None,
    cell: OneCell = None,
    gather: Gather = False,
) -> None:
    """Compare kinds of attention on a text, or any settings of any job: same data, order and budget."""
    from attnlab.experiments.compare.run import resume_comparison, run_comparison, saved_comparison

    launch = launch_settings(ArrayLaunchConfig, launching)
    if cell is not None or gather or pair is not None:
        _part(run, cell, pair)
        return
    folder = to_resume(run, overwrite, "comparison") if resume else run or fresh_path(ROOT, "compare")
    given = settings or []
    config = _resumed(saved_comparison(folder), recipe, flags, given) if resume else ASKING.config(recipe, flags, given)
    if launch is not None:
        refuse_with_slurm(overwrite=overwrite)
        require_one_node(launch, "a comparison")
        _hand_over(launch, folder, config, resume)
        return
    if resume:
        check_no_active_jobs(folder)
        _show(resume_comparison(folder, config))
    else:
        _show(run_comparison(config, folder, overwrite))


def _part(path: Path | None, cell: int | None, pair: str | None) -> None:
    """What is done in a comparison that is there: one cell, two variants tested, or the report."""
    from attnlab.experiments.compare.results import gather
    from attnlab.experiments.compare.run import saved_comparison
    from attnlab.experiments.compare.spread import gather_comparison, run_cell
    from attnlab.experiments.compare.subjects import subject_of

    if path is None:
        option = "--cell" if cell is not None else "--pair" if pair is not None else "--gather"
        raise UserError(f"{option} needs --run: the folder of the comparison.")
    if cell is not None:
        run_cell(path, cell)
    elif pair is not None:
        results = gather(path, saved_comparison(path))
        console.result(subject_of(results.config).pair(results, pair))
    else:
        _show(gather_comparison(path))


def _hand_over(launch: ArrayLaunchConfig, path: Path, config: Any, resume: bool) -> None:
    """The missing cells as the tasks of an array, then a job that gathers."""
    from attnlab.experiments.compare.spread import (
        forget_comparison,
        missing_cells,
        queue_comparison,
        requeue_comparison,
    )

    check_can_submit(path)
    check_files_exist(config)
    missing = missing_cells(path, config)
    if not missing:
        raise UserError(f"{path}: nothing is missing; 'attnlab compare --run {path} --gather' writes the report again.")
    (requeue_comparison if resume else queue_comparison)(path, config)
    command = [*PROGRAM, "compare", f"--run={path}"]
    commands = [[*command, f"--cell={number}"] for number, _ in missing]
    runs = [str(cell.path(Path())) for _, cell in missing]
    try:
        submission = submit_array(launch, "compare", path, commands, runs, [*command, "--gather"])
    except UserError:
        forget_comparison(path, resume)
        raise
    finish_submission(launch, path, submission)


def _show(path: Path) -> None:
    from attnlab.experiments.compare.results import gather
    from attnlab.experiments.compare.run import saved_comparison
    from attnlab.experiments.compare.subjects import subject_of
    from attnlab.experiments.compare.words import verdicts

    results = gather(path, saved_comparison(path))
    subject = subject_of(results.config)
    for table in (subject.table(results, brief=True), subject.cost(results)):
        print_table(table)
    for sentence in verdicts(results) + subject.notes(results):
        console.result(sentence)
    console.result(f"comparison: {path}\nreport: {path / 'report.html'}")


def _resumed(saved: Any, recipe: Path | None, flags: dict[Key, Any], settings: list[str]) -> Any:
    """The saved configuration; only the number of seeds may grow."""
    if not recipe and not flags and not settings:
        return saved
    asked = ASKING.config(recipe, flags, settings, saved.compare.job)
    if asked.compare.seeds > saved.compare.seeds:
        saved.compare.seeds = asked.compare.seeds
    must_keep(saved, asked, given_keys(type(saved), flags, settings), recipe)
    return saved


def register(app: typer.Typer) -> None:
    app.command(epilog=example("attnlab compare --corpus my.txt --attention vanilla,linear --steps 200"))(compare)
