"""A class of a notebook becomes a file that does the same in a process that has never seen the notebook."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from attnlab.attention import MixerShape
from attnlab.attention.class_source import NotStorable, class_source, class_text
from attnlab.attention.registry import run_source

FILE = Path("mean.py")
SHAPE = MixerShape(width=8, heads=2, context=8)
CELL = """
import math
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from functools import lru_cache as remembered

SIZES = [3, 5]
LIMIT = float("inf")
NAMES = {"b", "a"}
weights = torch.ones(2)  # a variable that has the name of a local one below
x = torch.ones(3)

@remembered
def powers(count: int) -> tuple[float, ...]:
    return tuple(math.pow(2, -k) for k in range(count))

class Base(nn.Module):
    def scale(self, x: Tensor) -> Tensor:
        return x * sum(powers(SIZES[0]))

class Mean(Base):
    equation = "mean of the past"

    def __init__(self, shape):
        super().__init__()
        self.output = nn.Linear(shape.width, shape.width)

    def forward(self, x: Tensor, padding: Tensor | None = None) -> Tensor:
        weights = torch.ones(x.shape[1], x.shape[1]).tril()
        weights = F.normalize(weights, p=1.0, dim=1).clamp(max=LIMIT)
        return self.output(self.scale(weights @ x)) * len(NAMES)
"""


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], dict[str, Any]]]:
    """Run a cell as a notebook does: in a module without a file, its text known to linecache alone."""
    module, cells = ModuleType("a_notebook"), []
    monkeypatch.setitem(sys.modules, "a_notebook", module)

    def run(text: str) -> dict[str, Any]:
        name = f"<ipython-input-{len(cells)}>"
        cells.append(name)
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        exec(compile(text, name, "exec", dont_inherit=True), module.__dict__)
        return module.__dict__

    yield run
    for name in cells:
        linecache.cache.pop(name)


def built(kind: Any) -> tuple[Any, torch.Tensor]:
    torch.manual_seed(1)
    mixer = kind(SHAPE)
    return mixer, mixer(torch.randn(2, 6, 8))


def test_the_file_holds_the_class_and_what_it_uses(notebook: Callable[[str], dict[str, Any]]) -> None:
    kind = notebook(CELL)["Mean"]
    source = class_source(kind, SHAPE)
    stored = vars(run_source(source.encode(), FILE))["Mixer"]
    assert stored is not kind and stored.__name__ == "Mean"
    torch.testing.assert_close(built(stored)[1], built(kind)[1], rtol=0, atol=0)
    assert "weights = torch.ones(2)" not in source and "x = " not in source.partition("class Base")[0]
    assert "NAMES = set(['a', 'b'])" in source  # a set has no order of its own
    assert source == class_source(kind, SHAPE)


def test_a_class_defined_in_a_later_cell_uses_the_helper_of_that_moment(
    notebook: Callable[[str], dict[str, Any]],
) -> None:
    notebook(CELL)
    first = class_source(notebook("")["Mean"], SHAPE)
    changed = class_source(notebook("SIZES = [1, 5]")["Mean"], SHAPE)
    assert "SIZES = [3, 5]" in first and "SIZES = [1, 5]" in changed


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("len(NAMES)", "TABLE.mean()"), "it uses TABLE, which is a Tensor and not a plain constant"),
        (("len(NAMES)", "len(open_file.name)"), "it uses open_file, which is a TextIOWrapper"),
    ],
)
def test_what_cannot_be_written_down_is_named(
    notebook: Callable[[str], dict[str, Any]], change: tuple[str, str], reason: str
) -> None:
    cell = "import torch\nTABLE = torch.ones(2)\nopen_file = open('/dev/null')\n" + CELL.replace(*change)
    names = notebook(cell)
    with pytest.raises(NotStorable, match=reason):
        class_source(names["Mean"], SHAPE)
    names["open_file"].close()


def test_a_class_inside_a_function_is_stored_unless_it_uses_its_variables(
    notebook: Callable[[str], dict[str, Any]],
) -> None:
    inner = CELL.partition("class Mean")[2].replace("\n", "\n    ")
    names = notebook(CELL + f"\ndef make(factor):\n    class Mean{inner}\n    return Mean\n")
    assert class_source(names["make"](2), SHAPE).count("class Mean") == 1
    names = notebook(
        CELL + f"\ndef make(factor):\n    class Mean{inner.replace('len(NAMES)', 'factor')}\n    return Mean\n"
    )
    with pytest.raises(NotStorable, match="it uses factor of the function in which it was defined"):
        class_source(names["make"](2), SHAPE)


def test_source_that_does_something_else_is_not_stored(notebook: Callable[[str], dict[str, Any]]) -> None:
    names = notebook(CELL)
    names["Mean"].forward = lambda self, x: x  # patched after it was defined
    with pytest.raises(NotStorable, match="other outputs"):
        class_source(names["Mean"], SHAPE)


def test_without_source_there_is_a_reason(notebook: Callable[[str], dict[str, Any]]) -> None:
    names = notebook(CELL)
    linecache.cache["<ipython-input-0>"] = (0, None, [], "")
    with pytest.raises(NotStorable, match="its source is not available"):
        class_source(names["Mean"], SHAPE)
    assert "not available" in class_text(names["Mean"])
    with pytest.raises(NotStorable, match="only a class can be stored"):
        class_source(lambda shape: names["Mean"](shape), SHAPE)
