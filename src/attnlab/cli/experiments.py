"""What `attnlab compare` and `attnlab sweep` share: settings of the job by name, resuming, and printing a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

import typer

from attnlab.base import console
from attnlab.base.errors import UserError
from attnlab.config import Section, find_setting, leaves
from attnlab.config.flags import allow_typed
from attnlab.config.recipe import Key, flag_of, load
from attnlab.experiments.config import chosen_job

if TYPE_CHECKING:
    from attnlab.report.page import Table

C = TypeVar("C", bound=Section)

Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Any setting of the job, the same for all; may be repeated.",
        rich_help_panel="What is run",
    ),
]


def folder_of(what: str) -> Any:
    """The option --run of a command."""
    help_text = f"Folder of the {what} (default: a new one in runs/)."
    return typer.Option("--run", metavar="FOLDER", help=help_text, rich_help_panel="Run")


class Request(Generic[C]):
    """From a recipe, flags and settings to a configuration; the job decides which settings there are.

    `implied` maps settings that only one job has to that job: giving one of them chooses the job.
    """

    def __init__(
        self,
        section: str,
        flags_of: type[Section],
        default: str,
        kind_of: Callable[[str], type[C]],
        implied: Mapping[Key, str] | None = None,
    ) -> None:
        self.section, self.flags_of, self.default, self.kind_of = section, flags_of, default, kind_of
        self.implied = implied or {}

    def config(self, recipe: Path | None, flags: dict[Key, Any], settings: list[str], job: str | None = None) -> C:
        job = chosen_job(self.section, recipe, flags, self.implied, job, self.default)
        kind = self.kind_of(job)
        given = dict(flags)
        for key in flags:
            if key not in leaves(kind):
                owner = self.implied.get(key, self.default)
                field = leaves(self.flags_of if owner == self.default else self.kind_of(owner))[key][0]
                raise UserError(
                    f"{flag_of(key, field)} is a setting of the job {owner!r}: for {job!r} write --set NAME=VALUE."
                )
        for setting in settings:
            allow_typed(setting)
            name, equals, value = setting.partition("=")
            if not equals:
                raise UserError(f"--set {setting}: write NAME=VALUE.")
            given[find_setting(kind, name)] = value.strip()
        return load(kind, recipe, given)


def given_keys(kind: type[Section], flags: dict[Key, Any], settings: list[str]) -> set[Key]:
    """The keys of the settings that were given."""
    return set(flags) | {find_setting(kind, setting.partition("=")[0]) for setting in settings}


def to_resume(run: Path | None, overwrite: bool, what: str) -> Path:
    """The folder to resume."""
    if run is None:
        raise UserError(f"--resume needs --run: the folder of the {what} to resume.")
    if overwrite:
        raise UserError("--resume and --overwrite contradict each other: give one of them.")
    return run


def print_table(table: Table) -> None:
    from rich.table import Table as Shown

    shown = Shown(box=None, pad_edge=False, header_style="bold")
    for title in table.header:
        shown.add_column(title, overflow="fold")
    for row in table.rows:
        shown.add_row(*row)
    console.result(shown)
    console.result()
