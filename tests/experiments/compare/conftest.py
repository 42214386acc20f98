"""A text and a comparison small enough to run in seconds."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from attnlab.config import check
from attnlab.experiments.config import LanguageComparison

SMALL: dict[str, Any] = {
    "budget": {"steps": 12, "evaluations": 3, "log_every": 4},
    "model": {"layers": 1, "heads": 2, "width": 16, "context": 16, "dropout": 0.0},
    "measures": {"dev_blocks": 8, "prefix_blocks": 4},
    "batch": {"size": 4},
    "machine": {"device": "cpu", "precision": "fp32", "threads": 1},
}


@pytest.fixture(scope="session")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sentences of a few words: enough order to learn from, enough chance not to be trivial."""
    draw = random.Random(0)
    words = [[draw.choice(("the", "a")), draw.choice(("cat", "dog")), draw.choice(("sat", "ran"))] for _ in range(250)]
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("\n".join(" ".join(line) for line in words), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def small(text: Path) -> Callable[..., LanguageComparison]:
    """small(section={...}): the small comparison of that text, with some settings changed."""

    def make(**sections: dict[str, Any]) -> LanguageComparison:
        values = {name: SMALL.get(name, {}) | sections.get(name, {}) for name in {*SMALL, *sections}}
        values["data"] = {"corpus": str(text)} | sections.get("data", {})
        return check(LanguageComparison, values)

    return make
