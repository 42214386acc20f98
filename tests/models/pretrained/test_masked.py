"""Masked words beside classes, for models of the hub."""

import json
from pathlib import Path

import pytest
import torch

pytest.importorskip("transformers", reason="models of the hub come with the extra 'hub'")

import transformers
from tests.tiny_models import tiny_model

from attnlab.base.errors import UserError
from attnlab.config import check
from attnlab.config.classify import ClassifyConfig
from attnlab.data.batching import IGNORE
from attnlab.jobs.classify.job import ClassifyJob
from attnlab.jobs.job import RunOptions
from attnlab.models.pretrained.load import load_classifier
from attnlab.models.pretrained.masked import HubPieces, with_masked_words
from attnlab.models.pretrained.tuned import load_trained
from attnlab.runs import read_record
from attnlab.runs.checkpoints import Checkpoints

TEXTS = ["the film was very good", "the plot is bad and the actors running"]


@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert", "mpnet"])
def test_the_loss_of_masked_words_is_that_of_transformers(tmp_path: Path, family: str) -> None:
    folder = tiny_model(tmp_path / "m", family, masked=True)
    theirs = transformers.AutoModelForMaskedLM.from_pretrained(folder).eval()
    loaded = load_classifier(str(folder), ("no", "yes"))
    ours, note = with_masked_words(loaded)
    assert note is None  # the checkpoint's own head was found
    batch = loaded.tokenizer(TEXTS, padding=True, return_tensors="pt")
    inputs = {name: batch[name] for name in ("input_ids", "attention_mask")}
    labels = inputs["input_ids"].clone()
    labels[:, 0] = labels[0, 4:] = IGNORE
    with torch.no_grad():
        expected = theirs(**inputs, labels=labels).loss
        assert float(ours.eval()(masked_labels=labels, **inputs).loss) == pytest.approx(float(expected), abs=1e-5)
        assert torch.equal(ours(**inputs), loaded.model(**inputs))


def test_a_missing_head_is_new_and_noted(tmp_path: Path) -> None:
    loaded = load_classifier(str(tiny_model(tmp_path / "m")), ("no", "yes"))
    both, note = with_masked_words(loaded)
    assert note is not None and "no head for masked words" in note
    assert both.masked.decoder.weight is loaded.model.body.get_input_embeddings().weight


def test_pieces_that_continue_a_word_are_recognised(tmp_path: Path) -> None:
    pieces = HubPieces(load_classifier(str(tiny_model(tmp_path / "m")), ("a", "b")).tokenizer)
    tokens = pieces.tokenizer.convert_ids_to_tokens(range(len(pieces)))
    assert [token for token, inside in zip(tokens, pieces.inside, strict=True) if inside] == ["##ning", "##s"]
    assert pieces.encode("the film running", None, 36).input_ids[-3:-1] == pieces.tokenizer.convert_tokens_to_ids(
        ["run", "##ning"]
    )


def test_a_model_that_cannot_mask_is_refused(tmp_path: Path) -> None:
    loaded = load_classifier(str(tiny_model(tmp_path / "m", "t5")), ("a", "b"))
    with pytest.raises(UserError, match="BERT-like"):
        with_masked_words(loaded)


def config(tmp_path: Path, **changes: object) -> ClassifyConfig:
    values = {
        "data.task": str(tmp_path / "rows.csv"),
        "data.max_tokens": 24,
        "model.name": str(tmp_path / "m"),
        "optimizer.lr": 1e-3,
        "batch.size": 8,
        "training.epochs": 2,
        "training.keep": 2,
        "watch.baselines": False,
        "machine.device": "cpu",
        "machine.precision": "fp32",
        "machine.threads": 1,
        "joint.mlm": str(tmp_path / "texts.txt"),
    } | changes
    nested: dict[str, dict[str, object]] = {}
    for name, value in values.items():
        section, _, key = name.partition(".")
        nested.setdefault(section, {})[key] = value
    return check(ClassifyConfig, nested)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    tiny_model(tmp_path / "m", masked=True)
    rows = [f"the film {n % 7} was {'good' if n % 2 else 'bad'} {'very ' * (n % 3)},{n % 2}" for n in range(60)]
    (tmp_path / "rows.csv").write_text("text,label\n" + "\n".join(rows) + "\n")
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS * 5) + "\n")
    return tmp_path


def weights(run: Path) -> dict[str, torch.Tensor]:
    found = Checkpoints(run / "checkpoints").newest()
    assert found is not None
    return found.tensors["model"]


def test_a_weight_of_zero_is_classification_alone(files: Path) -> None:
    runs = {}
    for name, changes in {"alone": {"joint.mlm": None}, "joint": {"joint.weight": 0.0}}.items():
        runs[name] = ClassifyJob(config(files, **changes)).run(RunOptions(files / name))
    alone, joint = weights(runs["alone"]), weights(runs["joint"])
    assert all(torch.equal(tensor, joint[f"classifier.{name}"]) for name, tensor in alone.items())


def test_masked_words_change_what_is_learned_and_the_classifier_is_loaded_again(files: Path) -> None:
    run = ClassifyJob(config(files, **{"joint.schedule": "down"})).run(RunOptions(files / "run"))
    assert run is not None
    said = [json.loads(line) for line in (run / "predictions-dev.jsonl").read_text().splitlines()]
    trained = load_trained(run, "cpu")
    from attnlab.data.tasks.catalog import read_texts

    encoded = trained.encode(read_texts(trained.config.data).splits["dev"])
    probabilities = trained.logits(encoded).softmax(-1).amax(-1)
    assert probabilities.tolist() == pytest.approx([line["probability"] for line in said], abs=1e-5)
    assert read_record(run)["results"]["dev_accuracy"] >= 0.0


@pytest.mark.parametrize("content, sentence", [(b"", "empty"), (b"\x00\xff\x00", "text")])
def test_unlabelled_files_without_text(files: Path, content: bytes, sentence: str) -> None:
    (files / "texts.txt").write_bytes(content)
    with pytest.raises(UserError, match=sentence):
        ClassifyJob(config(files)).run(RunOptions(files / "run"))


def test_a_frozen_body_learns_nothing_from_masked_words(files: Path) -> None:
    with pytest.raises(UserError, match="--tune head"):
        ClassifyJob(config(files, **{"tuning.method": "head"})).run(RunOptions(files / "run"))
