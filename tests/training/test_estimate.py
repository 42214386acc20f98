"""What a dry run says a run will need, beside what is known about it."""

import pytest
import torch

from attnlab.data.batching import Batches, BatchPlan
from attnlab.data.sequences import CorpusExamples, NextTokenExamples
from attnlab.data.tokenizers.vocabulary import Vocabulary
from attnlab.models.gpt import GPT, preset
from attnlab.training import estimate as timing
from attnlab.training.estimate import estimate, measure_peak
from attnlab.training.objectives import NextToken


def setting() -> tuple[GPT, Batches]:
    vocabulary = Vocabulary.build(["a quick brown fox"], "characters")
    documents = [vocabulary.encode("a quick brown fox") for _ in range(20)]
    examples = NextTokenExamples([CorpusExamples(documents, vocabulary, 32, ["causal"], seed=0)], vocabulary.pad)
    model = GPT(preset("vanilla", len(vocabulary), layers=2, heads=2, width=32, context=32, dropout=0.0))
    return model, Batches(examples, BatchPlan(examples.lengths, size=4))


def test_memory_is_known_to_the_byte() -> None:
    with measure_peak("cpu") as peak:
        kept = torch.ones(1000, dtype=torch.float32)
        gone = torch.ones(2500, dtype=torch.float64)
        del gone
        more = kept * 2
    assert more.sum() == 2000
    assert 24_000 <= peak.bytes <= 25_000


def test_memory_holds_at_least_weights_gradients_and_optimizer_and_time_grows_with_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, batches = setting()
    measured = timing._timed
    monkeypatch.setattr(timing, "_timed", lambda *arguments: 0.5 if measured(*arguments) > 0 else 0.0)
    before = torch.get_rng_state()
    few, many = (estimate(model, NextToken(), batches, steps, "cpu") for steps in (10, 10_000))
    weights = 4 * model.parameter_count()
    assert few.bytes >= 4 * weights  # weights, gradients, two moments
    assert few.seconds == 5.0 and many.seconds == 5000.0
    assert torch.equal(before, torch.get_rng_state()) and all(p.grad is None for p in model.parameters())
