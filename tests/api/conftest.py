"""A folder of one's own to work in, a text, and sizes at which a run takes a second."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import attnlab as lab
from attnlab.base import trust

TEXT = "the cat sat on the mat and the dog ate the cake. " * 60
FAST: dict[str, Any] = {"batch_size": 8, "threads": 1, "precision": "fp32"}
SHAPE: dict[str, Any] = {"layers": 1, "heads": 2, "width": 16, "context": 16}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The present folder, and a list of allowed files that begins empty."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ATTNLAB_CONFIG", str(tmp_path / "config"))
    monkeypatch.setattr(trust, "_this_process", set())
    (tmp_path / "text.txt").write_text(TEXT)
    return tmp_path


@pytest.fixture
def small() -> lab.GPT:
    return lab.GPT(**SHAPE)
