"""Sampling, evaluation and the inside of a model from Python: the same numbers as by command, shown in a notebook."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

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


def test_evaluation_of_a_text(run: lab.Run, folder: Path, attnlab: Callable[..., Any]) -> None:
    results = run.evaluate("text.txt", stride=4, per_token=True)
    assert results["loss"] > 0 and results.folder is not None and results.predictions is not None
    assert len(results.predictions.read_text().splitlines()) == results.count == results["tokens"]
    written = json.loads((results.folder / "results.json").read_text())
    assert written["command"] == f"lab.evaluate('{run.path}', 'text.txt', stride=4, per_token=True)"
    assert f"<td>{results['perplexity']:.4g}</td>" in results._repr_html_()
    typed = attnlab("evaluate", run.path, "text.txt", "--stride", 4, "--json", cwd=folder)
    typed_results = json.loads(typed.stdout)
    assert typed_results["loss"] == results["loss"]
    assert typed_results["command"] == f"attnlab evaluate {run.path} text.txt --stride 4 --json"
    with pytest.raises(lab.UserError, match="give a text"):
        run.evaluate()
    with pytest.raises(lab.UserError, match="abstain is for questions"):
        run.evaluate("text.txt", abstain=True)


def test_a_sample_is_written_piece_by_piece(run: lab.Run, attnlab: Callable[..., Any], folder: Path) -> None:
    pieces = list(run.stream("the ", 30, seed=3))
    assert pieces[0] == "the " and len(pieces) == 31
    assert "".join(pieces) == run.sample("the ", 30, seed=3)
    typed = attnlab("sample", run.path, "--prompt", "the ", "--length", 30, "--seed", 3, cwd=folder)
    assert typed.stdout == "".join(pieces) + "\n"


def test_a_run_is_taken_where_its_folder_is(run: lab.Run) -> None:
    assert lab.evaluate(run, "text.txt")["loss"] == run.evaluate("text.txt")["loss"]
    assert lab.lens(run, "the cat").tokens == lab.lens(run.path, "the cat").tokens
    assert lab.inspect(run, "the cat").model == str(run.path)


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
