"""`attnlab compare`: variants of a job, several seeds each, one fair report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from attnlab.base import console
from attnlab.base.errors import UserError
from attnlab.cli.experiments import Request, Settings, folder_of, given_keys, print_table, to_resume
from attnlab.cli.help import example
from attnlab.cli.launch_options import check_files_exist, finish_submission, refuse_with_slurm, require_one_node
from attnlab.cli.train import Overwrite, Recipe, must_keep
from attnlab.config import leaves
from attnlab.config.classify import ClassifyConfig
from attnlab.config.flags import part_of, with_flags
from attnlab.config.recipe import Key
from attnlab.experiments.config import CLASSIFIER_AXES, CompareConfig, LanguageComparison, comparison_of
from attnlab.launch.commandline import PROGRAM
from attnlab.launch.config import ArrayLaunchConfig, launch_settings
from attnlab.launch.submit import check_can_submit, check_no_active_jobs, submit_array
from attnlab.runs.folder import ROOT, fresh_path

Run = Annotated[Path | None, folder_of("comparison")]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume", help="Resume the comparison in --run: what is missing, or more --seeds.", rich_help_panel="Run"
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
IMPLIED = dict.fromkeys([*leaves(CLASSIFIERS), *(("compare", name) for name in CLASSIFIER_AXES)], "classify")
REQUEST = Request("compare", LanguageComparison, "language", comparison_of, IMPLIED)


OneCell = Annotated[
    int | None,
    typer.Option(
        "--cell",
        hidden=True,
        metavar="N",
        help="Run one cell of the comparison in --run: what a job of an array does.",
        rich_help_panel="Where it runs",
    ),
]
Gather = Annotated[
    bool,
    typer.Option(
        "--gather",
        hidden=True,
        help="Write results and report of what is finished in --run: what the last job does.",
        rich_help_panel="Where it runs",
    ),
]


@with_flags(ArrayLaunchConfig)
@with_flags(LanguageComparison, CLASSIFIERS)
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
    from attnlab.experiments.compare import resume_comparison, run_comparison

    launch = launch_settings(ArrayLaunchConfig, launching) if launching else None
    if cell is not None or gather or pair is not None:
        _run_part(run, cell, pair)
        return
    folder = to_resume(run, overwrite, "comparison") if resume else run or fresh_path(ROOT, "compare")
    given = settings or []
    config = REQUEST.config(recipe, flags, given) if not resume else _resumed(folder, recipe, flags, given)
    if launch is not None:
        refuse_with_slurm(overwrite=overwrite)
        require_one_node(launch, "a comparison")
        _submit(launch, folder, config, resume)
        return
    if resume:
        check_no_active_jobs(folder)
        _show(resume_comparison(folder, config))
    else:
        _show(run_comparison(config, folder, overwrite))


def _run_part(path: Path | None, cell: int | None, pair: str | None) -> None:
    """Run one cell of an existing comparison, test two variants, or write the report."""
    from attnlab.experiments.compare import gather, gather_comparison, run_cell, view_of
    from attnlab.experiments.experiment import COMPARISON

    if path is None:
        option = "--cell" if cell is not None else "--pair" if pair is not None else "--gather"
        raise UserError(f"{option} needs --run: the folder of the comparison.")
    if cell is not None:
        run_cell(path, cell)
    elif pair is not None:
        results = gather(path, COMPARISON.saved(path))
        console.result(view_of(results.job).test_pair(results, pair))
    else:
        _show(gather_comparison(path))


def _submit(launch: ArrayLaunchConfig, path: Path, config: CompareConfig, resume: bool) -> None:
    """Submit the missing cells as an array of tasks, then a job that writes the report."""
    from attnlab.experiments.compare import forget_comparison, missing_cells, queue_comparison, requeue_comparison

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
    from attnlab.experiments.compare import gather, view_of
    from attnlab.experiments.experiment import COMPARISON
    from attnlab.experiments.views.view import verdicts

    results = gather(path, COMPARISON.saved(path))
    view = view_of(results.job)
    for sentence in view.first(results):
        console.result(sentence)
    for table in (view.table(results, brief=True), view.cost(results)):
        print_table(table)
    for sentence in verdicts(results) + view.notes(results):
        console.result(sentence)
    console.result(f"comparison: {path}\nreport: {path / 'report.html'}")


def _resumed(folder: Path, recipe: Path | None, flags: dict[Key, Any], settings: list[str]) -> CompareConfig:
    """The saved configuration; only the number of seeds may grow."""
    from attnlab.experiments.experiment import COMPARISON

    saved = COMPARISON.saved(folder)
    if not recipe and not flags and not settings:
        return saved
    given = REQUEST.config(recipe, flags, settings, saved.compare.job)
    if given.compare.baselines is None:
        given.compare.baselines = saved.compare.baselines
    if given.compare.seeds > saved.compare.seeds:
        saved.compare.seeds = given.compare.seeds
    must_keep(saved, given, given_keys(type(saved), flags, settings), recipe)
    return saved


def register(app: typer.Typer) -> None:
    app.command(epilog=example("attnlab compare --corpus my.txt --attention vanilla,linear --steps 200"))(compare)
