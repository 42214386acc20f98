"""`attnlab compare`: variants of a job, several seeds each, one fair report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attnlab import console
from attnlab.cli.launching import end, must_exist, refuse
from attnlab.cli.train import Overwrite, Recipe, must_keep
from attnlab.compare.config import CompareConfig, comparable, comparison_of
from attnlab.config import find_setting, leaves, read_recipe
from attnlab.config.flags import with_flags
from attnlab.config.recipe import Key, flag_of, load
from attnlab.errors import UserError, unknown
from attnlab.launch.commandline import PROGRAM
from attnlab.launch.config import ArrayLaunchConfig, asked
from attnlab.launch.submit import none_at_work, ready, submit_array
from attnlab.runs.folder import ROOT, fresh_path

if TYPE_CHECKING:
    from attnlab.report.page import Table

Run = Annotated[
    Path | None,
    typer.Option("--run", metavar="FOLDER", help="Folder of the comparison (default: a new one in runs/).",
                 rich_help_panel="Run"),
]  # fmt: skip
Resume = Annotated[
    bool,
    typer.Option("--resume", help="Go on with the comparison in --run: what is missing, or more --seeds.",
                 rich_help_panel="Run"),
]  # fmt: skip

Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Any setting of the job, the same for all; may be repeated.",
                 rich_help_panel="What is compared"),
]  # fmt: skip


OneCell = Annotated[
    int | None,
    typer.Option("--cell", metavar="N", help="Run one cell of the comparison in --run: what a job of an array does.",
                 rich_help_panel="Where it runs"),
]  # fmt: skip
Gather = Annotated[
    bool,
    typer.Option("--gather", help="Write results and report of what is finished in --run: what the last job does.",
                 rich_help_panel="Where it runs"),
]  # fmt: skip


@with_flags(ArrayLaunchConfig)
@with_flags(CompareConfig)
def compare(
    flags: dict[Key, Any],
    launching: dict[Key, Any],
    recipe: Recipe = None,
    settings: Settings = None,
    run: Run = None,
    overwrite: Overwrite = False,
    resume: Resume = False,
    cell: OneCell = None,
    gather: Gather = False,
) -> None:
    """Compare kinds of attention on a text, or any settings of any job: same data, order and budget."""
    from attnlab.compare.run import resume_comparison, run_comparison, saved_comparison

    launch = asked(ArrayLaunchConfig, launching)
    for option, given in {"--resume": resume, "--cell": cell is not None, "--gather": gather}.items():
        if given and run is None:
            raise UserError(f"{option} needs --run: the folder of the comparison to go on with.")
        if given and overwrite:
            raise UserError(f"{option} and --overwrite contradict each other: give one of them.")
    if run is not None and (cell is not None or gather):
        _part(run, cell)
        return
    config = _resumed(saved_comparison(run), recipe, flags, settings or []) if resume and run is not None else None
    if launch is not None:
        refuse(overwrite=overwrite)
        path = run or fresh_path(ROOT, "compare")
        _hand_over(launch, path, config or _asked(recipe, flags, settings or []), resume)
        return
    if config is not None and run is not None:
        none_at_work(run)
        path = resume_comparison(run, config)
    else:
        config = _asked(recipe, flags, settings or [])
        path = run_comparison(config, run or fresh_path(ROOT, "compare"), overwrite)
    _show(path)


def _part(path: Path, cell: int | None) -> None:
    """What one of many processes does."""
    from attnlab.compare.spread import gather_comparison, run_cell

    if cell is not None:
        run_cell(path, cell)
    else:
        _show(gather_comparison(path))


def _hand_over(launch: ArrayLaunchConfig, path: Path, config: Any, resume: bool) -> None:
    """The missing cells as the tasks of an array, then a job that gathers."""
    from attnlab.compare.spread import forget_comparison, missing_cells, queue_comparison, requeue_comparison

    ready(path)
    must_exist(config)
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
    end(launch, path, submission)


def _show(path: Path) -> None:
    from attnlab.compare.results import gather
    from attnlab.compare.run import saved_comparison
    from attnlab.compare.subjects import subject_of
    from attnlab.compare.words import verdicts

    results = gather(path, saved_comparison(path))
    subject = subject_of(results.config)
    for table in (subject.table(results, brief=True), subject.cost(results)):
        _print(table)
    for sentence in verdicts(results) + subject.notes(results):
        console.result(sentence)
    console.result(f"comparison: {path}\nreport: {path / 'report.html'}")


def _asked(recipe: Path | None, flags: dict[Key, Any], settings: list[str], job: str | None = None) -> Any:
    """The comparison that a recipe, flags and settings ask for; which job it is decides what else can be said."""
    said = read_recipe(recipe)[0].get("compare") if recipe is not None else None
    job = flags.get(("compare", "job")) or (said or {}).get("job") or job or "language"
    if job not in comparable():
        raise UserError(unknown("job", job, comparable()))
    kind = comparison_of(job)
    known, given = leaves(kind), dict(flags)
    for key in flags:
        if key not in known:
            flag = flag_of(key, leaves(CompareConfig)[key][0])
            raise UserError(f"{flag} is a setting of the job 'language': for '{job}' write --set NAME=VALUE.")
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            raise UserError(f"--set {setting}: write NAME=VALUE.")
        given[find_setting(kind, name)] = value.strip()
    return load(kind, recipe, given)


def _resumed(saved: Any, recipe: Path | None, flags: dict[Key, Any], settings: list[str]) -> Any:
    """The saved configuration; only the number of seeds may grow."""
    if not recipe and not flags and not settings:
        return saved
    asked = _asked(recipe, flags, settings, saved.compare.job)
    if asked.compare.seeds > saved.compare.seeds:
        saved.compare.seeds = asked.compare.seeds
    given = set(flags) | {find_setting(type(saved), setting.partition("=")[0]) for setting in settings}
    must_keep(saved, asked, given, recipe)
    return saved


def _print(table: Table) -> None:
    from rich.table import Table as Shown

    shown = Shown(box=None, pad_edge=False, header_style="bold")
    for title in table.header:
        shown.add_column(title, overflow="fold")
    for row in table.rows:
        shown.add_row(*row)
    console.result(shown)
    console.result()


def register(app: typer.Typer) -> None:
    app.command()(compare)
