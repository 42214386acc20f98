"""A tiny encoder, texts it can learn in a few steps, and runs without figures: drawing takes longer than training."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.tiny_models import WORDS, tiny_model

from attnlab.api.classifier import Classifier

QUICK = {"machine.precision": "fp32", "machine.threads": 1, "watch.baselines": False}


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(autouse=True)
def _no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attnlab.report.figures.save", lambda figure, path: "<svg/>")


@pytest.fixture
def make(model: Path, tmp_path: Path) -> Callable[..., Classifier]:
    """A classifier that trains its head for a few steps in a moment."""

    def classifier(**changes: Any) -> Classifier:
        settings = {"settings": QUICK | changes.pop("settings", {})}
        quick = {"tune": "head", "steps": 10, "lr": 0.1, "device": "cpu", "verbose": False}
        return Classifier(model, runs=tmp_path / "runs", **(quick | settings | changes))

    return classifier


@pytest.fixture(scope="session")
def texts() -> list[str]:
    """40 different texts: those with "good" first, then those with "bad"."""
    others = [f"{one} {two}" for one in WORDS[9:13] for two in WORDS[13:18]]
    return [f"good {other}" for other in others] + [f"bad {other}" for other in others]


@pytest.fixture(scope="session")
def labels() -> list[str]:
    return ["pos"] * 20 + ["neg"] * 20
