"""Help: groups, examples that parse, rare options behind --help-all, and nothing heavy imported for it."""

from __future__ import annotations

import shlex
import subprocess
import sys
from importlib import import_module

import pytest
import typer
from rich.text import Text
from typer.testing import CliRunner

from attnlab.cli import app
from attnlab.cli.help import OVERVIEW, LabCommand

GROUP = typer.main.get_command(app)
HEAVY = ("torch", "matplotlib", "transformers", "scipy", "optuna", "sklearn", "numpy", "pandas")


def paths(command: object = GROUP, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every command and group of commands, by the words that call it."""
    inner = getattr(command, "commands", {})
    return [path, *(found for name in inner for found in paths(inner[name], (*path, name)))]


def command_of(path: tuple[str, ...]) -> typer.core.TyperCommand:
    command = GROUP
    for name in path:
        command = command.commands[name]  # type: ignore[attr-defined]
    return command  # type: ignore[return-value]


PATHS = [path for path in paths() if path]
COMMANDS = [path for path in PATHS if not hasattr(command_of(path), "commands")]


@pytest.mark.parametrize("path", [(), *PATHS], ids=lambda path: " ".join(path) or "attnlab")
def test_help_of_every_command_fits_80_columns(path: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "80", "TERMINAL_WIDTH": "80", "NO_COLOR": "1"})
    assert done.exit_code == 0, done.output
    assert max(len(line) for line in done.output.splitlines()) <= 80
    assert "Usage:" in done.output


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_help_all_shows_every_option_by_its_whole_name(path: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, [*path, "--help-all"], env={"COLUMNS": "80", "TERMINAL_WIDTH": "80"})
    assert done.exit_code == 0, done.output
    for parameter in command_of(path).params:
        if isinstance(parameter, typer.core.TyperOption) and parameter.name != "help_all":
            assert parameter.opts[0] in done.output


def test_commands_are_grouped_in_the_order_of_use() -> None:
    text = CliRunner().invoke(app, ["--help"]).output
    titles = [f"─ {panel} ─" for panel in ("Start", "Attention", "Train", "Use", "Many runs", "Machines")]
    assert [text.index(title) for title in titles] == sorted(text.index(title) for title in titles)
    for entry in OVERVIEW:
        assert f"│ {entry.name} " in text


def test_the_overview_lists_every_command_of_the_modules() -> None:
    registered = set()
    for module in {entry.module for entry in OVERVIEW}:
        group = typer.Typer()
        import_module(f"attnlab.cli.{module}").register(group)
        registered |= {info.name or info.callback.__name__ for info in group.registered_commands}  # type: ignore[union-attr]
        registered |= {info.name for info in group.registered_groups}
    assert registered == {entry.name for entry in OVERVIEW}


@pytest.mark.parametrize("path", [*COMMANDS, ("runs",), ("jobs",)], ids=" ".join)
def test_the_example_of_a_command_parses(path: tuple[str, ...]) -> None:
    """Its options exist, its values have the right type, and nothing that is needed is missing."""
    epilog = Text.from_markup(command_of(path).epilog or "").plain
    assert epilog.startswith(f"Example: attnlab {' '.join(path)}"), epilog
    words = shlex.split(epilog.removeprefix("Example: attnlab "))
    context = typer.Context(GROUP)
    for depth in range(1, len(path)):
        context = typer.Context(command_of(path[:depth]), parent=context, info_name=path[depth - 1])
    command_of(path).make_context(path[-1], words[len(path) :], parent=context)


@pytest.mark.parametrize("kind", ["pretrain", "finetune", "language", "classify", "knowledge"])
def test_a_training_command_shows_what_a_newcomer_needs(kind: str) -> None:
    short, whole = (
        CliRunner().invoke(app, [kind, option], env={"COLUMNS": "120", "TERMINAL_WIDTH": "120"}).output
        for option in ("--help", "--help-all")
    )
    for flag in ("--device", "--run", "--config", "--dry-run", "--help-all"):
        assert flag in short
    for flag in ("--partition", "--sbatch", "--restarts", "--sharding", "--launch"):
        assert flag not in short and flag in whole
    assert len(short.splitlines()) < 0.7 * len(whole.splitlines())


def test_rare_options_complete_and_work() -> None:
    command = command_of(("pretrain",))
    assert isinstance(command, LabCommand)
    items = command.shell_complete(typer.Context(command), "--part")
    assert [item.value for item in items] == ["--partition"]
    done = CliRunner().invoke(app, ["pretrain", "--partition", "gpu"])
    assert "--partition is for a cluster" in str(done.exception)


@pytest.mark.parametrize("words", [["--help"], ["pretrain", "--help"], ["runs", "--in", "."], ["--version"]])
def test_help_and_listing_import_nothing_heavy(words: list[str], cli_environment: dict[str, str]) -> None:
    assert imported(words, cli_environment) == []


@pytest.mark.parametrize(("typed", "expected"), [("attnlab pre", "pretrain"), ("attnlab classify --ta", "--task")])
def test_completion_is_right_and_imports_nothing_heavy(
    typed: str, expected: str, cli_environment: dict[str, str]
) -> None:
    words = {"_ATTNLAB_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1)}
    assert imported([], {**cli_environment, **words}, expected) == []


def imported(words: list[str], environment: dict[str, str], expected: str = "") -> list[str]:
    """The heavy packages that a command imports in a process of its own."""
    script = f"""
import sys
sys.argv = ["attnlab", *{words!r}]
from attnlab.cli import main
try:
    main()
except SystemExit:
    pass
print("imported:", *(name for name in {HEAVY!r} if name in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert expected in done.stdout
    return done.stdout.splitlines()[-1].split()[1:]
