"""BERT's folders: what `transformers` wrote is read, what is written it reads, and neither package is needed."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from attnlab.base.errors import UserError
from attnlab.data.text.reading import read_lines
from attnlab.data.tokenizers.wordpiece import SPECIAL, WordPiece
from attnlab.models.bert.config import BertConfig
from attnlab.models.bert.heads import BertForCLSMLM, BertForMaskedLanguageModel, BertForSequenceClassification
from attnlab.models.bert.model import BertModel

SMALL = BertConfig(vocabulary=97, width=24, layers=2, heads=3, inside=40, context=32)
IDS = torch.tensor([[5, 6, 7, 8, 9, 10], [11, 12, 13, 0, 0, 0]])
MASK = torch.tensor([[1] * 6, [1, 1, 1, 0, 0, 0]])


def wild(build: type, config: BertConfig) -> Any:
    """A model whose parameters are all at random, so that none of them can be lost without a difference."""
    torch.manual_seed(0)
    model = build(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return model


def their(name: str, folder: Path) -> Any:
    transformers = pytest.importorskip("transformers")
    return getattr(transformers, name).from_pretrained(folder, local_files_only=True).eval()


def same(one: torch.Tensor, other: torch.Tensor) -> None:
    torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


def test_a_saved_body_is_read_by_transformers(tmp_path: Path) -> None:
    model = wild(BertModel, SMALL)
    model.save_pretrained(tmp_path)
    found = their("BertModel", tmp_path)(IDS, attention_mask=MASK)
    real = MASK.bool()
    same(model(IDS, MASK).last_hidden_state[real], found.last_hidden_state[real])
    same(model(IDS, MASK).pooler_output, found.pooler_output)
    same(BertModel.from_pretrained(tmp_path)(IDS, MASK).pooler_output, found.pooler_output)


@pytest.mark.parametrize("build", [BertForSequenceClassification, BertForCLSMLM])
def test_a_saved_classifier_is_read_by_transformers(tmp_path: Path, build: type) -> None:
    model = wild(build, SMALL.changed(labels=("one", "two", "three"), classify_from="pooler"))
    model.save_pretrained(tmp_path)
    theirs = their("AutoModelForSequenceClassification", tmp_path)
    assert theirs.config.id2label == {0: "one", 1: "two", 2: "three"}
    same(model(IDS, MASK).logits, theirs(IDS, attention_mask=MASK).logits)
    again = build.from_pretrained(tmp_path)
    assert again.config == model.config
    assert again.weight_report.new == again.weight_report.unused == ()
    same(again(IDS, MASK).logits, model(IDS, MASK).logits)


def test_a_classifier_on_the_last_vector_is_a_token_classifier_of_transformers(tmp_path: Path) -> None:
    model = wild(BertForSequenceClassification, SMALL.changed(labels=3))
    model.save_pretrained(tmp_path)
    theirs = their("AutoModelForTokenClassification", tmp_path)
    same(model(IDS, MASK).logits, theirs(IDS, attention_mask=MASK).logits[:, 0])
    again = BertForSequenceClassification.from_pretrained(tmp_path)
    same(again(IDS, MASK).logits, model(IDS, MASK).logits)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("build", [BertForMaskedLanguageModel, BertForCLSMLM])
def test_a_saved_head_of_masked_words_is_read_by_transformers(tmp_path: Path, build: type, tied: bool) -> None:
    model = wild(build, SMALL.changed(tied=tied))
    model.save_pretrained(tmp_path)
    theirs = their("BertForMaskedLM", tmp_path)
    ours = model(IDS, MASK)
    logits = ours.masked.logits if build is BertForCLSMLM else ours.logits
    real = MASK.bool()
    same(logits[real], theirs(IDS, attention_mask=MASK).logits[real])
    again = BertForMaskedLanguageModel.from_pretrained(tmp_path)
    assert again.weight_report.new == ()
    same(again(IDS, MASK).logits[real], logits[real])


@pytest.mark.parametrize("file", ["model.safetensors", "pytorch_model.bin"])
def test_what_transformers_saved_is_read_with_its_pretraining_heads(tmp_path: Path, file: str) -> None:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=97,
        hidden_size=24,
        num_hidden_layers=2,
        num_attention_heads=3,
        intermediate_size=40,
        max_position_embeddings=32,
    )
    theirs = transformers.BertForPreTraining(config).eval()
    torch.nn.init.normal_(theirs.cls.predictions.bias)
    theirs.save_pretrained(tmp_path)
    if file == "pytorch_model.bin":
        torch.save(load_file(tmp_path / "model.safetensors"), tmp_path / file)
        (tmp_path / "model.safetensors").unlink()
    ours = BertForMaskedLanguageModel.from_pretrained(tmp_path)
    real = MASK.bool()
    same(ours(IDS, MASK).logits[real], theirs(IDS, attention_mask=MASK).prediction_logits[real])
    assert ours.weight_report.new == ()
    assert "next-sentence head" in ours.weight_report.sentence()


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    wild(BertModel, SMALL).save_pretrained(tmp_path)
    return tmp_path


@pytest.mark.parametrize("prefix", ["", "bert."])
def test_old_names_are_understood(saved: Path, prefix: str) -> None:
    expected = BertModel.from_pretrained(saved)(IDS, MASK).pooler_output
    weights = load_file(saved / "model.safetensors")
    old = {
        prefix + name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor
        for name, tensor in weights.items()
    }
    old[f"{prefix}embeddings.position_ids"] = torch.arange(32)[None]
    save_file(old, saved / "model.safetensors")
    again = BertModel.from_pretrained(saved)
    assert again.weight_report.new == again.weight_report.unused == ()
    same(again(IDS, MASK).pooler_output, expected)
    with_head = BertForMaskedLanguageModel.from_pretrained(saved)
    same(with_head.bert(IDS, MASK).last_hidden_state, again(IDS, MASK).last_hidden_state)


def test_new_and_unused_weights_are_reported_once(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = BertForCLSMLM.from_pretrained(saved, labels=5)
    said = capsys.readouterr().err.strip()
    assert said == f"{saved}: new, untrained: classifier, head of masked words; not used: pooler."
    assert {name.split(".")[0] for name in model.weight_report.new} == {"classifier", "masked"}
    assert model.weight_report.unused == ("pooler.dense.bias", "pooler.dense.weight")
    BertModel.from_pretrained(saved)
    assert capsys.readouterr().err == ""


def test_a_head_for_other_classes_or_another_task_is_replaced(tmp_path: Path) -> None:
    wild(BertForSequenceClassification, SMALL.changed(labels=3)).save_pretrained(tmp_path)
    assert BertForSequenceClassification.from_pretrained(tmp_path).weight_report.new == ()
    for changes in ({"labels": 4}, {"classify_from": "pooler"}):
        model = BertForSequenceClassification.from_pretrained(tmp_path, **changes)
        assert {"classifier.weight", "classifier.bias"} <= set(model.weight_report.new)
    raw = json.loads((tmp_path / "config.json").read_text())
    del raw["classify_from"]  # as a token classifier from elsewhere: its head tells names from places, say
    (tmp_path / "config.json").write_text(json.dumps(raw))
    assert "classifier.weight" in BertForSequenceClassification.from_pretrained(tmp_path).weight_report.new


def test_another_attention_is_saved_as_another_kind_of_model(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    model = wild(BertForSequenceClassification, SMALL.changed(attention="linear"))
    model.save_pretrained(tmp_path)
    same(BertForSequenceClassification.from_pretrained(tmp_path)(IDS, MASK).logits, model(IDS, MASK).logits)
    with pytest.raises(ValueError, match="attnlab-bert"):
        transformers.AutoModel.from_pretrained(tmp_path, local_files_only=True)


def test_a_pretrained_body_can_be_given_another_attention(saved: Path) -> None:
    model = BertModel.from_pretrained(saved, attention="synthesizer")
    assert model.weight_report.new
    assert all(".mixer." in name for name in model.weight_report.new)


def change_config(folder: Path, **fields: Any) -> None:
    raw = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(raw | fields))


class Code:
    """What a pickle may contain: code that runs when it is read."""

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return exec, ("raise SystemExit('code was run')",)


def bad_pickle(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps({"a": Code()}))


def small_vocabulary(folder: Path) -> None:
    (folder / "vocab.txt").write_text("\n".join([*SPECIAL, *(f"p{n}" for n in range(100))]), encoding="utf-8")


def without(name: str, folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    del weights[name]
    save_file(weights, folder / "model.safetensors")


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda f: (f / "model.safetensors").unlink(), "has no weights"),
        (lambda f: (f / "config.json").unlink(), "has no config.json"),
        (lambda f: (f / "config.json").write_text("{,"), "line 1 is not JSON"),
        (lambda f: change_config(f, model_type="roberta"), "type 'bert', got 'roberta'"),
        (lambda f: change_config(f, position_embedding_type="relative_key"), "'absolute', got 'relative_key'"),
        (lambda f: change_config(f, vocab_size=98), "weights and config are not from the same checkpoint"),
        (lambda f: change_config(f, hidden_size="wide"), "value of the wrong type"),
        (lambda f: change_config(f, hidden_act="sine"), "unknown activation 'sine'"),
        (lambda f: change_config(f, num_hidden_layers=3), "lack encoder.layer.2"),
        (lambda f: change_config(f, attention="evil.py"), "your own attention: give its file"),
        (lambda f: without("encoder.layer.1.attention.self.key.bias", f), "lack encoder.layer.1"),
        (lambda f: (f / "model.safetensors").write_bytes(b"nonsense"), "cannot be read"),
        (bad_pickle, "contains more than weights"),
        (small_vocabulary, "has 105 pieces, the weights have 97"),
    ],
)
def test_a_folder_that_cannot_be_read_is_one_sentence(saved: Path, spoil: Any, sentence: str) -> None:
    spoil(saved)
    with pytest.raises(UserError, match=sentence) as error:
        BertModel.from_pretrained(saved)
    assert str(saved) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_missing_folder_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a folder"):
        BertModel.from_pretrained(tmp_path / "none")


@pytest.mark.parametrize(("content", "sentence"), [(b"", "is empty"), (b"\x89PNG\xff\x00", "is not UTF-8")])
def test_unlabelled_text_that_is_none_is_one_sentence(tmp_path: Path, content: bytes, sentence: str) -> None:
    (tmp_path / "text.txt").write_bytes(content)
    with pytest.raises(UserError, match=sentence):
        read_lines(tmp_path / "text.txt")


ALONE = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("transformers", "tokenizers", "datasets", "huggingface_hub"):
            raise ImportError(f"{name} is not to be had")

sys.meta_path.insert(0, Refuse())
import torch
from attnlab.data.batching import BatchPlan, Batches
from attnlab.data.encoded import JointExamples, LabelledExamples
from attnlab.data.text.masking import MaskedExamples, Masking
from attnlab.data.tokenizers.wordpiece import WordPiece
from attnlab.models.bert.config import BertConfig
from attnlab.models.bert.heads import BertForCLSMLM
from attnlab.training.objectives import Classification, Joint, MaskedWords

texts = ["good film", "bad film", "good food", "bad food"]
tokenizer = WordPiece.learn(texts * 5, 60)
tokenizer.save_pretrained(sys.argv[1])
model = BertForCLSMLM(BertConfig(len(tokenizer), 16, 1, 2, 32, 16))
data = JointExamples(LabelledExamples(texts, [1, 0, 1, 0], tokenizer, 16),
                     MaskedExamples(texts, Masking(tokenizer), 16), seed=0)
objective = Joint(Classification(), MaskedWords("masked_labels"), 0.5)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
def learn(batch):
    objective(model, batch).backward()
    optimizer.step()
Batches(data, BatchPlan(data.lengths, size=2)).each(learn)
model.save_pretrained(sys.argv[1])
again = BertForCLSMLM.from_pretrained(sys.argv[1])
ids = torch.tensor([WordPiece.from_pretrained(sys.argv[1]).encode("good film").input_ids])
assert torch.allclose(again(ids).logits, model.eval()(ids).logits)
assert not {"transformers", "tokenizers"} & set(sys.modules)
"""


def test_all_of_it_works_where_neither_transformers_nor_tokenizers_is_installed(
    tmp_path: Path, cli_environment: dict[str, str]
) -> None:
    command = [sys.executable, "-c", ALONE, str(tmp_path / "model")]
    done = subprocess.run(command, capture_output=True, text=True, env=cli_environment, timeout=300)
    assert done.returncode == 0, done.stderr


def test_a_tokenizer_and_a_model_share_one_folder(tmp_path: Path) -> None:
    tokenizer = WordPiece.learn(["some words to learn from"] * 3, 60)
    model = wild(BertModel, SMALL.changed(vocabulary=len(tokenizer)))
    tokenizer.save_pretrained(tmp_path)
    model.save_pretrained(tmp_path)
    ids = torch.tensor([WordPiece.from_pretrained(tmp_path).encode("some words").input_ids])
    same(BertModel.from_pretrained(tmp_path)(ids).pooler_output, model(ids).pooler_output)
