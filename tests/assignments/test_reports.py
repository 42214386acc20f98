"""The pages of answers: every number has a source, every computed one is true, every command shown works.

The marks are explained at the top of assignments/facts.py. A number needs one if it has a decimal point,
a percent sign, an exponent or three digits; small counts, section numbers (§1.2, Q1.1), code and headings
need none.
"""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from attnlab import cli

ANSWERS = Path(__file__).parents[2] / "assignments"
PAGES = ["README.md", *sorted(f"{path.parent.name}/{path.name}" for path in ANSWERS.glob("*/report.md"))]
NUMBER = r"[-−]?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?%?"
MARK = re.compile(
    rf"(?:`(?P<list>\[[^`]*\])`|(?P<number>{NUMBER}))"
    r"<!-- (?:(?P<how>[=<>]) (?P<name>[\w.:/-]+)|quoted|given) -->"
)


@cache
def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ANSWERS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True)
class Claim:
    page: str
    shown: str
    how: str
    name: str

    def __str__(self) -> str:
        return f"{self.page}:{self.name}"


def claims() -> list[Claim]:
    found = []
    for page in PAGES:
        for mark in MARK.finditer(prose(page)):
            if mark["how"]:
                found.append(Claim(page, mark["list"] or mark["number"], mark["how"], mark["name"]))
    return found


def prose(page: str) -> str:
    """The page without tables made from results, fenced and indented code, headings, links' targets and anchors."""
    text = (ANSWERS / page).read_text(encoding="utf-8")
    text = re.sub(r"<!-- table: .*?<!-- end -->", "", text, flags=re.DOTALL)
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    text = re.sub(r"^(?:#.*| {4}.*|<a id=.*)$", "", text, flags=re.MULTILINE)
    return re.sub(r"\]\([^)]*\)", "]", text)


def rounded(value: float, shown: str) -> str:
    """The value in the form of the number shown: as many decimals, percent if it has one."""
    digits = shown.rstrip("%").replace(",", "")
    places = len(digits.partition(".")[2])
    return f"{value * (100 if shown.endswith('%') else 1):.{places}f}"


def compute(name: str, page: str) -> Any:
    if name.startswith("results:"):
        return measured(name, page)
    known = {**load("facts").FACTS, **load("data_facts").FACTS}
    assert name in known, f"no fact is called {name}"
    try:
        return known[name]()
    except FileNotFoundError as missing:
        pytest.skip(f"real data: {missing}")


def measured(name: str, page: str) -> Any:
    """`results:FILE.json:key.key`: a value in the results beside the page; a number is a place in a list.

    The index names the folder as well: `results:FOLDER/FILE.json:key.key`.
    """
    _, path, keys = name.split(":")
    folder, _, file = path.rpartition("/")
    results = (ANSWERS / page).parent / folder / "results"
    value: Any = json.loads((results / file).read_text(encoding="utf-8"))
    for key in keys.split("."):
        value = value[int(key)] if isinstance(value, list) else value[key]
    return value


@pytest.mark.parametrize("claim", claims(), ids=str)
def test_a_computed_number_is_true(claim: Claim) -> None:
    value = compute(claim.name, claim.page)
    if claim.how == ">":
        assert float(claim.shown) > value
    elif claim.how == "<":
        assert float(claim.shown) < value
    elif claim.shown.startswith("["):
        shown = claim.shown.strip("[]").split(", ")
        numbers = np.asarray(value, dtype=float)
        assert [rounded(number, text) for number, text in zip(numbers, shown, strict=True)] == shown
    else:
        assert rounded(value, claim.shown) == claim.shown.rstrip("%").replace(",", "")


@pytest.mark.parametrize("page", PAGES)
def test_every_number_has_a_source(page: str) -> None:
    text = MARK.sub("", prose(page))
    text = re.sub(r"`[^`\n]*`", "", text)
    bare = re.findall(rf"(?<![\w§.−-]){NUMBER}(?![\w])", text)
    unmarked = [n for n in bare if re.search(r"\.\d|%|e-?\d", n) or len(re.sub(r"\D", "", n)) >= 3]
    assert unmarked == [], "mark these with the fact that computes them, or as quoted"


def test_every_fact_is_used() -> None:
    used = {claim.name for claim in claims()}
    known = {*load("facts").FACTS, *load("data_facts").FACTS}
    assert known - used == set()


def shown_commands() -> list[str]:
    found = []
    for page in PAGES:
        for block in re.findall(r"```sh\n(.*?)```", (ANSWERS / page).read_text(encoding="utf-8"), re.DOTALL):
            found += block.splitlines()
    return sorted(set(found))


@pytest.mark.parametrize("command", shown_commands())
def test_a_shown_command_works(command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [*shlex.split(command), "--json"])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert not stopped.value.code


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    text = (ANSWERS / page).read_text(encoding="utf-8")
    for target, anchor in re.findall(r"\]\(([\w./-]*)(?:#([\w-]+))?\)", text):
        linked = (ANSWERS / page).parent / target if target else ANSWERS / page
        assert linked.is_file(), target
        if anchor:
            assert f'<a id="{anchor}"></a>' in linked.read_text(encoding="utf-8"), f"{target}#{anchor}"


def test_a_wrong_number_would_be_noticed() -> None:
    assert rounded(0.020075, "0.020") == "0.020"
    assert rounded(0.020075, "0.021") != "0.021"
    assert rounded(0.62171, "62.17%") == "62.17"
