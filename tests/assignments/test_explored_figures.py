"""The figures of `attnlab explore` in the reports are those that the commands draw today."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest
from matplotlib.testing.compare import compare_images
from tests.assignments.conftest import ASSIGNMENTS

from attnlab import cli

DRAWN = {
    "natural-language-processing-4/figures/noise.png": "noise",
    "natural-language-processing-4/figures/construct.png": "construct --betas 1,3,5",
    "attention-and-transformers/figures/copy.png": "copy --example selection --index 0",
    "attention-and-transformers/figures/reach-square.png": "reach --example square",
}
ROOM = 1.0  # of 255, root mean square over the picture: drawing it on another machine changes 0.1, other numbers 12


@pytest.mark.parametrize("figure", DRAWN)
def test_a_figure_shows_what_the_command_computes(figure: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = tmp_path / "drawn.png"
    monkeypatch.setattr(sys, "argv", ["attnlab", "explore", *shlex.split(DRAWN[figure]), "--figure", str(drawn)])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert not stopped.value.code
    kept = tmp_path / "kept.png"  # a copy: the comparison writes beside what it compares
    kept.write_bytes((ASSIGNMENTS / figure).read_bytes())
    assert compare_images(str(kept), str(drawn), tol=ROOM) is None, f"draw {figure} again: attnlab explore ... --figure"
