"""Optimizers by name: the right ones, on the right parameters; Muon agrees with torch's own."""

import pytest
import torch
from torch import nn

from attnlab.config import OptimizerSection
from attnlab.config.sections import OPTIMIZERS
from attnlab.training.muon import Muon, orthogonalised
from attnlab.training.optimizers import MAKERS, make_optimizer, parameter_groups


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(10, 8)
        self.inner = nn.Linear(8, 16)
        self.norm = nn.LayerNorm(16)
        self.head = nn.Linear(16, 10)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.inner(self.embedding(tokens))))


def names(group: dict[str, object]) -> set[str]:
    return {name for name, _ in group["params"]}  # type: ignore[attr-defined]


def test_only_matrices_that_transform_decay() -> None:
    decayed, plain = parameter_groups(Model(), OptimizerSection(weight_decay=0.3))
    assert names(decayed) == {"inner.weight", "head.weight"} and decayed["weight_decay"] == 0.3
    assert plain["weight_decay"] == 0.0
    assert names(plain) == {"embedding.weight", "inner.bias", "norm.weight", "norm.bias", "head.bias"}


def test_muon_takes_inner_matrices_only_and_frozen_parameters_belong_to_nobody() -> None:
    model = Model()
    model.norm.weight.requires_grad_(False)
    matrices, decayed, plain = parameter_groups(model, OptimizerSection(name="muon"))
    assert names(matrices) == {"inner.weight"} and matrices["lr"] == 0.02
    assert names(decayed) == {"head.weight"}
    assert "norm.weight" not in names(plain)


def test_every_name_has_a_maker() -> None:
    assert set(OPTIMIZERS) == set(MAKERS)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_learns(name: str) -> None:
    torch.manual_seed(0)
    model, tokens = Model(), torch.arange(10)
    lr = {"sgd": 0.1, "asgd": 0.1, "adadelta": 10.0, "rmsprop": 1e-3}.get(name, 1e-2)
    optimizer = make_optimizer(model, OptimizerSection(name=name, lr=lr, weight_decay=0.0))
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(tokens), tokens)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]


def test_orthogonalised_matrices_have_singular_values_near_one() -> None:
    values = torch.linalg.svdvals(orthogonalised(torch.randn(3, 12, 40, generator=torch.manual_seed(1))))
    assert values.min() > 0.5 and values.max() < 1.3


def test_muon_equals_torchs_own_when_that_computes_in_fp32(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch's Muon iterates in bf16; with that cast taken out, both must make the same steps."""
    monkeypatch.setattr(torch.Tensor, "bfloat16", lambda self: self.clone())
    torch.manual_seed(0)
    start = [torch.randn(6, 4), torch.randn(4, 6), torch.randn(4, 6)]
    ours = [nn.Parameter(matrix.clone()) for matrix in start]
    theirs = [nn.Parameter(matrix.clone()) for matrix in start]
    settings = {"lr": 0.05, "weight_decay": 0.1}
    one = Muon([{"params": ours, "muon": True, **settings}], momentum=0.95)
    two = torch.optim.Muon(theirs, momentum=0.95, **settings)  # type: ignore[arg-type]
    for step in range(4):
        for parameters, optimizer in ((ours, one), (theirs, two)):
            for n, parameter in enumerate(parameters):
                generator = torch.Generator().manual_seed(10 * step + n)
                parameter.grad = torch.randn(parameter.shape, generator=generator)
            optimizer.step()
    for a, b in zip(ours, theirs, strict=True):
        assert torch.allclose(a, b, atol=1e-6)


def test_muons_other_half_is_adamw() -> None:
    torch.manual_seed(0)
    one, two = nn.Linear(4, 4), nn.Linear(4, 4)
    two.load_state_dict(one.state_dict())
    settings = {"lr": 0.01, "betas": (0.9, 0.95), "weight_decay": 0.1}
    ours = Muon([{"params": list(one.parameters())}], **settings)  # type: ignore[arg-type]
    theirs = torch.optim.AdamW(two.parameters(), **settings)  # type: ignore[arg-type]
    x = torch.randn(3, 4)
    for _ in range(3):
        for model, optimizer in ((one, ours), (two, theirs)):
            optimizer.zero_grad()
            model(x).square().sum().backward()
            optimizer.step()
    assert torch.equal(one.weight, two.weight)


def test_lower_layers_learn_at_a_lower_rate() -> None:
    model = nn.Module()
    model.embeddings = nn.Embedding(5, 4)
    model.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
    model.head = nn.Linear(4, 2)
    optimizer = make_optimizer(model, OptimizerSection(lr=1e-2, layer_decay=0.5))
    rates = {id(p): group["peak_lr"] for group in optimizer.param_groups for p in group["params"]}
    expected = {model.embeddings: 1 / 16, **dict(zip(model.layers, (1 / 8, 1 / 4, 1 / 2), strict=True)), model.head: 1}
    for module, share in expected.items():
        assert {rates[id(p)] for p in module.parameters()} == {1e-2 * share}
    plain = make_optimizer(model, OptimizerSection(lr=1e-2))
    assert {group["peak_lr"] for group in plain.param_groups} == {1e-2}
