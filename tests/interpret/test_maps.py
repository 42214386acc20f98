"""Maps of a text are what the model computed; influence stands beside weights, and disagreements are said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from scipy.stats import spearmanr
from tests.interpret.subjects import TEXT, subject
from tests.tiny_models import tiny_model

from attnlab.attention import VARIANTS
from attnlab.base.errors import UserError
from attnlab.interpret import maps as maps_module
from attnlab.interpret.agreement import compare, spearman
from attnlab.interpret.influence import influences
from attnlab.interpret.maps import attention_maps, weight_maps
from attnlab.interpret.recorder import record
from attnlab.interpret.steps import steps_of
from attnlab.interpret.subject import open_subject


@torch.no_grad()
def test_weights_are_those_of_the_recorder() -> None:
    looked_at = subject()
    maps = weight_maps(looked_at, TEXT)
    recording = record(looked_at.model, **maps.reading.inputs)
    assert [each.name for each in maps.attentions] == ["blocks.0.attention", "blocks.1.attention"]
    for layer, each in enumerate(maps.attentions):
        assert each.weights is not None and each.queries is each.keys
        assert torch.equal(each.weights, recording[f"{each.name}.weights"][0])
        torch.testing.assert_close(each.weights.sum(-1), torch.ones(4, len(TEXT)))
        assert torch.equal(maps.weights(layer, 2), each.weights[2])
    assert maps.attentions[0].queries.tokens == list(TEXT)
    (only,) = weight_maps(looked_at, TEXT, layer=1).attentions
    assert (only.name, only.layer) == ("blocks.1.attention", 1)
    assert torch.equal(weight_maps(looked_at, TEXT, layer="blocks.1").weights(1, 3), maps.weights(1, 3))


def test_as_json_the_numbers_are_exact() -> None:
    maps = attention_maps(subject("naive-mask"), TEXT)
    read = json.loads(json.dumps(maps.as_dict(), allow_nan=False))
    for plain, each in zip(read["attentions"], maps.attentions, strict=True):
        assert each.weights is not None and each.influence is not None
        assert torch.equal(torch.tensor(plain["weights"]), each.weights)
        assert torch.equal(torch.tensor(plain["influence"]), each.influence.matrix)
    assert read["remarks"] == maps.remarks and read["text"] == TEXT


def test_t5_has_two_texts_and_cross_attention_between_them(tmp_path: Path) -> None:
    looked_at = open_subject(tiny_model(tmp_path, "t5", masked=True))
    maps = attention_maps(looked_at, "the film was good", "yes it was", influence=True)
    model = looked_at.model
    model.set_attn_implementation("eager")  # type: ignore[operator]
    with torch.no_grad():
        expected = model(**maps.reading.inputs, output_attentions=True)
    known = {
        "encoder.blocks.1.attention": expected.encoder_attentions[1],
        "decoder.blocks.0.attention": expected.decoder_attentions[0],
        "decoder.blocks.1.cross": expected.cross_attentions[1],
    }
    by_name = {each.name: each for each in maps.attentions}
    for name, weights in known.items():
        torch.testing.assert_close(by_name[name].weights, weights[0], atol=1e-6, rtol=0)
    cross = by_name["decoder.blocks.1.cross"]
    assert cross.keys.tokens == maps.reading.tokens and cross.queries.tokens == maps.reading.target
    assert cross.queries.special[0] and cross.queries.tokens[2] == "yes" and not cross.queries.special[2]
    assert cross.influence is None and by_name["decoder.blocks.1.attention"].influence is not None
    assert torch.equal(maps.weights("decoder.blocks.1.cross", 1), cross.head(1))


@pytest.mark.parametrize("asked", [None, True])
def test_mixers_without_weights_have_influence(asked: bool | None) -> None:
    looked_at = subject("aft-full")
    maps = attention_maps(looked_at, TEXT, influence=asked)
    for each, expected in zip(maps.attentions, influences(looked_at.model, maps.reading.inputs), strict=True):
        assert each.weights is None and each.agreement is None and each.influence is not None
        assert torch.equal(each.influence.matrix, expected.matrix)
    with pytest.raises(UserError, match=r"blocks\.0\.attention computes no weights.*look at its influence"):
        maps.weights(0, 0)
    with pytest.raises(UserError, match="influence is all there is to see"):
        attention_maps(looked_at, TEXT, influence=False)


def test_influence_beside_weights_only_if_cheap_or_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(each.influence is not None for each in attention_maps(subject(), TEXT).attentions)
    monkeypatch.setattr(maps_module, "CHEAP", 1.0)
    assert all(each.influence is None for each in attention_maps(subject(), TEXT).attentions)
    assert all(each.influence is not None for each in attention_maps(subject(), TEXT, influence=True).attentions)


def test_a_mask_after_the_softmax_is_reported_and_a_right_one_is_not() -> None:
    wrong, right = attention_maps(subject("naive-mask"), TEXT), attention_maps(subject("pieces"), TEXT)
    assert wrong.remarks[0].startswith("2 of 2 attentions have influence from later tokens although the weights are 0")
    for each in wrong.attentions:
        assert each.agreement is not None and each.agreement.later > 0.01
        assert each.agreement.sentence.startswith("influence from later tokens although the weights are 0: ")
    for each in right.attentions:
        assert each.agreement is not None and each.agreement.outside == 0
    assert len(right.remarks) == 1 and "order the tokens" in right.remarks[0]


def test_rank_correlation_is_that_of_scipy() -> None:
    torch.manual_seed(0)
    a, b = torch.randn(30), torch.randint(0, 5, (30,)).float()  # b has ties
    assert float(spearman(a, b)) == pytest.approx(spearmanr(a, b).statistic)
    weights = torch.rand(3, 6, 6).softmax(-1)
    rows = [spearmanr(x, y).statistic for x, y in zip(weights.mean(0), weights[0], strict=True)]
    assert compare(weights, weights[0]).correlation == pytest.approx(sum(rows) / 6)
    assert compare(weights, weights.mean(0)).correlation == pytest.approx(1.0)


@pytest.mark.parametrize("variant", sorted(VARIANTS))
def test_steps_lead_to_the_weights_of_every_variant(variant: str) -> None:
    for each in weight_maps(subject(variant), TEXT).attentions:
        if each.attended is None or each.weights is None:
            continue
        steps = steps_of(each.attended)
        torch.testing.assert_close(each.weights @ steps.values, each.attended.heads[0], atol=1e-5, rtol=0)
        if variant == "argmax":
            assert steps.queries is None and steps.scores is None  # no softmax: there is no rule to show
            continue
        scores = steps.scores
        if steps.queries is not None and steps.keys is not None and steps.scale is not None:
            scores = steps.queries @ steps.keys.transpose(-1, -2) * steps.scale
            scores = scores if steps.bias is None else scores + steps.bias
        assert scores is not None
        shares = scores.softmax(-1)
        if variant == "naive-mask":
            shares = shares.tril()
        torch.testing.assert_close(shares, each.weights, atol=1e-5, rtol=0)


@pytest.mark.parametrize("positions", ["rotary", "alibi"])
def test_steps_with_relative_positions(positions: str) -> None:
    for each in weight_maps(subject(positions=positions), TEXT).attentions:
        assert each.attended is not None
        steps = steps_of(each.attended)
        assert steps.queries is not None and steps.bias is not None
        assert len(steps.bias) == (4 if positions == "alibi" else 1)


def test_what_is_not_there_is_one_sentence() -> None:
    looked_at = subject()
    for text, layer, said in (
        (" ", None, "the text is empty"),
        ("the " * 20, None, "more than the model's context of 32: shorten it"),
        (TEXT, 2, "layer 2 is not there: the model has layers 0 to 1"),
        (TEXT, "blocks.7", "no attention 'blocks.7': it has blocks.0.attention"),
    ):
        with pytest.raises(UserError, match=said):
            weight_maps(looked_at, text, layer=layer)
    maps = weight_maps(looked_at, TEXT)
    with pytest.raises(UserError, match=r"head 1\.4 is not there: layer 1 has heads 0 to 3"):
        maps.weights(1, 4)
    with pytest.raises(UserError, match=r"layer 5 is not there: expected one of 0 \(blocks\.0\.attention\)"):
        maps.weights(5, 0)
