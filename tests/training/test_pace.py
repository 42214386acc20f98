"""How fast a model trains is measured on a copy: the model, and what is random, stay as they were."""

from __future__ import annotations

import torch

from attnlab.config import check
from attnlab.config.language import LanguageConfig
from attnlab.data.batching import Batches, BatchPlan
from attnlab.data.text.stream import Blocks
from attnlab.models.gpt import GPT, preset
from attnlab.training.estimate import TIMED, measure_speed
from attnlab.training.objectives import NextToken


def test_measuring_changes_nothing_and_counts_tokens() -> None:
    config = check(LanguageConfig, {"machine": {"device": "cpu", "precision": "fp32", "threads": 1}})
    model = GPT(preset("vanilla", 11, layers=1, heads=2, width=8, context=8))
    blocks = Blocks.cut(torch.randint(0, 11, (161,)), 8)
    before, state = [p.clone() for p in model.parameters()], torch.get_rng_state()
    speed = measure_speed(model, NextToken(), Batches(blocks, BatchPlan(blocks.lengths, size=4)), config)
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    assert torch.equal(torch.get_rng_state(), state)
    assert speed.tokens == [4 * 8] * TIMED and speed.seconds_per_step > 0
    assert speed.tokens_per_second > 0
