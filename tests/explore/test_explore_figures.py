"""Every exploration can draw itself, in the cases that break drawings: one dimension, one key, many keys."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from attnlab import explore
from attnlab.base.errors import UserError

SELECTION, SQUARE, KNOWN = (explore.example(name) for name in ("selection", "square", "argmax"))
FOUND: dict[str, Callable[[], explore.Exploration]] = {
    "attend": lambda: explore.try_query(np.ones(3), SELECTION.keys, SELECTION.values, np.zeros(3)),
    "attend-without-target": lambda: explore.try_query(np.zeros(2), SQUARE.keys, SQUARE.values),
    "select": lambda: explore.select(SELECTION.keys, SELECTION.values),
    "select-one-dimension": lambda: explore.select(np.array([[1.0], [2.0]]), np.array([[1.0], [2.0]])),
    "select-one-key": lambda: explore.select(np.array([[1.0, 2.0]]), np.array([[1.0]])),
    "identity": lambda: explore.identity(SQUARE.keys, SQUARE.values),
    "average": lambda: explore.average(SELECTION.keys, SELECTION.values),
    "replace-key": lambda: explore.replace_key(SELECTION.keys, SELECTION.values, np.ones(3)),
    "argmax": lambda: explore.argmax(KNOWN.keys, KNOWN.values, KNOWN.query),
    "argmax-tie": lambda: explore.argmax(np.eye(3), np.eye(3), np.ones(3)),
    "copy": lambda: explore.copy(SQUARE.keys, 4),
    "extract": lambda: explore.extract(*explore.random_subspaces(30, 4, 3), of_mean=True),
    "noise": lambda: explore.noise(samples=100),
    "noise-without-stretch": lambda: explore.noise(stretch=0.0, samples=100),
    "construct": lambda: explore.construct((2.0,)),
    "reach": lambda: explore.reach(SQUARE.keys),
    "reach-line": lambda: explore.reach(np.array([[0.0], [1.0], [2.0]])),
    "reach-many": lambda: explore.reach(np.random.default_rng(0).standard_normal((12, 5)), size=2),
    "reach-one-set": lambda: explore.reach(SQUARE.keys, chosen=(0, 1, 2)),
}


@pytest.mark.parametrize("name", FOUND)
def test_it_draws_something_at_a_readable_size(name: str, tmp_path: Path) -> None:
    from PIL import Image

    picture = Image.open(FOUND[name]().draw(tmp_path / "figure.png")).convert("L")
    assert picture.width >= 700
    shades = np.asarray(picture)
    assert (shades < 128).mean() > 0.001, "the sheet is blank"


def test_drawing_again_gives_the_same_figure(tmp_path: Path) -> None:
    first, second = (FOUND["noise"]().draw(tmp_path / f"{i}.png").read_bytes() for i in (1, 2))
    assert first == second


def test_a_figure_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    found = FOUND["average"]()
    with pytest.raises(UserError, match="unknown figure format"):
        found.draw(tmp_path / "figure.docx")
    with pytest.raises(UserError, match="does not exist"):
        found.draw(tmp_path / "nowhere" / "figure.png")
