"""Sampling, evaluation and the inside of a model from Python: the same numbers as by command, shown in a notebook."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.api.conftest import FAST, SHAPE

import attnlab as lab


@pytest.fixture
def run(folder: Path) -> lab.Run:
    return lab.train(lab.GPT(**(SHAPE | {"layers": 2})), "text.txt", steps=4, **FAST)


def test_samples(run: lab.Run) -> None:
    text = run.sample("the ", length=30, seed=3)
    assert text.startswith("the ") and len(text) == 34  # past the context of 16
    assert text == run.sample("the ", length=30, seed=3) != run.sample("the ", length=30, seed=4)
    best = run.samples("the ", 2, 10, temperature=0.0)
    assert len(best) == 2 and best[0].text == best[1].text and len(best[0].log_probabilities) == 10
    assert len(run.sample(length=5)) >= 5
    with pytest.raises(lab.UserError, match="top_k"):
        run.sample("the ", top_k=0)


def test_evaluation_of_a_text(run: lab.Run, folder: Path) -> None:
    results = run.evaluate("text.txt")
    assert results["loss"] > 0 and Path(results["folder"]).is_dir()
    with pytest.raises(lab.UserError, match="give a text"):
        run.evaluate()


def test_inspection(run: lab.Run) -> None:
    maps = run.inspect("the cat sat")
    assert maps.weights(1, 0).shape == (11, 11)
    torch.testing.assert_close(maps.weights(1, 0).sum(-1), torch.ones(11))
    page = maps._repr_html_()
    assert page.count("<iframe") == 1 and 'sandbox="allow-scripts"' in page
    assert "<script" not in page.replace("&lt;script", "")  # the page is inside the frame, escaped
    assert lab.inspect(run.path, "the cat sat").weights(1, 0).equal(maps.weights(1, 0))


def test_heads_ablation_and_lens(run: lab.Run) -> None:
    report = run.heads(draws=4)
    assert {row["kind"] for row in report.rows()} >= {"previous", "induction"}
    ablation = run.ablate("text.txt", most=20)
    assert len(ablation.effects) == 4
    lens = run.lens("the cat sat")
    for result in (report, ablation, lens):
        shown = result._repr_html_()
        assert "data:image/png;base64," in shown and "<script" not in shown
    with pytest.raises(lab.UserError):
        run.trace()
    with pytest.raises(lab.UserError, match="empty"):
        run.inspect(" ")


def test_tracing_of_questions(folder: Path) -> None:
    asked = lab.knowledge(
        lab.GPT(**(SHAPE | {"context": 64})),
        run="asked",
        people=20,
        places=4,
        **{"pretrain.training.steps": 4, "finetune.training.steps": 4, "threads": 1},
    )
    trace = asked.trace(draws=1, sites=("stream",))
    assert trace.people > 0 and "data:image/png" in trace._repr_html_()
    assert "data:image/png" in asked.lens()._repr_html_()
