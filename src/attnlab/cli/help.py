"""Help for newcomers: every command has an example, and its rare options appear with --help-all only.

An option is rare if it is declared with `hidden=True`. It works and completes like any other.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from copy import copy
from dataclasses import dataclass
from importlib import import_module
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


START, ATTENTION, TRAIN, USE, MANY, MACHINES = "Start", "Attention", "Train", "Use", "Many runs", "Machines"


@dataclass(frozen=True)
class CommandEntry:
    """One line of `attnlab --help`."""

    name: str
    module: str  # in attnlab.cli
    panel: str
    help: str


OVERVIEW = tuple(
    CommandEntry(*row)
    for row in (
        ("demo", "demo", START, "Pretrain, fine-tune and ask a small GPT; fine-tune an encoder; write a report."),
        ("doctor", "doctor", START, "Show what this machine can do: devices, memory, precisions and their speed."),
        ("explore", "explore", ATTENTION, "Attention by hand: choose a query, see the weights."),
        ("check", "check", ATTENTION, "Check your own attention, function by function, and name the likely mistake."),
        ("attention", "attention", ATTENTION, "List the kinds of attention with equation, paper and cost."),
        ("audit", "attention", ATTENTION, "Check a kind of attention: causality, padding, gradients, decoding, cost."),
        ("new", "attention", ATTENTION, "Write a commented file to start from."),
        ("trust", "trust", ATTENTION, "Allow the code of a run or a recipe of somebody else to be executed."),
        ("data", "data", TRAIN, "Labelled texts: list the tasks, look into one, get one."),
        ("models", "models", TRAIN, "Pretrained models: list them, look into one, get one."),
        ("world", "world", TRAIN, "Write a synthetic world of people: a corpus and questions about it."),
        ("pretrain", "train", TRAIN, "Pretrain a GPT or a BERT on a corpus or a synthetic world."),
        ("finetune", "train", TRAIN, "Fine-tune a GPT on questions and answers."),
        ("knowledge", "train", TRAIN, "Pretrain, fine-tune on questions and score, in one run."),
        ("language", "train", TRAIN, "Train a GPT on a text read as one stream."),
        ("classify", "train", TRAIN, "Fine-tune a pretrained encoder to classify texts."),
        ("recipes", "recipes", TRAIN, "List the shipped recipes, each with its expected result and cost."),
        ("resume", "train", TRAIN, "Resume an interrupted or failed run from its last checkpoint."),
        ("sample", "sample", USE, "Let a trained GPT write: text after a prompt, or from nothing."),
        ("ask", "ask", USE, "Ask a fine-tuned model; it answers with its confidence."),
        ("evaluate", "evaluate", USE, "Evaluate a run on questions, a text or labelled texts."),
        ("heads", "heads", USE, "Name the heads of a model: previous-token, induction, separator and others."),
        ("predict", "predict", USE, "Predict the class of texts with a classifier."),
        ("inspect", "inspect", USE, "See the attention of a model on a text: every layer and head, on one page."),
        ("export", "export", USE, "Export a classifier as a plain folder of transformers."),
        ("ablate", "tracing", USE, "Remove heads, mixers or MLPs of a model, and rank them by what changes."),
        ("trace", "tracing", USE, "Causal tracing: where in a model a name becomes the answer."),
        ("lens", "tracing", USE, "What a GPT would say if it stopped after each layer."),
        ("runs", "runs", MANY, "List runs, show one, compare two."),
        ("report", "report", MANY, "Write the report of a run, a comparison or a sweep anew."),
        ("compare", "compare", MANY, "Compare kinds of attention, or any settings of any job, fairly."),
        ("sweep", "sweep", MANY, "Search over settings of any job; report the winner on test."),
        ("jobs", "jobs", MACHINES, "Runs on a cluster: list them, print their logs, cancel one."),
        ("cluster", "cluster", MACHINES, "Show a Slurm cluster's partitions and nodes."),
    )
)


class LazyCommands(MutableMapping[str, Any]):
    """The commands of the overview by name, built at first use."""

    def __init__(self) -> None:
        self._entries = {entry.name: entry for entry in OVERVIEW}
        self._built: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._built:
            self._built[name] = _build(self._entries[name])
        return self._built[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._built[name] = command

    def __delitem__(self, name: str) -> None:
        del self._built[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._entries, *self._built]))

    def __len__(self) -> int:
        return len(list(iter(self)))


class LazyGroup(TyperGroup):
    """`attnlab` itself."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = LazyCommands()

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self._outline().format_help(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        outline = self._outline()
        return outline.shell_complete(typer.Context(outline, info_name=ctx.info_name), incomplete)

    def _outline(self) -> TyperGroup:
        """A group that has the names and first lines of the commands, and nothing behind them."""
        commands: dict[str, Any] = {
            entry.name: TyperCommand(entry.name, help=entry.help, rich_help_panel=entry.panel) for entry in OVERVIEW
        }
        return TyperGroup(name=self.name, commands=commands, params=self.params, help=self.help, epilog=self.epilog)


def _build(entry: CommandEntry) -> Any:
    """Import the module of a command and build that command alone."""
    app = typer.Typer()
    import_module(f"attnlab.cli.{entry.module}").register(app)
    app.registered_commands = [info for info in app.registered_commands if _name(info) == entry.name]
    app.registered_groups = [info for info in app.registered_groups if info.name == entry.name]
    for group in app.registered_groups:
        group.cls = LabGroup
    for part in (app, *(group.typer_instance for group in app.registered_groups)):
        for info in part.registered_commands if part is not None else ():
            info.cls = LabCommand
    command: Any = typer.main.get_group(app).commands[entry.name]
    command.rich_help_panel = entry.panel
    return command


def _name(info: Any) -> str:
    return str(info.name or info.callback.__name__)
