"""Influence is the size of the blocks of the Jacobian."""

from __future__ import annotations

import pytest
import torch
from torch.autograd.functional import jacobian

from attnlab.interpret.influence import influence, influences
from attnlab.interpret.recorder import record
from attnlab.models.gpt import GPT, GPTShape

TOKENS = torch.randint(0, 50, (1, 9), generator=torch.Generator().manual_seed(1))


def gpt(attention: str, width: int = 16) -> GPT:
    torch.manual_seed(0)
    model = GPT(GPTShape(50, layers=2, heads=2, width=width, context=12, attention=attention))
    for parameter in model.parameters():
        parameter.data.add_(torch.randn_like(parameter) * 0.1)
    return model.eval()


@pytest.mark.parametrize("attention", ["vanilla", "aft-full", "linear", "fastformer", "performer", "synthesizer"])
def test_it_equals_torchs_jacobian(attention: str) -> None:
    model = gpt(attention)
    computed = influences(model, {"tokens": TOKENS})
    for layer in range(2):
        with torch.no_grad():
            x = record(model, TOKENS)[f"blocks.{layer}.attention.input"]
        blocks = jacobian(model.blocks[layer].mixer, x)[0, :, :, 0]  # (T, C, S, C)
        expected = blocks.square().sum((1, 3)).sqrt()
        assert computed[layer].exact
        torch.testing.assert_close(computed[layer].matrix, expected, atol=1e-5, rtol=1e-4)


def test_random_probes_estimate_it() -> None:
    model = gpt("vanilla", width=64)
    exact = influence(model, {"tokens": TOKENS}, "blocks.0.attention", probes=64)
    estimated = influence(model, {"tokens": TOKENS}, "blocks.0.attention", probes=48)
    assert exact.exact and not estimated.exact
    seen = exact.matrix > 0
    assert torch.equal(seen, torch.ones(9, 9, dtype=torch.bool).tril())
    ratio = estimated.matrix[seen] / exact.matrix[seen]
    assert (ratio - 1).abs().max() < 0.35  # 48 probes: a deviation of some 10%
    assert (estimated.matrix[~seen] == 0).all()


def test_a_mask_after_the_softmax_shows_the_future() -> None:
    """The weights of the naive mask are zero above the diagonal, its influence is not."""
    (first, _) = influences(gpt("naive-mask"), {"tokens": TOKENS})
    assert first.matrix.triu(1).sum() > 0.01
