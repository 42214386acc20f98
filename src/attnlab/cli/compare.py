"""`attnlab compare`: variants of a job, several seeds each, one fair report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from attnlab import console
from attnlab.cli.several import Asking, Settings, folder_of, given_keys, print_table, to_resume
from attnlab.cli.train import Overwrite, Recipe, must_keep
from attnlab.compare.choices import AXES as CHOICES
from attnlab.compare.config import CompareConfig, comparison_of
from attnlab.config import leaves
from attnlab.config.flags import part_of, with_flags
from attnlab.config.recipe import Key
from attnlab.errors import UserError
from attnlab.jobs.configs import ClassifyConfig

Run = Annotated[Path | None, folder_of("comparison")]
Resume = Annotated[
    bool,
    typer.Option("--resume", help="Go on with the comparison in --run: what is missing, or more --seeds.",
                 rich_help_panel="Run"),
]  # fmt: skip

PairOf = Annotated[
    str | None,
    typer.Option("--pair", metavar="A,B", help="Test two variants of the finished comparison in --run; run nothing.",
                 rich_help_panel="Run"),
]  # fmt: skip
CLASSIFIERS = part_of(
    ClassifyConfig, "Classifiers (--models, --methods, --optimizers)", "data.task", "data.max_tokens", "data.examples",
    "model.name", "tuning.method", "training.epochs",
)  # fmt: skip
IMPLIED = dict.fromkeys([*leaves(CLASSIFIERS), *(("compare", name) for name in CHOICES)], "classify")
ASKING = Asking("compare", CompareConfig, "language", comparison_of, IMPLIED)


@with_flags(CompareConfig, CLASSIFIERS)
def compare(
    flags: dict[Key, Any],
    recipe: Recipe = None,
    settings: Settings = None,
    run: Run = None,
    overwrite: Overwrite = False,
    resume: Resume = False,
    pair: PairOf = None,
) -> None:
    """Compare kinds of attention on a text, or any settings of any job: same data, order and budget."""
    from attnlab.compare.results import gather
    from attnlab.compare.run import resume_comparison, run_comparison, saved_comparison
    from attnlab.compare.subjects import subject_of
    from attnlab.compare.words import verdicts
    from attnlab.runs import fresh_path

    if pair is not None:
        if run is None:
            raise UserError("--pair needs --run: the folder of the comparison that has the two variants.")
        results = gather(run, saved_comparison(run))
        console.result(subject_of(results.config).pair(results, pair))
        return
    if resume:
        folder = to_resume(run, overwrite, "comparison")
        path = resume_comparison(folder, _resumed(saved_comparison(folder), recipe, flags, settings or []))
    else:
        asked = ASKING.config(recipe, flags, settings or [])
        path = run_comparison(asked, run or fresh_path(Path("runs"), "compare"), overwrite)
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
    app.command()(compare)
