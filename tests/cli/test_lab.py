"""The whole command line: help on every option, versions, quiet, completion, no colours in pipes."""

import json
import subprocess
from collections.abc import Callable

import pytest
import typer

from attnlab.cli import app
from attnlab.version import __version__

Run = Callable[..., subprocess.CompletedProcess[str]]


def commands() -> list[tuple[str, typer.core.TyperCommand]]:
    """Every command with its path, sub-commands included."""
    found = []
    waiting = [("", typer.main.get_command(app))]
    while waiting:
        path, command = waiting.pop()
        if inner := getattr(command, "commands", {}):
            waiting += [(f"{path} {name}".strip(), each) for name, each in inner.items()]
        else:
            found.append((path, command))
    return found


@pytest.mark.parametrize(("path", "command"), commands(), ids=lambda value: value if isinstance(value, str) else "")
def test_every_command_and_every_option_has_help(path: str, command: typer.core.TyperCommand) -> None:
    assert command.help and command.help.strip(), path
    for parameter in command.params:
        if isinstance(parameter, typer.core.TyperOption):
            assert parameter.help, f"{path} {parameter.opts}"


def test_version_and_contradictions(attnlab: Run) -> None:
    assert attnlab("--version").stdout.strip() == f"attnlab {__version__}"
    assert attnlab("--quiet", "--verbose", "doctor").returncode == 2


def test_help_groups_options_by_topic_and_has_no_colours_in_a_pipe(attnlab: Run) -> None:
    text = attnlab("pretrain", "--help").stdout
    for topic in ("Run", "Data", "Model", "Optimizer", "Schedule", "Batches", "Training", "Machine"):
        assert f"─ {topic} ─" in text
    assert "\x1b[" not in text


def test_quiet_keeps_results_only(attnlab: Run, tmp_path_factory: pytest.TempPathFactory) -> None:
    words = ["--people", 8, "--places", 4, "--layers", 1, "--heads", 1, "--width", 8, "--steps", 2, "--device", "cpu"]
    done = attnlab(
        "--quiet", "pretrain", *words, "--precision", "fp32", "--run", tmp_path_factory.mktemp("quiet") / "run"
    )
    assert done.returncode == 0 and done.stderr == "" and "run:" in done.stdout


def test_warnings_of_libraries_are_for_verbose_alone(attnlab: Run, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("warning") / "warns.py"
    file.write_text(
        "import warnings, torch\n"
        "class Mixer(torch.nn.Linear):\n"
        "    def __init__(self, shape):\n"
        "        super().__init__(shape.width, shape.width)\n"
        "        warnings.warn('a library has an opinion')\n",
        encoding="utf-8",
    )
    assert "an opinion" not in attnlab("audit", file, "--no-cost").stderr
    assert "an opinion" in attnlab("--verbose", "audit", file, "--no-cost").stderr


def test_shell_completion_is_offered(attnlab: Run) -> None:
    done = attnlab("--show-completion", "bash")
    assert done.returncode == 0 and "attnlab" in done.stdout


def test_doctor_shows_what_the_machine_can_do(attnlab: Run) -> None:
    found = json.loads(attnlab("doctor", "--json").stdout)
    assert found["cores"] >= 1 and found["disk_free_gib"] > 0 and set(found["precisions"]) == {"fp32", "bf16", "fp16"}
    assert found["precisions"]["fp32"] > 0 and found["auto"]["precision"] in found["precisions"]
    assert "HF_HUB_OFFLINE" in found["hub"] and found["versions"]["torch"]
