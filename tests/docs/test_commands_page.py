"""docs/commands.md is what tools/commands_page.py writes: every command and every option."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")


@pytest.fixture
def commands_page(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module("commands_page")


def test_the_page_is_that_of_the_commands(commands_page: ModuleType) -> None:
    assert commands_page.page() == PAGE, "run: python tools/commands_page.py"


def test_every_command_has_a_section_and_every_option_a_row(commands_page: ModuleType) -> None:
    commands = list(commands_page.walk(commands_page.ROOT))
    assert len(commands) > 30
    for command in commands:
        for parameter in command.params:
            if not commands_page.is_of_typer(parameter):
                assert parameter.name == "help" or f"| `{commands_page.cell(commands_page.names(parameter))}` |" in PAGE
    for name in commands_page.ROOT.commands:
        assert f"\n## attnlab {name}\n" in PAGE


def test_links_within_the_page_lead_to_a_heading(commands_page: ModuleType) -> None:
    anchors = {commands_page.anchor(title) for title in re.findall(r"^#+ (.*)$", PAGE, re.MULTILINE)}
    linked = set(re.findall(r"\]\(#([^)]+)\)", PAGE))
    assert linked and linked <= anchors
