"""A clean copy of the attention assignment's folder; its notebooks run at tiny size, also with a function left out."""

from __future__ import annotations

import ast
import json
import runpy
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from attnlab.attention import VARIANTS

ASSIGNMENTS = Path(__file__).parents[2] / "assignments"
FOLDER = ASSIGNMENTS / "attention-and-transformers"
NOTEBOOKS = ("A2S1.py", "A2S2.py", "A2S3.py")
MODULES = ("record", "starter", "write_up")


def copy_folder(into: Path) -> Path:
    """The folder without its results, and the converter of notebooks beside it, as in the repository."""
    copy = into / "assignments" / FOLDER.name
    shutil.copytree(FOLDER, copy, ignore=shutil.ignore_patterns("__pycache__", "runs", "results", "figures"))
    shutil.copy(ASSIGNMENTS / "to_ipynb.py", copy.parent)
    return copy


def without(source: str, name: str) -> str:
    """The source with the body of a function, or of a method as Class.method, replaced by NotImplementedError."""
    tree = ast.parse(source)
    body: list[ast.stmt] = tree.body
    *classes, function = name.split(".")
    for wanted in classes:
        body = next(node.body for node in body if isinstance(node, ast.ClassDef) and node.name == wanted)
    node = next(node for node in body if isinstance(node, ast.FunctionDef) and node.name == function)
    node.body = ast.parse("raise NotImplementedError").body
    return ast.unparse(tree)


class Notebooks:
    """The notebooks of a copy, run in this process one after the other."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        monkeypatch.chdir(folder)
        monkeypatch.syspath_prepend(str(folder))
        monkeypatch.setattr(sys, "excepthook", sys.excepthook)
        monkeypatch.setenv("ATTNLAB_QUICK", "1")
        monkeypatch.setenv("ATTNLAB_OUT", ".")
        for name in ("ATTNLAB_DATA", "EXPERIMENTS", "MODEL", "SEEDS", "TOKENS"):
            monkeypatch.delenv(name, raising=False)

    def run(self, script: str, leave_out: str | None = None) -> dict[str, Any]:
        """`python SCRIPT`; gives back its variables."""
        path = self.folder / script
        if leave_out is not None:
            path.write_text(without(path.read_text(encoding="utf-8"), leave_out), encoding="utf-8")
        with _as_it_was():
            return runpy.run_path(str(path), run_name="__main__")

    def results(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "results" / f"{name}.json").read_text(encoding="utf-8"))
        return found


@contextmanager
def _as_it_was() -> Iterator[None]:
    """Registered attention and imported modules, before and after."""
    variants = dict(VARIANTS)
    _forget()
    try:
        yield
    finally:
        _forget()
        VARIANTS.clear()
        VARIANTS.update(variants)


def _forget() -> None:
    for name in [name for name in sys.modules if name.split(".")[0] in MODULES]:
        del sys.modules[name]
