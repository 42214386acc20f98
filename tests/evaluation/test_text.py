"""The loss of a text: what cross_entropy of torch gives over one pass, and prefix by prefix at stride 1."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from attnlab.base.errors import UserError
from attnlab.data.tokenizers.vocabulary import Vocabulary
from attnlab.evaluation import text as evaluation
from attnlab.evaluation.text import evaluate_text
from attnlab.models.gpt import GPT, preset

VOCABULARY = Vocabulary.build(["abcdefg é"])
TEXT = "".join(
    VOCABULARY.tokens[3 + int(n)] for n in torch.randint(0, 9, (65,), generator=torch.Generator().manual_seed(0))
)


def tiny(attention: str = "vanilla", vocabulary: Vocabulary = VOCABULARY) -> GPT:
    torch.manual_seed(4)
    model = GPT(preset("vanilla", len(vocabulary), layers=2, heads=2, width=16, context=16, attention=attention))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return model.eval()


@torch.no_grad()
def test_disjoint_blocks_are_one_pass_of_cross_entropy() -> None:
    model, ids = tiny(), torch.tensor(VOCABULARY.encode(TEXT))
    expected = F.cross_entropy(model(ids[:64].view(4, 16)).flatten(0, 1), ids[1:])
    found = evaluate_text(model, VOCABULARY, [TEXT], stride=16)
    assert found.loss == pytest.approx(float(expected), abs=1e-6)
    assert found.summary()["perplexity"] == pytest.approx(math.exp(float(expected)), rel=1e-5)
    assert found.tokens == 64 and found.summary()["mean_context"] == 8.5 and found.summary()["units"] == 4


@torch.no_grad()
@pytest.mark.parametrize("attention", ["vanilla", "linear", "naive-mask"])
def test_stride_1_is_prefix_by_prefix_for_one_that_sees_the_future_too(attention: str) -> None:
    model, ids = tiny(attention), torch.tensor(VOCABULARY.encode(TEXT))
    expected = [
        float(F.cross_entropy(model(ids[None, max(0, t - 16) : t])[0, -1:], ids[t : t + 1])) for t in range(1, len(ids))
    ]
    found = evaluate_text(model, VOCABULARY, [TEXT], stride=1)
    assert found.losses[0] == pytest.approx(expected, abs=1e-4)
    assert [row["context"] for row in found.rows()] == [min(t, 16) for t in range(1, 65)]


@torch.no_grad()
@pytest.mark.parametrize(("context", "stride"), [(16, 8), (16, 5), (10, 3), (16, 16), (7, 7)])
def test_every_token_is_predicted_once_from_the_context_that_is_reported(context: int, stride: int) -> None:
    model, documents = tiny(), [TEXT, TEXT[:9], TEXT[7:30], TEXT[:2]]
    found = evaluate_text(model, VOCABULARY, documents, context, stride)
    rows = list(found.rows())
    assert [(row["document"], row["position"]) for row in rows] == [
        (number, position) for number, text in enumerate(documents, 1) for position in range(2, len(text) + 1)
    ]
    for row in rows:
        ids = torch.tensor(VOCABULARY.encode(documents[row["document"] - 1]))
        end = row["position"] - 1
        assert min(end, context - stride + 1) <= row["context"] <= context
        logits = model(ids[None, end - row["context"] : end])[0, -1:]
        assert row["loss"] == pytest.approx(float(F.cross_entropy(logits, ids[end : end + 1])), abs=1e-4)
        assert row["token"] == documents[row["document"] - 1][end]
    assert found.loss == pytest.approx(sum(row["loss"] for row in rows) / len(rows), abs=1e-5)


def test_more_context_is_the_default_than_in_disjoint_blocks() -> None:
    found = evaluate_text(tiny(), VOCABULARY, [TEXT])
    assert (found.context, found.stride) == (16, 8)
    assert all(row["context"] >= min(row["position"] - 1, 9) for row in found.rows())


def test_batches_do_not_change_the_losses(monkeypatch: pytest.MonkeyPatch) -> None:
    documents = [TEXT, TEXT[:9], TEXT[7:30]]
    whole = evaluate_text(tiny(), VOCABULARY, documents).losses
    monkeypatch.setattr(evaluation, "AT_ONCE", 20)
    for one, other in zip(whole, evaluate_text(tiny(), VOCABULARY, documents).losses, strict=True):
        assert one == pytest.approx(other, abs=1e-5)


def test_bits_count_the_characters_and_bytes_of_the_text() -> None:
    found = evaluate_text(tiny(), VOCABULARY, ["abé", "é a b"])
    summary, bits = found.summary(), found.loss * found.tokens / math.log(2)
    assert summary["bits_per_character"] == pytest.approx(bits / 6)  # without the first of each
    assert summary["bits_per_byte"] == pytest.approx(bits / 7)
    words = Vocabulary.build(["to be or not"], "words")
    found = evaluate_text(tiny(vocabulary=words), words, [" to be, or"])
    assert found.tokens == 3 and found.characters == len(" be, or")
    assert found.unknown_share == pytest.approx(1 / 3)  # the comma


def test_the_future_is_worth_nothing_to_a_causal_model() -> None:
    assert abs(evaluate_text(tiny(), VOCABULARY, [TEXT]).future) < 1e-5
    naive = evaluate_text(tiny("naive-mask"), VOCABULARY, [TEXT])
    usual, honest = (evaluate_text(tiny("naive-mask"), VOCABULARY, [TEXT[:17]], stride=n).loss for n in (16, 1))
    assert naive.future == pytest.approx(honest - usual, abs=1e-5) and abs(naive.future) > 1e-3


def test_mistakes_are_one_sentence() -> None:
    for arguments, sentence in (
        ((["a"],), "no token to predict"),
        (([TEXT], 17), "at most 16 tokens"),
        (([TEXT], 16, 17), "stride is 17: give a number from 1 to the context of 16"),
        (([TEXT], 16, 0), "stride is 0"),
    ):
        with pytest.raises(UserError, match=sentence):
            evaluate_text(tiny(), VOCABULARY, *arguments)


def test_the_model_is_left_as_it_was() -> None:
    model = tiny().train()
    evaluate_text(model, VOCABULARY, [TEXT])
    assert model.training
