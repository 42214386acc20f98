"""Links between the pages lead to files that exist, figures are small, and the README's commands exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer.main

from attnlab.cli import app

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path.relative_to(ROOT) for pattern in ("*.md", "docs/**/*.md", "assignments/**/*.md") for path in ROOT.glob(pattern)
)


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_lead_to_files(page: Path) -> None:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if not re.match(r"[a-z]+:", target):
            linked = (ROOT / page).parent / target
            assert linked.exists(), f"{page}: {target}"
            assert linked.suffix != ".png" or linked.stat().st_size <= 150_000


def commands(text: str) -> list[list[str]]:
    """The commands of the fenced blocks, without comments."""
    blocks = "\n".join(re.findall(r"```\n(.*?)```", text, re.DOTALL))
    return [shlex.split(line, comments=True) for line in blocks.splitlines() if line.startswith(".venv/bin/attnlab")]


def test_the_commands_of_the_readme_exist_with_their_options() -> None:
    found = commands((ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(found) == 6
    for words in found:
        command: Any = typer.main.get_command(app)
        rest = words[1:]
        while hasattr(command, "commands"):
            command = command.commands[rest.pop(0)]
        known = {name for parameter in command.params for name in parameter.opts}
        assert {word for word in rest if word.startswith("-")} <= known, words
