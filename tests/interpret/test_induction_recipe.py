"""What the recipe `induction` promises: an induction head forms with two layers, and not with one.

Shorter than the recipe: by this step the head of every measured seed had formed (docs/notebook/induction-heads.md).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from attnlab.interpret.heads import score_heads
from attnlab.interpret.subject import open_subject
from attnlab.runs import read_record

STEPS = 450


def trained(attnlab: Callable[..., Any], folder: Path, layers: int) -> tuple[float, float]:
    """The score of the strongest induction head, and the validation loss."""
    run = folder / f"{layers}-layers"
    words = ["--config", "induction", "--corpus", folder / "repeats.txt", "--run", run, "--layers", layers]
    done = attnlab(
        "language", *words, "--steps", STEPS, "--evaluate-every", STEPS, "--save-every", STEPS, "--threads", 1
    )
    assert done.returncode == 0, done.stderr
    _, strongest = score_heads(open_subject(run), draws=20).scores("induction").strongest(1)[0]
    return strongest.mean, read_record(run)["results"]["dev_loss"]


@pytest.mark.slow
def test_two_layers_learn_what_one_cannot(attnlab: Callable[..., Any], tmp_path: Path) -> None:
    assert attnlab("data", "repeats", tmp_path / "repeats.txt").returncode == 0
    score, loss = trained(attnlab, tmp_path, 2)
    alone, loss_alone = trained(attnlab, tmp_path, 1)
    assert score > 0.4 and alone < 0.05
    assert loss < 3.5 and loss_alone > 3.9
