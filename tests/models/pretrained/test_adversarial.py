"""Texts moved to where they are hardest: how far, whereto, and that what is learned is the mean of both losses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attnlab.base.errors import UserError
from attnlab.config.classify import TuningSection
from attnlab.data.batching import Batch
from attnlab.jobs.classify.built import word_vectors
from attnlab.models.pretrained.load import load_classifier
from attnlab.models.pretrained.tuning import tune
from attnlab.runs import read_record
from attnlab.training.adversarial import Adversarial
from attnlab.training.objectives import Classification

Make = Callable[..., Path]
METHODS = ("full", "prompt", "prefix", "lora", "bitfit")


class Bag(nn.Module):
    """The mean of a text's word vectors, two classes: small enough to do by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.out = nn.Embedding(9, 4), nn.Linear(4, 2)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        return self.out(self.mean(self.words(input_ids), attention_mask))

    @staticmethod
    def mean(vectors: Tensor, mask: Tensor) -> Tensor:
        return (vectors * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)


def two_texts() -> Batch:
    ids, mask = torch.tensor([[1, 2, 3, 4], [5, 6, 0, 0]]), torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
    return Batch({"input_ids": ids, "attention_mask": mask, "labels": torch.tensor([0, 1])}, (0, 1), 6, 8)


def test_loss_and_gradient_are_those_by_hand() -> None:
    torch.manual_seed(0)
    model, batch = Bag(), two_texts()
    ids, mask, labels = (batch.inputs[name] for name in ("input_ids", "attention_mask", "labels"))
    Adversarial(Classification(), model.words, 0.3)(model, batch).backward()
    found = {name: weight.grad.clone() for name, weight in model.named_parameters()}  # type: ignore[union-attr]
    model.zero_grad()
    logits = model(ids, mask)
    moves = []
    for n in range(2):  # dL/dx = W^T (p - y) / (words of the text), the same for each word
        slope = model.out.weight.T @ (logits[n].softmax(-1) - F.one_hot(labels[n], 2))
        words = int(mask[n].sum())
        length = model.words(ids[n, :words]).norm()
        move = torch.zeros(4, 4)
        move[:words] = 0.3 * length * slope / (slope.norm() * words**0.5)
        moves.append(move.detach())
    moved = model.out(model.mean(model.words(ids) + torch.stack(moves), mask))
    ((F.cross_entropy(logits, labels) + F.cross_entropy(moved, labels)) / 2).backward()
    for name, weight in model.named_parameters():
        assert weight.grad is not None and torch.allclose(found[name], weight.grad, atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_what_is_moved_is_harder_and_the_model_is_as_it_was(tiny_model: Make, method: str) -> None:
    torch.manual_seed(0)
    loaded = load_classifier(str(tiny_model("bert")), ("no", "yes"), "mean")
    tune(loaded.model, method, length=4, rank=2)
    model, batch = loaded.model.eval(), two_texts()
    words = word_vectors(model, TuningSection(method=method))
    with torch.no_grad():
        before = model(**{name: each for name, each in batch.inputs.items() if name != "labels"})
    plain = Classification()(model, batch).item()
    for size in (1e-3, 0.05):  # the mean of both: above the loss of the text as it is
        loss = Adversarial(Classification(), words, size)(model, batch)
        assert loss.item() > plain
    loss.backward()
    learning = [weight for weight in model.parameters() if weight.requires_grad]
    assert any(weight.grad is not None and float(weight.grad.norm()) > 0 for weight in learning)
    with torch.no_grad():
        after = model(**{name: each for name, each in batch.inputs.items() if name != "labels"})
    assert torch.equal(before, after)


def test_a_text_without_slope_is_left_where_it_is() -> None:
    objective = Adversarial(Classification(), nn.Embedding(2, 4), 0.1)
    assert not objective.move(torch.ones(1, 3, 4), torch.zeros(1, 3, 4), None).any()


def test_a_run_uses_it_and_unsupported_runs_refuse(
    fit: Callable[..., Path], tiny_model: Make, reviews: Path, tmp_path: Path
) -> None:
    def run(name: str, **tuning: Any) -> Path:
        return fit(tmp_path / name, tiny_model("bert"), reviews, tuning=tuning, model={"pooling": "mean"})

    plain, moved = (read_record(run(str(size), adversarial=size)) for size in (0.0, 0.2))
    assert plain["results"]["dev_loss"] != moved["results"]["dev_loss"]
    with pytest.raises(UserError, match="use another --tune"):
        run("head", method="head", adversarial=0.1)
    with pytest.raises(UserError, match="use --head linear"):
        fit(tmp_path / "t5", tiny_model("t5"), reviews, tuning={"adversarial": 0.1}, model={"head": "words"})
