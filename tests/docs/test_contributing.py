"""CONTRIBUTING.md draws the folders of src/attnlab as they are, in the layers that import-linter checks."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PACKAGE = ROOT / "src" / "attnlab"
LINE = re.compile(r"(?P<layer>\d|)(?P<indent> +)(?P<name>\w+)/  +\S")


def drawn_map() -> dict[str, int]:
    """The folders of the map by path, each with its layer."""
    block = next(block for block in re.findall(r"```\n(.*?)```", PAGE, re.DOTALL) if " base/ " in block)
    layer, parents = -1, [""]
    folders: dict[str, int] = {}
    for line in block.splitlines():
        match = LINE.match(line)
        assert match, line
        depth = (len(match["layer"] + match["indent"]) - 3) // 2
        layer = int(match["layer"] or layer)
        parents[depth + 1 :] = [f"{parents[depth]}{match['name']}/"]
        folders[parents[depth + 1].rstrip("/")] = layer
    return folders


def test_the_map_names_every_package_folder_and_no_other() -> None:
    packages = {str(file.parent.relative_to(PACKAGE)) for file in PACKAGE.rglob("__init__.py")} - {"."}
    assert set(drawn_map()) == packages


def test_the_layers_of_the_map_are_those_of_the_contract() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    drawn = drawn_map()
    for number, names in enumerate(reversed(contract)):
        assert {name for name, layer in drawn.items() if layer == number and "/" not in name} == set(names.split(" | "))


def test_the_other_folders_exist() -> None:
    drawn = PAGE.partition("## Five paths")[0]
    named = set(re.findall(r"^(\w+)/ {2,}", drawn, re.MULTILINE))
    assert named == {"assignments", "benchmarks", "docs", "tests", "tools"}
    assert all((ROOT / name).is_dir() for name in named)


@pytest.mark.slow
def test_the_five_paths_are_those_that_are_passed_and_short_enough() -> None:
    paths = PAGE.partition("## Five paths")[2].partition("\n## ")[0]
    assert len(re.findall(r"^### ", paths, re.MULTILINE)) == 5
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "path_files.py"), "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
