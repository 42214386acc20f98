import math

import pytest
import torch

from attnlab.attention import VARIANTS
from attnlab.base.errors import UserError
from attnlab.models.generate import generate
from attnlab.models.gpt import GPT, preset

PROMPTS = [[1, 2, 3], [4], [5, 6, 7, 8, 1, 2], [2, 2]]


def tiny(name="vanilla", **changes):
    torch.manual_seed(3)
    shape = {"layers": 2, "heads": 2, "width": 16, "context": 12, "dropout": 0.0, "zero_init": False}
    model = GPT(preset(name, 9, **shape | changes)).eval()
    for parameter in model.parameters():  # far from uniform answers
        torch.nn.init.normal_(parameter, std=0.5)
    return model


@torch.no_grad()
def one_by_one(model, prompt, steps, stop, limit):
    """Greedy decoding without a cache: one full pass per token."""
    tokens, gains = list(prompt), []
    for _ in range(steps):
        if limit is not None and len(tokens) > limit:
            break
        scores = model(torch.tensor([tokens]))[0, -1].log_softmax(-1)
        tokens.append(int(scores.argmax()))
        gains.append(float(scores.max()))
        if tokens[-1] == stop:
            break
    made = tokens[len(prompt) :]
    return (made[:-1] if made and made[-1] == stop else made), sum(gains) / len(gains)


@pytest.mark.parametrize("name", ["vanilla", "modern"])
@pytest.mark.parametrize("positions", ["learned", "rotary", "alibi", "none", "sinusoidal"])
@pytest.mark.parametrize("steps", [4, 20])
def test_batched_decoding_equals_one_by_one(name, positions, steps):
    model = tiny(name, positions=positions)
    stop = 0
    answers = generate(model, PROMPTS, steps, stop=stop)
    for prompt, answer in zip(PROMPTS, answers, strict=True):
        tokens, mean = one_by_one(model, prompt, steps, stop, model.longest)
        assert answer.tokens == tokens
        assert answer.log_probability == pytest.approx(mean, abs=1e-4)


ALIKE = [[3, 4, 5, *rest] for rest in ([1, 2], [6], [7, 8, 1, 2], [6, 6], [2])]  # "Where was " and a name
CASES = [
    (name, positions)
    for name in sorted(set(VARIANTS) - {"naive-mask"})
    for positions in ("learned", "rotary", "alibi")
    if positions == "learned" or positions in VARIANTS[name].positions
]


@pytest.mark.parametrize(("attention", "positions"), CASES)
def test_prompts_with_a_common_start_are_answered_as_if_alone(attention, positions):
    model = tiny(attention=attention, positions=positions)
    for prompt, answer in zip(ALIKE, generate(model, ALIKE, 20, stop=0), strict=True):
        tokens, mean = one_by_one(model, prompt, 20, 0, model.longest)
        assert answer.tokens == tokens
        assert answer.log_probability == pytest.approx(mean, abs=1e-3)
        assert answer.probability == pytest.approx(math.exp(mean * len(answer.log_probabilities)), rel=1e-2)


def test_stop_token_ends_an_answer_and_is_not_part_of_it():
    model = tiny()
    free = generate(model, PROMPTS, 8)
    stop = free[0].tokens[2]
    stopped = generate(model, PROMPTS, 8, stop=stop)
    for before, after in zip(free, stopped, strict=True):
        end = before.tokens.index(stop) if stop in before.tokens else None
        assert after.tokens == before.tokens[:end]


def test_sampling_follows_the_generator_and_top_k():
    model = tiny()
    draw = [generate(model, PROMPTS, 5, temperature=1.5, generator=torch.Generator().manual_seed(s)) for s in (0, 0, 1)]
    assert draw[0] == draw[1] != draw[2]
    greedy = generate(model, PROMPTS, 5)
    assert generate(model, PROMPTS, 5, temperature=1.5, top_k=1) == greedy


def test_sampled_tokens_have_the_models_probabilities():
    model = tiny()
    many = generate(model, [[1, 2]] * 4000, 1, temperature=1.0, generator=torch.Generator().manual_seed(0))
    counts = torch.bincount(torch.tensor([answer.tokens[0] for answer in many]), minlength=9) / 4000
    expected = model(torch.tensor([[1, 2]]))[0, -1].softmax(-1)
    assert (counts - expected).abs().max() < 0.04


def test_mistakes_are_one_sentence():
    model = tiny()
    with pytest.raises(UserError, match="prompt 2 is empty"):
        generate(model, [[1], []], 2)
    with pytest.raises(UserError, match="prompt 1 has 13 tokens"):
        generate(model, [[1] * 13], 2)
    with pytest.raises(UserError, match="top_k is 0"):
        generate(model, [[1]], 2, temperature=1.0, top_k=0)


def test_training_mode_is_left_as_it_was():
    model = tiny().train()
    generate(model, [[1]], 2)
    assert model.training
    assert generate(model, [], 2) == []
