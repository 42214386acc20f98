"""The shipped recipes that compare language models are what the command takes; one of them learns from real text."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from attnlab.config import load, read_recipe
from attnlab.config.shipped import FOLDER
from attnlab.experiments.cells import cells, variants
from attnlab.experiments.compare import gather, job_config, run_comparison
from attnlab.experiments.config import LanguageComparison
from attnlab.experiments.views.language import gap
from attnlab.models.gpt import shape_of

FILES = [path for path in sorted(FOLDER.glob("compare-*.yaml")) if "job" not in read_recipe(path)[0]["compare"]]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_recipe_is_complete_but_for_the_text(path: Path) -> None:
    config = load(LanguageComparison, path, {})
    assert config.compare.seeds >= 3 and config.data.corpus is None
    for cell in cells(config):
        shape_of(job_config(config, cell, {"steps": 1}).model, 70).mixer()
    text = path.read_text(encoding="utf-8")
    assert f"attnlab compare --config {path.stem}" in text
    assert "# Expected:" in text and "# Cost:" in text


def test_at_least_eight_kinds_of_attention_are_compared() -> None:
    assert len(variants(load(LanguageComparison, FOLDER / "compare-shakespeare.yaml", {}))) >= 8


@pytest.mark.slow
def test_a_short_comparison_on_real_text_beats_the_letters_alone(tmp_path: Path) -> None:
    text = Path(os.environ.get("ATTNLAB_DATA", "")) / "shakespeare" / "input.txt"
    if "ATTNLAB_DATA" not in os.environ or not text.exists():
        pytest.skip("shakespeare/input.txt: no such file in the folder named by ATTNLAB_DATA")
    flags = {
        ("data", "corpus"): str(text),
        ("compare", "attention"): "vanilla,naive-mask",
        ("compare", "seeds"): "1",
        ("budget", "steps"): "60",
        ("machine", "threads"): "1",
        ("measures", "prefix_blocks"): "2",
    }
    config = load(LanguageComparison, FOLDER / "compare-shakespeare.yaml", flags)
    vanilla, naive = gather(run_comparison(config, tmp_path / "c"), config).rows
    letters = 3.31  # nats per character when only their frequencies are known
    assert vanilla.mean("dev_loss").mean < letters - 0.5
    assert abs(gap(vanilla).mean) < 1e-4 and naive.objection is not None and vanilla.objection is None
