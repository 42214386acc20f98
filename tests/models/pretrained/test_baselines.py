"""Models without a network are models like any other, and stand beside every result on the same rows and texts."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from attnlab.api.classifier import Classifier
from attnlab.base.errors import UserError
from attnlab.config import check
from attnlab.config.classify import ClassifyConfig
from attnlab.data.encoded import cut_texts, text_examples, usual_length
from attnlab.data.tasks.labelled import LabelledText
from attnlab.jobs.classify.baselines import baselines_in, pairs_of
from attnlab.jobs.classify.export import export
from attnlab.models.pretrained.load import load_classifier
from attnlab.models.pretrained.tuned import TunedClassifier, load_encoder_classifier, load_trained
from attnlab.runs import read_config, read_record
from attnlab.runs.checkpoints import Checkpoints
from attnlab.runs.predictions import read_examples, read_predictions

Make = Callable[..., Path]
WORDS = {"optimizer": {"lr": None}, "training": {}}


@pytest.fixture(autouse=True, scope="module")
def _no_figures() -> Iterator[None]:
    """Drawing takes longer than training."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("attnlab.report.figures.save", lambda figure, path: "<svg/>")
        yield


def shares(trained: TunedClassifier, texts: list[str]) -> torch.Tensor:
    return trained.logits(trained.encode([LabelledText(text, -1) for text in texts])).softmax(-1)


def files_of(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", ["majority", "tfidf", "embeddings"])
def test_a_model_without_a_network_is_fitted_loaded_and_exported(
    tmp_path: Path, tiny_model: Make, fit: Make, reviews: Path, name: str
) -> None:
    encoder = {} if name == "majority" else {"encoder": str(tiny_model("bert"))}
    limit = {"max_tokens": 32 if name == "embeddings" else None}
    run = fit(tmp_path / "run", name, reviews, model={**encoder, "pooling": "auto"}, data=limit, **WORDS)
    record, examples = read_record(run), read_examples(run, "test")
    assert examples is not None
    assert record["results"]["test_accuracy"] == (0.5 if name == "majority" else pytest.approx(1.0, abs=0.4))
    assert read_config(run)["optimizer"]["lr"] is None
    export(run, tmp_path / "out")
    shutil.move(tmp_path / "out", tmp_path / "moved")
    assert not any(file.endswith((".bin", ".pkl", ".pickle", ".joblib", ".npy")) for file in files_of(tmp_path))
    for folder in (run, tmp_path / "moved"):
        trained = load_trained(folder, "cpu")
        found = shares(trained, [example.text for example in examples])
        predicted = [trained.classes[place] for place in found.argmax(1)]
        assert predicted == [example.predicted for example in examples]
        assert np.allclose(found.max(1).values, [example.probability for example in examples], atol=1e-5)
    if name != "embeddings":
        with pytest.raises(UserError, match="has no attention"):
            load_encoder_classifier(run, "cpu")


def test_words_decide_the_reviews_and_a_changed_vocabulary_is_refused(tmp_path: Path, fit: Make, reviews: Path) -> None:
    run = fit(tmp_path / "run", "tfidf", reviews, data={"max_tokens": None}, **WORDS)
    assert read_record(run)["results"]["test_accuracy"] == 1.0
    fitted = Classifier.from_run(run)
    assert fitted.predict(["a good thing", "a dull thing"]).tolist() == ["positive", "negative"]
    (run / "words.json").write_text((run / "words.json").read_text().replace("good", "goad"))
    with pytest.raises(UserError, match="was changed since the run was trained"):
        load_trained(run, "cpu")


def test_counted_words_read_as_much_of_a_text_as_the_encoder(tmp_path: Path, tiny_model: Make, pairs: Path) -> None:
    loaded = load_classifier(str(tiny_model("bert")), ["a", "b"])
    examples = [LabelledText("the film is good and the rest of it is dull", 0), LabelledText("a bad film", 1)]
    kept, cut = cut_texts(examples, loaded.tokenizer, 6)
    assert [each.text for each in kept] == ["the film is good", "a bad film"] and cut == 1
    read = text_examples(kept, loaded.tokenizer, 6)
    assert read.cut == 0 and [row.input_ids for row in read.rows] == [
        row.input_ids for row in text_examples(examples, loaded.tokenizer, 6).rows
    ]
    (two,), _ = cut_texts([LabelledText("good film", 0, "the walk is cold and grim")], loaded.tokenizer, 8)
    assert (two.text, two.pair) == ("good film", "the walk is")


def test_the_length_leaves_95_percent_whole_up_to_what_the_model_reads(tiny_model: Make) -> None:
    tokenizer = load_classifier(str(tiny_model("bert")), ["a", "b"]).tokenizer
    texts = [LabelledText("good " * (20 if n % 10 else 10), 0) for n in range(100)] + [LabelledText("bad " * 90, 0)] * 4
    assert usual_length(texts, tokenizer, 48) == 24  # 20 words and two marks, in steps of 8
    assert usual_length([LabelledText("bad " * 90, 0)], tokenizer, 48) == 48
    pair = [LabelledText("good " * 30, 0, "bad")] + [LabelledText("good", 0, "bad")] * 99
    assert usual_length(pair, tokenizer, 48) == 40  # no first text is cut


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory, tiny_model: Make, fit: Make, reviews: Path) -> Path:
    """A hopeless network, with its baselines."""
    sections: dict[str, Any] = {"optimizer": {"lr": 1e-7}, "watch": {"baselines": True}, "data": {"max_tokens": None}}
    return fit(tmp_path_factory.mktemp("beside") / "run", tiny_model("bert"), reviews, **sections)


def test_baselines_are_on_the_same_rows_and_their_lead_is_said_first(beside: Path) -> None:
    record, stored = read_record(beside), baselines_in(beside)
    assert list(stored) == ["majority", "tfidf", "embeddings"]
    own = read_predictions(beside, "test")
    for name in stored:
        other = read_predictions(beside / "baselines" / name, "test")
        assert own is not None and other is not None and other.examples == own.examples
        assert stored[name]["test_accuracy"] == pytest.approx(other.right.mean())
        assert record["results"][f"test_{name}_accuracy"] == stored[name]["test_accuracy"]
    assert stored["tfidf"]["test_accuracy"] == 1.0 and pairs_of(beside, "test")["tfidf"].difference < 0
    said = " ".join((record["verdict"], record.get("collapsed", "")))
    assert "elow TF-IDF with logistic regression, by 50.0% of test" in said
    page = (beside / "report.html").read_text()
    assert page.index('role="alert"') < page.index("elow TF-IDF") < page.index("<h2") < page.index("Beside baselines")
    assert "only second right" in page


def test_what_was_chosen_is_recorded_and_only_the_weights_are_kept(beside: Path) -> None:
    config = check(ClassifyConfig, read_config(beside))
    assert config.data.max_tokens == 16 and config.batch.size == 16 and config.training.epochs == 2
    (kept,) = (beside / "checkpoints").iterdir()
    assert kept.name.startswith("best-") and not (kept / "optimizer.safetensors").exists()
    assert not Checkpoints(beside / "checkpoints").steps()


def test_a_frozen_body_gets_a_fitted_head_without_a_rate(
    tmp_path: Path, tiny_model: Make, fit: Make, reviews: Path
) -> None:
    sections: dict[str, Any] = {"tuning": {"method": "head"}, "watch": {"baselines": True}, **WORDS}
    run = fit(tmp_path / "run", tiny_model("roberta"), reviews, **sections)
    assert list(baselines_in(run)) == ["majority", "tfidf"]  # the third is the run itself
    record = read_record(run)
    assert record["results"]["c"] > 0 and record["steps"] == 0 and record["training"]["step"] > 1
    trained = load_trained(run, "cpu")
    assert trained.model.head.dense is None and trained.model.pooling == "mean"
    by_steps = fit(tmp_path / "steps", tiny_model("roberta"), reviews, tuning={"method": "head"})
    assert load_trained(by_steps, "cpu").model.head.dense is not None and read_record(by_steps)["steps"] > 0


def test_auto_finds_a_rate_on_dev(tmp_path: Path, tiny_model: Make, fit: Make, reviews: Path) -> None:
    run = fit(tmp_path / "run", tiny_model("bert"), reviews, optimizer={"lr": "auto"}, training={"steps": 2})
    rate = read_config(run)["optimizer"]["lr"]
    (said,) = [change for change in read_record(run)["changes"] if change.startswith("learning rate auto")]
    losses = {float(rate): float(loss) for rate, loss in (p.split(": ") for p in said.split("(")[1][:-2].split(", "))}
    assert len(losses) == 5 and losses[rate] == min(losses.values()) and max(losses) / min(losses) == pytest.approx(100)


@pytest.mark.parametrize(
    ("sections", "sentence"),
    [
        ({"model": {"name": "tfidf"}, "tuning": {"method": "lora"}}, "tfidf has no weights to tune"),
        ({"model": {"name": "embeddings"}, "joint": {"mlm": "u.txt"}}, "embeddings has no weights to tune"),
        ({"model": {"name": "minilm", "encoder": "bert-tiny"}}, "encoder is for the models tfidf and embeddings"),
        ({"optimizer": {"lr": 0.0}}, "expected a number above 0"),
    ],
)
def test_what_does_not_go_together_is_one_sentence(sections: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        check(ClassifyConfig, sections)


def test_json_of_the_vocabulary_is_plain(tmp_path: Path, fit: Make, reviews: Path) -> None:
    run = fit(tmp_path / "run", "tfidf", reviews, data={"max_tokens": None}, **WORDS)
    content = json.loads((run / "words.json").read_text())
    assert "good" in content["vocabulary"]["words"] and "words.json" in read_record(run)["files"]


@pytest.mark.parametrize("name", ["bert", "tfidf"])
def test_predictions_and_exports_have_the_temperature_of_dev(
    tmp_path: Path, tiny_model: Make, fit: Make, reviews: Path, name: str
) -> None:
    model = tiny_model("bert") if name == "bert" else "tfidf"
    sections: dict[str, Any] = {} if name == "bert" else {"data": {"max_tokens": None}, **WORDS}
    run = fit(tmp_path / "run", model, reviews, **sections)
    record, examples = read_record(run), read_examples(run, "test")
    temperature = record["results"]["temperature"]
    assert examples is not None and temperature != pytest.approx(1.0, abs=1e-3)
    assert record["calibration"]["dev"]["after"]["loss"] < record["calibration"]["dev"]["before"]["loss"]
    export(run, tmp_path / "out")
    for folder in (run, tmp_path / "out"):
        found = shares(load_trained(folder, "cpu"), [example.text for example in examples])
        assert np.allclose(found.max(1).values, [example.probability for example in examples], atol=1e-5)
    changed = json.loads((run / "run.json").read_text())
    changed["results"]["temperature"] = 1.0
    (run / "run.json").write_text(json.dumps(changed))
    without = shares(load_trained(run, "cpu"), [example.text for example in examples])
    assert torch.allclose((without.log() / temperature).softmax(-1), found, atol=1e-5)
    page = (run / "report.html").read_text()
    assert "accuracy by confidence on test, before" in page and "share answered" in page
