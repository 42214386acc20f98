"""Pretraining on masked words: a new BERT, one that goes on, what it leaves behind, and resuming to the bit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from attnlab.base.errors import UserError
from attnlab.config import check
from attnlab.config.knowledge import KnowledgeConfig
from attnlab.config.pretrain import PretrainConfig
from attnlab.data.batching import IGNORE
from attnlab.data.tasks.catalog import load_sentiment
from attnlab.data.text.masking import Masking, blocks
from attnlab.data.tokenizers.wordpiece import WordPiece
from attnlab.jobs.engine import train_run
from attnlab.jobs.job import RunOptions
from attnlab.jobs.masked_words import score
from attnlab.jobs.pretrain import PretrainJob
from attnlab.jobs.registry import saved_config
from attnlab.models.bert.config import BertConfig
from attnlab.models.bert.heads import BertForMaskedLanguageModel
from attnlab.models.bert.model import BertModel
from attnlab.models.loading import load_gpt
from attnlab.runs import read_config, read_record, series
from attnlab.training.loop import Trainer

MODEL = {"layers": 1, "heads": 2, "width": 32, "context": 24}
MACHINE = {"device": "cpu", "precision": "fp32", "threads": 1}


ALONE = """
import sys
sys.modules["transformers"] = sys.modules["tokenizers"] = None
from attnlab.cli import main
for words in sys.argv[1].split("|"):
    sys.argv = words.split()
    try:
        main()
    except SystemExit as stop:
        assert not stop.code, stop.code
assert sys.modules["transformers"] is sys.modules["tokenizers"] is None
"""


@pytest.mark.slow
def test_it_works_where_neither_transformers_nor_tokenizers_can_be_imported(
    tmp_path: Path, corpus: Path, folder: Path, cli_environment: dict[str, str]
) -> None:
    pretrain = f"attnlab pretrain --objective mlm --corpus {corpus} --device cpu --context 16 --steps 2 --threads 1"
    commands = (
        f"{pretrain} --precision fp32 --run new --layers 1 --heads 2 --width 16 --vocabulary 100",
        f"{pretrain} --precision fp32 --run continued --from {folder}",
    )
    command = [sys.executable, "-c", ALONE, "|".join(commands)]
    done = subprocess.run(command, capture_output=True, text=True, env=cli_environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for run in ("new", "continued"):
        assert json.loads((tmp_path / run / "model" / "config.json").read_text())["model_type"] == "bert"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "reviews.txt"
    path.write_text("\n".join(example.text for example in load_sentiment()["train"]) + "\n")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, corpus: Path) -> Path:
    """A small random BERT, such as one gets from elsewhere: no head of masked words."""
    path = tmp_path_factory.mktemp("models") / "small"
    tokenizer = WordPiece.learn(corpus.read_text().splitlines(), 300)
    tokenizer.save_pretrained(path)
    torch.manual_seed(0)
    BertModel(BertConfig(len(tokenizer), 16, 2, 2, 32, 40)).save_pretrained(path)
    return path


def config(corpus: Path | None, **changes: Any) -> PretrainConfig:
    settings: dict[str, Any] = {
        "data": {"corpus": str(corpus)} if corpus else {},
        "objective": {"name": "mlm"},
        "machine": MACHINE,
        "training": {"steps": 4},
        "masking": {"vocabulary": 300},
        "model": MODEL,
    }
    return check(PretrainConfig, settings | changes)


def train(config: PretrainConfig, path: Path, **options: Any) -> Path:
    run = train_run(PretrainJob(config), RunOptions(path, **options))
    assert run is not None
    return run


@pytest.fixture(scope="module")
def new(tmp_path_factory: pytest.TempPathFactory, corpus: Path) -> Path:
    """A BERT that has learnt something of the embedded sentences."""
    settings = {"training": {"epochs": 4}, "optimizer": {"lr": 3e-3}}
    return train(config(corpus, **settings), tmp_path_factory.mktemp("runs") / "new")


def test_a_new_bert_learns_words_it_does_not_see(new: Path) -> None:
    record, (_, losses) = read_record(new), series(new / "metrics.jsonl", "dev", "loss")
    assert losses[-1] < losses[0] - 0.2
    assert record["results"]["dev_loss"] == pytest.approx(min(losses), abs=1e-6)
    assert 0.02 < record["results"]["dev_accuracy"] < 1
    assert record["data"]["dev_documents"] == round(
        0.05 * (record["data"]["documents"] + record["data"]["dev_documents"])
    )
    assert read_config(new)["data"]["dev_share"] == 0.05
    shape = BertForMaskedLanguageModel.from_pretrained(new / "model").config
    assert (shape.layers, shape.heads, shape.width, shape.inside, shape.context) == (1, 2, 32, 128, 24)
    assert shape.vocabulary == record["data"]["vocabulary"] == len(WordPiece.from_pretrained(new / "model")) == 300


def test_the_folder_it_leaves_is_read_by_transformers(new: Path) -> None:
    transformers = pytest.importorskip("transformers")
    theirs = transformers.AutoModelForMaskedLM.from_pretrained(new / "model", local_files_only=True).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(new / "model", local_files_only=True)
    text = "a film that is [MASK] and dull"
    ids = WordPiece.from_pretrained(new / "model").encode(text).input_ids
    assert tokenizer(text)["input_ids"] == ids
    ours = BertForMaskedLanguageModel.from_pretrained(new / "model")
    assert ours.weight_report is not None and ours.weight_report.new == ()
    given = torch.tensor([ids])
    torch.testing.assert_close(ours(given).logits, theirs(given).logits, atol=1e-5, rtol=1e-5)


def test_a_bert_from_a_folder_goes_on_with_its_own_shape(tmp_path: Path, corpus: Path, folder: Path) -> None:
    masking = {"start": str(folder), "whole_words": True, "share": 0.3}
    run = train(config(corpus, masking=masking, model={}), tmp_path / "run")
    saved = read_config(run)
    assert {name: saved["model"][name] for name in ("layers", "heads", "width", "context")} == {
        "layers": 2,
        "heads": 2,
        "width": 16,
        "context": 40,
    }
    assert saved["optimizer"]["lr"] == 1e-4
    assert (folder / "vocab.txt").read_bytes() == (run / "model" / "vocab.txt").read_bytes()
    before, after = (BertModel.from_pretrained(path).words.weight for path in (folder, run / "model"))
    assert not torch.equal(before, after)
    assert (before - after).abs().max() < 0.01  # four small steps from where it was
    again = train(
        config(corpus, masking={"start": str(run)}, model={"context": 8}), tmp_path / "again"
    )  # a run will do
    assert read_config(again)["masking"]["start"] == str(run / "model")
    told, known = read_record(run)["data"], read_record(again)["data"]
    assert known["rows"] > told["rows"]
    assert "new, untrained: head of masked words" in told["start_weights"] and "start_weights" not in known


def test_stopped_and_resumed_it_ends_with_the_same_weights(
    tmp_path: Path, corpus: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = {"steps": 7, "evaluate_every": "3 steps", "save_every": "2 steps"}
    settings = {"training": training, "masking": {"start": str(folder)}, "model": {"dropout": 0.1}}
    whole = train(config(corpus, **settings), tmp_path / "whole")
    step = Trainer._step

    def stop(self: Trainer, batches: Any) -> Any:
        if self.state.step == 5:
            raise KeyboardInterrupt
        return step(self, batches)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Trainer, "_step", stop)
        train(config(corpus, **settings), tmp_path / "run")
    assert not (tmp_path / "run" / "model").exists()
    saved = saved_config(tmp_path / "run")
    assert isinstance(saved, PretrainConfig)
    run = train(saved, tmp_path / "run", resume=True)
    assert (run / "model" / "model.safetensors").read_bytes() == (whole / "model" / "model.safetensors").read_bytes()
    for split, name in (("dev", "loss"), ("train", "loss")):
        assert series(run / "metrics.jsonl", split, name) == series(whole / "metrics.jsonl", split, name)


def test_another_attention_that_reads_both_ways(tmp_path: Path) -> None:
    """On the synthetic world, for want of a file."""
    run = train(config(None, model=MODEL | {"attention": "linear"}, world={"people": 20}), tmp_path / "run")
    assert BertForMaskedLanguageModel.from_pretrained(run / "model").config.attention == "linear"


def test_the_score_is_that_of_all_masked_pieces(corpus: Path) -> None:
    """Against the same counted from the logits of every place, one text at a time."""
    parts = PretrainJob(config(corpus)).build("cpu")
    model, rows = parts.model.eval(), parts.data
    rows.rows, rows.lengths = rows.rows[:20], rows.lengths[:20]
    losses, right = [], []
    for n in range(20):
        batch = rows.collate([n], 0)
        logits, asked = model(batch["input_ids"]).logits[0], batch["labels"][0]
        for place in (asked != IGNORE).nonzero().flatten().tolist():
            losses.append(-logits[place].log_softmax(-1)[asked[place]].item())
            right.append(logits[place].argmax().item() == asked[place])
    found = score(rows, "cpu")(model)
    assert found["loss"] == pytest.approx(sum(losses) / len(losses), abs=1e-5)
    assert found["accuracy"] == pytest.approx(sum(right) / len(right))


def test_long_documents_are_cut_into_rows_without_loss() -> None:
    tokenizer = WordPiece.learn(["one two three four five six"] * 4, 80)
    text = "six five four three two one one"
    rows = blocks(text, tokenizer, 5)
    assert [id_ for row in rows for id_ in row[1:-1]] == tokenizer.piece_ids(text)
    assert {(row[0], row[-1]) for row in rows} == {(tokenizer.cls_id, tokenizer.sep_id)}
    assert max(map(len, rows)) == 5
    assert blocks(" ", tokenizer, 5) == []
    with pytest.raises(UserError, match="no room for text"):
        blocks(text, tokenizer, 2)
    assert sum(target != IGNORE for target in Masking(tokenizer)(rows[0], 0, 0)[1]) == 1


def test_too_few_documents_to_keep_any_aside_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "few.txt").write_text("some words here\nand other words there\n" * 2)
    run = train(config(tmp_path / "few.txt", masking={"vocabulary": 60}), tmp_path / "run")
    assert "4 documents are too few to keep 5% aside" in capsys.readouterr().err
    assert (run / "model" / "config.json").is_file() and "dev_loss" not in read_record(run)["results"]


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "preset": ({"model": {"preset": "modern"}}, "--preset modern is for a GPT"),
    "positions": ({"model": {"positions": "rotary"}}, "--positions rotary is for a GPT"),
    "tokens": ({"data": {"tokens": "words"}}, "--tokens words is for a GPT"),
    "hidden only": ({"objective": {"name": "mlm", "hidden_only": True}}, "--hidden-only is for a GPT"),
    "without mlm": ({"objective": {"name": "span"}, "masking": {"share": 0.2}}, "--mask-share 0.2 is for masked words"),
    "shape": ({"masking": {"start": "FOLDER"}, "model": {"layers": 3}}, "--layers 3: .* has 2"),
    "context": (
        {"masking": {"start": "FOLDER"}, "model": {"context": 41}},
        "--context 41 is more than the 40 positions",
    ),
    "vocabulary": ({"masking": {"start": "FOLDER", "vocabulary": 100}}, "--vocabulary is for a new BERT"),
    "start": ({"masking": {"start": "no/such-bert"}}, "the model 'no/such-bert' is not here"),
    "attention": ({"model": {"attention": "nonsense"}}, "unknown attention 'nonsense'"),
    "small": ({"masking": {"vocabulary": 20}}, "is too small"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_means_nothing_for_a_bert_is_refused(
    corpus: Path, folder: Path, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    changes, sentence = WRONG[case]
    if changes.get("masking", {}).get("start") == "FOLDER":
        changes = changes | {"masking": changes["masking"] | {"start": str(folder)}}
    if "data" in changes:
        changes = changes | {"data": changes["data"] | {"corpus": str(corpus)}}
    with pytest.raises(UserError, match=sentence):
        PretrainJob(config(corpus, **changes)).build("cpu")


def test_text_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"words\0\n")
    with pytest.raises(UserError, match="x is a binary file"):
        PretrainJob(config(tmp_path / "x")).build("cpu")


@pytest.mark.parametrize(
    ("kind", "values", "sentence"),
    [
        (PretrainConfig, {"objective": {"name": "mlm,span"}}, "they cannot be combined"),
        (PretrainConfig, {"masking": {"share": 0}}, "greater than 0"),
        (KnowledgeConfig, {"pretrain": {"objective": {"name": "mlm"}}}, "cannot answer questions"),
    ],
)
def test_settings_that_contradict_each_other(kind: Any, values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        check(kind, values)


def test_it_cannot_be_asked(new: Path) -> None:
    with pytest.raises(UserError, match="is a BERT trained on masked words, not a GPT"):
        load_gpt(new)


@pytest.mark.skipif(
    not (os.environ.get("ATTNLAB_DATA") and os.environ.get("ATTNLAB_MODELS")),
    reason="needs yelp/unlabeled.txt in ATTNLAB_DATA and bert-tiny/ in ATTNLAB_MODELS",
)
def test_real_weights_learn_from_real_reviews(tmp_path: Path) -> None:
    """The head is new and the body is not: a few steps are enough to see it learn."""
    lines = Path(os.environ["ATTNLAB_DATA"], "yelp", "unlabeled.txt").read_text(encoding="utf-8").splitlines()[:80]
    (tmp_path / "some.txt").write_text("\n".join(lines).replace("\\n", " "), encoding="utf-8")
    settings = {
        "training": {"steps": 8, "log_every": 1},
        "optimizer": {"lr": 1e-3},
        "batch": {"size": 8},
        "model": {"context": 32},
    }
    run = train(config(tmp_path / "some.txt", masking={"start": "bert-tiny"}, **settings), tmp_path / "run")
    _, losses = series(run / "metrics.jsonl", "train", "loss")
    assert read_record(run)["results"]["dev_loss"] < losses[0] - 1
