"""Help for newcomers: every command has an example, and its rare options appear with --help-all only.

An option is rare if it is declared with `hidden=True`. It works and completes like any other.
"""

from __future__ import annotations

from copy import copy
from typing import Annotated, Any

import typer
from rich.markup import escape
from typer.core import TyperCommand, TyperGroup


def example(command: str) -> str:
    """The last line of a command's help."""
    return f"Example: [bold]{escape(command)}[/bold]"


class LabCommand(TyperCommand):
    """A command whose --help shows the common options and whose --help-all shows every option."""

    def __init__(self, *args: Any, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        _append_help_all(self.params)

    def with_all_options(self) -> LabCommand:
        """The same command with no option hidden."""
        whole = copy(self)
        whole.params = [copy(parameter) for parameter in self.params]
        for parameter in whole.params:
            if _is_hidden(parameter) and parameter.name != _HELP_ALL.name:
                parameter.hidden = False  # type: ignore[attr-defined]
        return whole

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Without a column for the --no- form of switches, whose help names it: at 80 columns it would cut names."""
        narrow = copy(self)
        narrow.params = [copy(parameter) for parameter in self.params]
        for parameter in narrow.params:
            if parameter.default is None and any(name.startswith("--no-") for name in parameter.secondary_opts):
                parameter.secondary_opts = []
        super(LabCommand, narrow).format_help(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        return super(LabCommand, self.with_all_options()).shell_complete(ctx, incomplete)


class LabGroup(TyperGroup):
    """A group of commands; it has no rare options, and --help-all is its --help."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        _append_help_all(self.params)


def _append_help_all(parameters: list[Any]) -> None:
    """--help shows it only where it would show more."""
    help_all = copy(_HELP_ALL)
    help_all.hidden = not any(_is_hidden(parameter) for parameter in parameters)
    help_all.help = f"Show all {len(parameters)} options and exit."
    parameters.append(help_all)


def _is_hidden(parameter: Any) -> bool:
    return bool(getattr(parameter, "hidden", False))


def _show_all_options(context: typer.Context, requested: bool) -> None:
    if requested and not context.resilient_parsing:
        command = context.command
        shown = command.with_all_options() if isinstance(command, LabCommand) else command
        typer.echo(shown.get_help(context))
        raise typer.Exit


def _help_all_option() -> Any:
    """The option as typer builds it, to be appended to commands."""

    def command(
        help_all: Annotated[
            bool,
            typer.Option("--help-all", help="Show all options and exit.", is_eager=True, callback=_show_all_options),
        ] = False,
    ) -> None: ...

    app = typer.Typer(add_completion=False)
    app.command()(command)
    option = typer.main.get_command(app).params[0]
    option.expose_value = False
    return option


_HELP_ALL = _help_all_option()
