"""Removing parts of a model: the same as by hand, the right examples are compared, and the curve is honest."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from attnlab.base.errors import UserError
from attnlab.data.tokenizers.vocabulary import Vocabulary
from attnlab.interpret.ablation import ablate, removal_curve
from attnlab.interpret.asked_people import AskedPerson
from attnlab.interpret.measured import Measured, measure_questions, measure_text, open_measured
from attnlab.interpret.recorder import record
from attnlab.interpret.removal import ModelPart, Remover, parts_of, read_part
from attnlab.models.asking import prompt_of
from attnlab.models.gpt import GPT, GPTShape

TEXT = "".join(chr(97 + (n * n + n // 7) % 23) for n in range(400))
VOCABULARY = Vocabulary.build([TEXT])


def gpt(seed: int = 0, **changes: object) -> GPT:
    torch.manual_seed(seed)
    model = GPT(GPTShape(len(VOCABULARY), layers=2, heads=4, width=32, context=24, **changes))  # type: ignore[arg-type]
    for parameter in model.parameters():
        parameter.data.add_(torch.randn_like(parameter) * 0.1)
    return model.eval()


def on_text(model: GPT) -> Measured:
    return measure_text(model, VOCABULARY, TEXT)


def by_hand(model: GPT, measured: Measured) -> Tensor:
    """The loss per block (N,), by torch alone."""
    ids = torch.tensor(VOCABULARY.encode(TEXT))
    count = (len(ids) - 1) // 24
    tokens, targets = ids[: count * 24].view(-1, 24), ids[1 : count * 24 + 1].view(-1, 24)
    with torch.no_grad():
        return F.cross_entropy(model(tokens).transpose(1, 2), targets, reduction="none").mean(1)


def test_zeroing_a_head_is_zeroing_its_columns() -> None:
    model = gpt()
    measured = on_text(model)
    torch.testing.assert_close(measured.scores()["loss"], by_hand(model, measured))
    for layer, head in ((0, 0), (1, 3)):
        removed = Remover(measured, "zero").scores([ModelPart(layer, "head", head)])["loss"]
        other = copy.deepcopy(model)
        other.blocks[layer].mixer.output.weight.data[:, head * 8 : head * 8 + 8] = 0
        torch.testing.assert_close(removed, by_hand(other, measured))
        assert (removed - measured.scores()["loss"]).abs().max() > 1e-3


def test_zeroing_everything_leaves_the_embeddings() -> None:
    model = gpt()
    measured = on_text(model)
    every = [*parts_of(model, "attention"), *parts_of(model, "mlp")]
    removed = Remover(measured, "zero").scores(every)["loss"]
    other = copy.deepcopy(model)
    other.blocks = torch.nn.ModuleList()
    torch.testing.assert_close(removed, by_hand(other, measured))


def test_all_heads_of_a_layer_are_its_mixer_without_the_bias_of_the_projection() -> None:
    model = gpt()
    for block in model.blocks:
        block.mixer.output.bias.data.zero_()
    measured = on_text(model)
    heads = Remover(measured, "zero").scores([ModelPart(1, "head", head) for head in range(4)])["loss"]
    mixer = Remover(measured, "zero").scores([ModelPart(1, "attention")])["loss"]
    torch.testing.assert_close(heads, mixer)


def test_the_mean_of_a_constant_head_changes_nothing() -> None:
    model = gpt()
    qkv = model.blocks[0].mixer.projections.qkv
    values = slice(64 + 8, 64 + 16)  # of head 1
    with torch.no_grad():  # its bias only: weights of sum 1 always give the same vector
        qkv.weight[values] = 0
        qkv.bias[values] = torch.randn(8)
    measured = on_text(model)
    before = measured.scores()["loss"]
    constant, other = ModelPart(0, "head", 1), ModelPart(0, "head", 2)
    for how in ("mean", "resample"):
        remover = Remover(measured, how)
        torch.testing.assert_close(remover.scores([constant])["loss"], before, atol=1e-5, rtol=0)
        assert (remover.scores([other])["loss"] - before).abs().max() > 1e-3
    assert (Remover(measured, "zero").scores([constant])["loss"] - before).abs().max() > 1e-3


@pytest.mark.parametrize("what", ["head", "mlp"])
def test_the_mean_is_over_all_texts_and_positions_without_padding(what: str) -> None:
    model = gpt()
    measured = _on_questions(model)
    remover = Remover(measured, "mean")
    part = ModelPart(1, what, 2 if what == "head" else None)
    remover.scores([part])
    (name, mean), *_ = remover._means.items()
    rows = []
    for batch in measured.batches:
        with torch.no_grad():
            flow = record(model, names=[name], **batch.inputs)[name]
        flow = flow.transpose(1, 2) if what == "head" else flow
        rows.append(flow[batch.real])
    torch.testing.assert_close(mean.squeeze(-2), torch.cat(rows).mean(0), atol=1e-6, rtol=1e-5)


def test_resampled_values_are_those_of_another_example() -> None:
    model = gpt()
    measured = on_text(model)
    remover = Remover(measured, "resample", seed=3)
    (donors,) = remover._donors
    assert (donors != torch.arange(len(donors))).all() and sorted(donors.tolist()) == list(range(len(donors)))
    removed = remover.scores([ModelPart(0, "attention"), ModelPart(0, "mlp")])["loss"]
    (batch,) = measured.batches
    with torch.no_grad():
        flow = record(model, **batch.inputs)
        x = flow["blocks.0.input"] + flow["blocks.0.attention.output"][donors] + flow["blocks.0.mlp.output"][donors]
        logits = model.head(model.norm(model.blocks[1](x, None, None)))
    expected = F.cross_entropy(logits.transpose(1, 2), batch.truth, reduction="none").mean(1)
    torch.testing.assert_close(removed[batch.rows], expected)


def _on_questions(model: GPT) -> Measured:
    people = []
    for n, length in enumerate((5, 9, 3, 7, 9)):
        question, place = TEXT[n * 11 : n * 11 + length], TEXT[n * 5 : n * 5 + 2 + n % 3]
        tokens = prompt_of(VOCABULARY, question)
        people.append(AskedPerson(question, "", place, tokens, 1, 2, VOCABULARY.encode(place)[0]))
    return measure_questions(model, VOCABULARY, people)


def test_effects_are_paired_ranked_and_have_intervals() -> None:
    model = gpt()
    measured = on_text(model)
    result = ablate(measured, how="zero")
    assert len(result.effects) == 8 and result.main == "loss"
    means = [effect.changes["loss"].mean for effect in result.effects]
    assert means == sorted(means, reverse=True)
    first = result.effects[0]
    by_part = Remover(measured, "zero").scores([first.part])["loss"] - measured.scores()["loss"]
    assert first.changes["loss"].mean == pytest.approx(float(by_part.mean()), abs=1e-6)
    assert first.changes["loss"].interval is not None


def test_the_curve_orders_on_one_half_and_measures_on_the_other() -> None:
    measured = on_text(gpt())
    ablation = ablate(measured, how="zero")
    curve = removal_curve(measured, ablation, orders=3, seed=2)
    assert curve.chosen_on + curve.measured_on == measured.count == 16
    assert [point.removed for point in curve.points] == list(range(9)) and len(set(curve.order)) == 8
    choosing = torch.randperm(16, generator=torch.Generator().manual_seed(2)).chunk(2)[0]
    effects = {effect.part: float(effect.by_example[choosing].mean()) for effect in ablation.effects}
    assert curve.order[0] == max(effects, key=effects.__getitem__)
    held_out = sorted(set(range(16)) - set(choosing.tolist()))
    first = Remover(measured, "zero", seed=2).scores(curve.order[:1])["loss"][held_out]
    assert curve.points[1].value == pytest.approx(float(first.mean()), abs=1e-6)
    assert curve.points[0].random.mean == pytest.approx(curve.points[0].value)  # nothing removed, all orders agree
    assert curve.points[8].random.mean == pytest.approx(curve.points[8].value)  # everything removed


def test_parts_are_read_as_they_are_written() -> None:
    for text in ("2.1", "0.attention", "11.mlp"):
        assert str(read_part(text)) == text
    for text in ("2", "2.head", "x.1", "2.1.3", "-1.0"):
        with pytest.raises(UserError, match="is not a part of a model"):
            read_part(text)


def test_what_is_not_there_is_refused_before_the_first_pass() -> None:
    measured = on_text(gpt())
    with pytest.raises(UserError, match=r"layer 5 is not there"):
        ablate(measured, [ModelPart(5, "mlp")])
    with pytest.raises(UserError, match=r"head 1\.9 is not there"):
        ablate(measured, [ModelPart(1, "head", 9)])
    with pytest.raises(UserError, match="unknown way of removing 'noise'"):
        ablate(measured, how="noise")
    with pytest.raises(UserError, match="at least 4, got 1"):
        short = measure_text(gpt(), VOCABULARY, TEXT[:20])
        removal_curve(short, ablate(short, how="zero"))
    with pytest.raises(UserError, match="at least two examples"):
        ablate(measure_text(gpt(), VOCABULARY, TEXT[:20]), how="resample")
    with pytest.raises(UserError, match="is too short: give at least two tokens"):
        measure_text(gpt(), VOCABULARY, "a")


def test_a_folder_that_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a run folder"):
        open_measured(tmp_path)
