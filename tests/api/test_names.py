"""`import attnlab as lab`: cheap, complete for completion and type checkers, and packages stay packages."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import attnlab as lab

CODE = Path(lab.__file__).read_text(encoding="utf-8")


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = (
        "import sys, attnlab; print(*sorted({'torch', 'numpy', 'matplotlib', 'pydantic', 'rich'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "\n"


@pytest.mark.parametrize("name", lab.NAMES)
def test_every_name_is_there_documented_and_completed(name: str) -> None:
    assert name in dir(lab) and name in lab.__all__
    thing = getattr(lab, name)
    assert thing.__doc__ and (callable(thing) or name == "explore")


def test_type_checkers_see_the_same_names() -> None:
    (block,) = [node for node in ast.parse(CODE).body if isinstance(node, ast.If)]
    seen = {alias.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert seen == lab.NAMES


@pytest.mark.parametrize("name", ["check", "runs"])
def test_a_package_is_a_function_too_whichever_is_used_first(name: str) -> None:
    package = importlib.import_module(f"attnlab.{name}")
    assert getattr(lab, name) is package and callable(package)
    first = f"import attnlab.{name}, attnlab as lab; assert callable(lab.{name}) and lab.{name}.__path__"
    second = f"import attnlab as lab; assert callable(lab.{name}); from attnlab.{name} import __path__"
    for code in (first, second):
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'trian'"):
        _ = lab.trian  # type: ignore[attr-defined]


def test_a_file_is_checked_function_by_function(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def scores(Q, K):\n    return Q @ K.transpose(-2, -1)\n")
    report = lab.check(tmp_path / "mine.py", stage="plain")
    assert not report.passed and "<table>" in report._repr_html_()
    with pytest.raises(lab.UserError, match="unknown stage 'head'"):
        lab.check("mine.py", stage="head")
