"""One pass and prefix by prefix: the same loss for a causal model, another for one that sees the future."""

from __future__ import annotations

import pytest
import torch

from attnlab.data.batching import Batch
from attnlab.models.gpt import GPT, preset
from attnlab.models.losses import prefix_losses, token_losses
from attnlab.training.objectives import NextToken

CAUSAL = ("vanilla", "cosine", "shared-qkv", "synthesizer", "aft-simple", "fastformer", "performer", "linear")


def losses(attention: str) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    shape = preset("vanilla", 11, layers=2, heads=2, width=16, context=12, attention=attention, dropout=0.0)
    model = GPT(shape).double().eval()
    for parameter in model.parameters():  # far from the start, where all attention is uniform
        torch.nn.init.normal_(parameter, std=0.5)
    tokens, targets = torch.randint(0, 11, (2, 3, 12))
    with torch.no_grad():
        return token_losses(model, tokens, targets), prefix_losses(model, tokens, targets)


@pytest.mark.parametrize("attention", CAUSAL)
def test_they_agree_when_the_future_is_not_seen(attention: str) -> None:
    usual, honest = losses(attention)
    torch.testing.assert_close(usual, honest, rtol=1e-8, atol=1e-8)


def test_a_mask_after_the_softmax_is_detected() -> None:
    usual, honest = losses("naive-mask")
    assert (usual[:, :-1] - honest[:, :-1]).abs().max() > 1e-2
    torch.testing.assert_close(usual[:, -1], honest[:, -1])  # at the last position there is no future to see


def test_the_mean_is_what_training_minimises() -> None:
    torch.manual_seed(0)
    model = GPT(preset("vanilla", 11, layers=1, heads=2, width=8, context=6, dropout=0.0)).eval()
    tokens, targets = torch.randint(0, 11, (2, 3, 6))
    batch = Batch({"tokens": tokens, "targets": targets}, (0, 1, 2), 18, 18)
    torch.testing.assert_close(token_losses(model, tokens, targets).mean(), NextToken()(model, batch))
