"""`attnlab compare`: variants of attention or positions, several seeds each, one fair report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attnlab import console
from attnlab.cli.train import Overwrite, Recipe, must_keep
from attnlab.compare.config import CompareConfig
from attnlab.config.flags import with_flags
from attnlab.config.recipe import Key, load
from attnlab.errors import UserError

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


@with_flags(CompareConfig)
def compare(
    flags: dict[Key, Any],
    recipe: Recipe = None,
    run: Run = None,
    overwrite: Overwrite = False,
    resume: Resume = False,
) -> None:
    """Compare kinds of attention, or positions, on a text: same data, order, budget and shape."""
    from attnlab.compare.page import cost, quality
    from attnlab.compare.results import gather
    from attnlab.compare.run import resume_comparison, run_comparison, saved_comparison
    from attnlab.compare.words import leaks, verdicts
    from attnlab.runs import fresh_path

    if resume:
        if run is None:
            raise UserError("--resume needs --run: the folder of the comparison to go on with.")
        if overwrite:
            raise UserError("--resume and --overwrite contradict each other: give one of them.")
        path = resume_comparison(run, _resumed(saved_comparison(run), recipe, flags))
    else:
        path = run_comparison(load(CompareConfig, recipe, flags), run or fresh_path(Path("runs"), "compare"), overwrite)
    results = gather(path, saved_comparison(path))
    for table in (quality(results, brief=True), cost(results)):
        _print(table)
    for sentence in verdicts(results) + leaks(results):
        console.result(sentence)
    console.result(f"comparison: {path}\nreport: {path / 'report.html'}")


def _resumed(saved: CompareConfig, recipe: Path | None, flags: dict[Key, Any]) -> CompareConfig:
    """The saved configuration; only the number of seeds may grow."""
    if not recipe and not flags:
        return saved
    asked = load(CompareConfig, recipe, flags)
    if asked.compare.seeds > saved.compare.seeds:
        saved.compare.seeds = asked.compare.seeds
    must_keep(saved, asked, flags, recipe)
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
