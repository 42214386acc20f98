"""A classification run: what it samples, weighs, watches and records; resumed it ends the same."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attnlab.base.errors import UserError
from attnlab.config.classify import ClassifyConfig
from attnlab.data.batching import Batch
from attnlab.data.encoded import encode, text_examples
from attnlab.data.tasks.catalog import draw
from attnlab.data.tasks.labelled import LabelledText
from attnlab.jobs.classify.collapse import Collapsed
from attnlab.jobs.classify.job import ClassifyJob
from attnlab.jobs.job import RunOptions
from attnlab.jobs.registry import saved_config
from attnlab.models.pretrained.load import load_classifier
from attnlab.runs import read_record, read_status
from attnlab.runs.metrics import cut_back
from attnlab.stats.scores import Scores
from attnlab.training.objectives import Classification

Make = Callable[..., Path]


@pytest.fixture
def hopeless(tmp_path: Path) -> Path:
    """The same text with either label: a model trained on it can only predict one class."""
    folder = tmp_path / "hopeless"
    folder.mkdir()
    for split, count in (("train", 30), ("dev", 20), ("test", 20)):
        rows = [f"the film is good\t{'yes' if n % 5 else 'no'}" for n in range(count)]
        (folder / f"{split}.tsv").write_text("\n".join(["text\tlabel", *rows]) + "\n")
    return folder


def test_a_collapse_is_printed_recorded_and_shown(
    tmp_path: Path,
    tiny_model: Make,
    fit: Make,
    hopeless: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from typer.testing import CliRunner

    from attnlab.cli import app

    run = fit(tmp_path / "runs" / "one", tiny_model("bert"), hopeless)
    sentence = read_record(run)["collapsed"]
    assert "it predicts 'yes' for 100.0% of dev, and its accuracy, 80.0%, is that of always predicting" in sentence
    assert read_record(run)["results"]["collapsed"] is True
    assert sentence.rstrip(".") in capsys.readouterr().err.replace("\n", " ")
    assert f'role="alert">T{sentence[1:].split(chr(39))[0]}' in (run / "report.html").read_text()
    monkeypatch.chdir(tmp_path)  # short paths: the table has 80 columns
    listed = CliRunner().invoke(app, ["runs", "--in", "runs"])
    assert "collapsed;" in listed.output
    shown = CliRunner().invoke(app, ["runs", "show", str(run)]).output.splitlines()
    assert any(line.startswith("collapsed:") for line in shown[:10])  # right after the status


def test_after_a_collapse_it_stops_or_starts_again_at_a_lower_rate(
    tmp_path: Path, tiny_model: Make, fit: Make, hopeless: Path
) -> None:
    with pytest.raises(Collapsed):
        fit(tmp_path / "stopped", tiny_model("bert"), hopeless, watch={"on_collapse": "stop"})
    assert read_status(tmp_path / "stopped")["state"] == "failed"
    assert "has collapsed" in read_status(tmp_path / "stopped")["reason"]
    with pytest.raises(Collapsed):
        fit(tmp_path / "again", tiny_model("bert"), hopeless, watch={"on_collapse": "retry"}, optimizer={"lr": 0.027})
    saved: Any = saved_config(tmp_path / "again")
    assert saved.optimizer.lr == pytest.approx(0.001)
    changes = [change for change in read_record(tmp_path / "again")["changes"] if "Started again" in change]
    assert [change.rsplit(" ", 1)[1] for change in changes] == ["0.009.", "0.003.", "0.001."]


def test_a_try_that_does_not_collapse_is_kept(
    tmp_path: Path, tiny_model: Make, fit: Make, reviews: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first evaluation finds a collapse, those of the second try do not."""
    seen: list[Scores] = []
    monkeypatch.setattr(Scores, "collapsed", property(lambda scores: seen.append(scores) or len(seen) == 1))
    run = fit(
        tmp_path / "run",
        tiny_model("bert"),
        reviews,
        watch={"on_collapse": "retry"},
        optimizer={"lr": 0.03},
        training={"epochs": 2},
    )
    (change,) = [change for change in read_record(run)["changes"] if "collapsed" in change]
    assert change.startswith("at a learning rate of 0.03 the classifier") and change.endswith("Started again at 0.01.")
    saved: Any = saved_config(run)
    assert saved.optimizer.lr == pytest.approx(0.01) and read_status(run)["state"] == "finished"
    assert read_record(run)["results"]["collapsed"] is False and len(seen) > 2


@pytest.mark.parametrize("method", ["prompt", "lora", "head"])
def test_resumed_in_the_middle_it_ends_with_the_same_weights(
    tmp_path: Path, tiny_model: Make, fit: Make, reviews: Path, method: str
) -> None:
    whole = fit(
        tmp_path / "whole",
        tiny_model("bert"),
        reviews,
        tuning={"method": method, "length": 2, "rank": 2},
        model={"dropout": 0.1},
        training={"steps": 8, "save_every": "1 step", "keep": 9},
    )
    part = tmp_path / "part"
    shutil.copytree(whole, part)
    for path in (part / "checkpoints").iterdir():
        if int(path.name.rpartition("-")[2]) > 5:
            shutil.rmtree(path)
    state = json.loads((part / "checkpoints" / "step-00000005" / "state.json").read_text())
    cut_back(part / "metrics.jsonl", state["training"]["metrics_position"])
    (part / "status.json").write_text(json.dumps({"state": "interrupted", "reason": ""}))
    config: Any = saved_config(part)
    ClassifyJob(config).run(RunOptions(part, resume=True))
    last = Path("checkpoints", "step-00000008", "model.safetensors")
    assert (part / last).read_bytes() == (whole / last).read_bytes()
    found, expected = (
        {name: value for name, value in read_record(run)["results"].items() if name != "feature_seconds"}
        for run in (part, whole)
    )
    assert found == expected


def test_the_head_alone_is_counted_beside_the_whole(
    tmp_path: Path,
    tiny_model: Make,
    fit: Make,
    settings: Callable[..., ClassifyConfig],
    reviews: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    config = settings(tiny_model("bert"), reviews, tuning={"method": "head"}, model={"pooling": "mean"})
    assert ClassifyJob(config).run(RunOptions(dry_run=True)) is None
    whole = load_classifier(str(tiny_model("bert")), ("a", "b"), "mean").model
    total = sum(weight.numel() for weight in whole.parameters())
    assert f"parameters: {total:,} in all, 34 learning" in capsys.readouterr().out
    run = fit(tmp_path / "run", tiny_model("bert"), reviews, tuning={"method": "head"}, model={"pooling": "mean"})
    record = read_record(run)
    assert (record["learning_parameters"], record["parameters"]) == (2 * 16 + 2, total)
    assert f"Tuned by head: 34 of {total:,} parameters are trained" in (run / "report.html").read_text()


def test_class_weights_weigh_the_gradient() -> None:
    torch.manual_seed(0)
    inputs, labels = torch.randn(6, 4), torch.tensor([0, 0, 0, 0, 1, 2])
    model = nn.Linear(4, 3)
    weights = [0.5, 2.0, 2.0]

    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = model

        def forward(self, features: torch.Tensor) -> torch.Tensor:
            return self.inner(features)

    def batch(part: slice) -> Batch:
        count = len(labels[part])
        return Batch({"features": inputs[part], "labels": labels[part]}, tuple(range(count)), count, count)

    objective = Classification(weights)
    parts = [batch(slice(0, 2)), batch(slice(2, 6))]
    total = sum(objective.weight(part) for part in parts)
    for part in parts:  # as accumulated over two batches
        (objective(Named(), part) * objective.weight(part) / total).backward()
    found = model.weight.grad.clone()
    model.zero_grad()
    each = F.cross_entropy(model(inputs), labels, reduction="none") * torch.tensor(weights)[labels]
    (each.sum() / torch.tensor(weights)[labels].sum()).backward()
    assert torch.allclose(found, model.weight.grad, atol=1e-6)


def test_few_examples_are_drawn_in_proportion() -> None:
    examples = [LabelledText(str(n), 0 if n < 70 else 1 if n < 90 else 2) for n in range(100)]
    for count, expected in ((10, [7, 2, 1]), (50, [35, 10, 5]), (3, [2, 1, 0])):
        found = draw(examples, count, seed=1)
        assert [sum(example.label == label for example in found) for label in range(3)] == expected
        assert len({example.text for example in found}) == count
    assert draw(examples, 10, seed=1) == draw(examples, 10, seed=1) != draw(examples, 10, seed=2)
    with pytest.raises(UserError, match=r"at most 100 training examples.*got 101"):
        draw(examples, 101, seed=0)


def test_a_few_are_memorized_and_no_test_is_held_out(
    tmp_path: Path, tiny_model: Make, fit: Make, reviews: Path
) -> None:
    run = fit(
        tmp_path / "overfit",
        tiny_model("bert"),
        reviews,
        watch={"overfit": 10},
        training={"epochs": 60},
        batch={"size": 5},
    )
    record = read_record(run)
    assert record["results"]["overfit"] is True and record["data"]["examples"] == {"train": 10, "dev": 10}
    assert not (run / "predictions-test.jsonl").exists()
    run = fit(tmp_path / "all", tiny_model("bert"), reviews, data={"hold_out": False}, training={"epochs": 1})
    record = read_record(run)
    assert record["data"]["examples"] == {"train": 90, "dev": 10}
    assert not any(name.startswith("test_") for name in record["results"])


@pytest.mark.parametrize(("family", "segments"), [("bert", True), ("electra", True), ("roberta", False), ("t5", False)])
def test_pairs_have_segments_where_the_family_has(tiny_model: Make, family: str, segments: bool) -> None:
    loaded = load_classifier(str(tiny_model(family)), ("no", "yes"), dropout=0.0)
    pairs = [LabelledText("good film", 0, "the film is bad"), LabelledText("a meal", 1, "cold")]
    batch = text_examples(pairs, loaded.tokenizer, 48).collate([0, 1], 0)
    assert ("token_type_ids" in batch) == segments
    own = loaded.tokenizer([e.text for e in pairs], [e.pair for e in pairs], padding=True, return_tensors="pt")
    assert all(torch.equal(batch[name], own[name]) for name in batch if name != "labels")
    single = text_examples([LabelledText("good film", 0)], loaded.tokenizer, 48).collate([0], 0)
    assert "token_type_ids" not in single  # all of them the first


@pytest.mark.parametrize("family", ["roberta", "t5"])
def test_segments_that_only_the_tokenizer_knows_are_left_out(tiny_model: Make, tmp_path: Path, family: str) -> None:
    """A plain fast tokenizer offers them to every family, and these cannot read them."""
    folder = shutil.copytree(tiny_model(family), tmp_path / family)
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    settings["model_input_names"] = ["input_ids", "token_type_ids", "attention_mask"]
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    loaded = load_classifier(str(folder), ("positive", "negative"), head="words" if family == "t5" else "auto")
    batch = text_examples([LabelledText("good film", 0, "the film is bad")], loaded.tokenizer, 48).collate([0], 0)
    batch.pop("labels")
    assert loaded.model(**batch).shape == (1, 2)


def test_only_the_second_text_is_cut(tiny_model: Make) -> None:
    tokenizer = load_classifier(str(tiny_model("bert")), ("no", "yes")).tokenizer
    first, long = "good lovely warm", " ".join(["dull"] * 30)
    found = text_examples([LabelledText(first, 0, long), LabelledText(first, 1, "cold")], tokenizer, 12)
    words = tokenizer.convert_ids_to_tokens(found.rows[0].input_ids)
    assert words == ["[CLS]", "good", "lovely", "warm", "[SEP]", *["dull"] * 6, "[SEP]"]
    assert found.cut == 1 and found.rows[0].cut and not found.rows[1].cut
    with pytest.raises(UserError, match="here, example 2: its first text has 30 tokens"):
        text_examples([LabelledText(first, 0, "cold"), LabelledText(long, 0, "cold")], tokenizer, 12, "here, ")


def test_a_text_without_any_token_is_refused() -> None:
    def without_special_tokens(texts: list[str], **_: object) -> dict[str, list[list[int]]]:
        return {"input_ids": [[5] * len(text.split()) for text in texts], "token_type_ids": [[] for _ in texts]}

    assert len(encode(without_special_tokens, ["a film", "good"], [], 8)) == 2
    with pytest.raises(UserError, match="here, example 2: it is empty"):
        encode(without_special_tokens, ["a film", ""], [], 8, "here, ")
