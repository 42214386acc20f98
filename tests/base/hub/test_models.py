"""Pretrained models by name: from a folder, from the cache, from a stand-in of the hub."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from attnlab.base.errors import UserError
from attnlab.cli import app
from attnlab.models.pretrained.catalog import MODELS
from attnlab.models.pretrained.folder import describe
from attnlab.models.pretrained.get import get_model
from attnlab.models.pretrained.load import load_classifier
from attnlab.models.pretrained.source import ModelUnreachable, model_folder

transformers = pytest.importorskip("transformers")
FETCHED = {"config.json", "model.safetensors", "vocab.txt", "README.md", "1_Pooling"}
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz", *(f"word{n}" for n in range(69))]


@pytest.fixture(scope="session")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny BERT with random weights, as `transformers` writes it, and things the lab must not fetch."""
    folder = tmp_path_factory.mktemp("bert")
    config = transformers.BertConfig(
        vocab_size=len(WORDS),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    transformers.BertModel(config).save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    (folder / "README.md").write_text("---\nlicense: mit\n---\nA tiny BERT.\n")
    (folder / "modeling_tiny.py").write_text("raise SystemExit('this must never run')\n")
    (folder / "training_args.bin").write_bytes(b"a pickle")
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    return folder


@pytest.fixture
def pickled(bert: Path, tmp_path: Path) -> Path:
    """The same with its weights in a pickle only."""
    folder = tmp_path / "pickled"
    shutil.copytree(bert, folder)
    torch.save(transformers.BertModel.from_pretrained(bert).state_dict(), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    return folder


def test_a_model_is_fetched_once_and_gives_what_the_original_gives(hub, bert: Path) -> None:
    hub.add_folder("someone/tiny-bert", bert)
    folder = model_folder("someone/tiny-bert")
    first, second = (transformers.BertModel.from_pretrained(place).eval() for place in (bert, folder))
    tokens = transformers.BertTokenizer.from_pretrained(folder)("a b word3", return_tensors="pt")["input_ids"]
    assert torch.equal(first(tokens).last_hidden_state, second(tokens).last_hidden_state)
    hub.stop()
    assert model_folder("someone/tiny-bert") == folder


def test_only_data_is_fetched(hub, bert: Path) -> None:
    hub.add_folder("someone/tiny-bert", bert)
    folder = model_folder("someone/tiny-bert")
    assert {path.name for path in folder.iterdir()} == FETCHED
    assert not {"modeling_tiny.py", "training_args.bin"} & set(hub.asked)


def test_a_pickle_is_taken_where_there_is_nothing_else(hub, bert: Path, pickled: Path) -> None:
    hub.add_folder("someone/old", pickled)
    folder = model_folder("someone/old")
    assert (folder / "pytorch_model.bin").is_file()
    assert "training_args.bin" not in hub.asked
    assert describe(folder)["parameters"] == describe(bert)["parameters"]
    both = {path.name: path.read_bytes() for path in (*bert.glob("*.*"), pickled / "pytorch_model.bin")}
    hub.add("someone/both", both)
    assert not (model_folder("someone/both") / "pytorch_model.bin").exists()


def test_code_in_a_pickle_is_refused_and_not_run(pickled: Path, tmp_path: Path) -> None:
    class Code:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "was run",))

    torch.save({"weight": Code()}, pickled / "pytorch_model.bin")
    with pytest.raises(UserError, match="cannot be read as weights"):
        describe(pickled)
    assert not (tmp_path / "was run").exists()


def test_short_names_find_todays_id_and_yesterdays_cache(hub, bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.add_folder("FacebookAI/roberta-base", bert)
    folder = model_folder("roberta-base")
    assert "models--FacebookAI--roberta-base" in str(folder)
    storage = folder.parent.parent
    storage.rename(storage.with_name("models--roberta-base"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert "models--roberta-base" in str(model_folder("roberta-base"))


def test_a_folder_comes_first_then_the_models_folder(hub, bert: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("ATTNLAB_MODELS", str(tmp_path / "models"))
    shutil.copytree(bert, tmp_path / "models" / "roberta-base")
    assert model_folder("roberta-base") == tmp_path / "models" / "roberta-base"
    assert model_folder("FacebookAI/roberta-base") == tmp_path / "models" / "roberta-base"
    monkeypatch.chdir(tmp_path)
    shutil.copytree(bert, tmp_path / "roberta-base")
    assert model_folder("roberta-base") == Path("roberta-base")
    assert hub.asked == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("someone/nothing", "has no public model someone/nothing"),
        ("roberta-bsae", "did you mean 'roberta-base'"),
        ("a/b/c", "is neither a folder nor a known name"),
        ("../b", "is neither a folder nor a known name"),
    ],
)
def test_a_name_nobody_knows_is_one_sentence(
    hub, name: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # "../b" must not exist
    with pytest.raises(UserError, match=expected) as found:
        model_folder(name)
    assert "\n" not in str(found.value) and not isinstance(found.value, ModelUnreachable)


@pytest.mark.parametrize("fault", ["failing", "closed", "offline"])
def test_a_hub_that_gives_no_answer_is_one_sentence_at_once(hub, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = {"failing": "answers with error 500", "closed": "cannot be reached", "offline": "HF_HUB_OFFLINE"}[fault]
    if fault == "failing":
        hub.failing = True
    elif fault == "closed":
        hub.stop()
    else:
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    with pytest.raises(ModelUnreachable, match=expected) as found:
        model_folder("roberta-base")
    assert "attnlab models get roberta-base --to FOLDER" in str(found.value)
    assert "\n" not in str(found.value)
    assert slept == []  # no rounds of waiting and asking again


@pytest.mark.parametrize("fault", ["cut", "spoilt"])
def test_half_a_download_never_becomes_a_model(hub, bert: Path, tmp_path: Path, fault: str) -> None:
    hub.add_folder("someone/tiny-bert", bert)
    setattr(hub, fault, "model.safetensors")
    target = tmp_path / "here" / "model"
    for get in (lambda: model_folder("someone/tiny-bert"), lambda: get_model("someone/tiny-bert", target)):
        with pytest.raises(UserError) as found:
            get()
        assert "\n" not in str(found.value)
    assert list(target.parent.iterdir()) == []
    setattr(hub, fault, None)
    folder = model_folder("someone/tiny-bert")
    assert (folder / "model.safetensors").read_bytes() == (bert / "model.safetensors").read_bytes()


def test_weights_in_parts_are_all_there_or_refused(hub, bert: Path, tmp_path: Path) -> None:
    model = transformers.BertModel.from_pretrained(bert)
    model.save_pretrained(tmp_path / "parts", max_shard_size="30KB")
    shutil.copy(bert / "vocab.txt", tmp_path / "parts")
    parts = sorted((tmp_path / "parts").glob("model-*.safetensors"))
    assert len(parts) > 1
    hub.add_folder("someone/parts", tmp_path / "parts")
    assert describe(model_folder("someone/parts"))["parameters"] == model.num_parameters()
    parts[1].unlink()
    with pytest.raises(UserError, match=parts[1].name):
        model_folder(str(tmp_path / "parts"))


def _without(name: str):
    return lambda folder: (folder / name).unlink()


def _cut(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-4])


def _more_words(folder: Path) -> None:
    (folder / "vocab.txt").write_text("\n".join([*WORDS, "onemore"]) + "\n")


def _more_words_as_json(folder: Path) -> None:
    transformers.BertTokenizer.from_pretrained(folder).save_pretrained(folder)
    found = json.loads((folder / "tokenizer.json").read_text())
    found["added_tokens"].append({"id": len(WORDS), "content": "onemore", "special": False})
    (folder / "tokenizer.json").write_text(json.dumps(found))


@pytest.mark.parametrize(
    ("break_it", "expected"),
    [
        (_without("config.json"), "has no config.json"),
        (_without("model.safetensors"), "has no weights"),
        (_without("vocab.txt"), "has no tokenizer"),
        (lambda folder: (folder / "config.json").write_text('{"a": 1,\n'), "config.json, line 2 is not JSON"),
        (lambda folder: (folder / "config.json").write_text("[]"), "expected a JSON object"),
        (_cut, r"expected [\d,]+ bytes, got [\d,]+: fetch it again"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"version https://git-lfs"), "no safetensors file"),
        (_more_words, "101 tokens, the weights have 100: tokenizer and model are not from the same checkpoint"),
        (_more_words_as_json, "101 tokens, the weights have 100"),
    ],
)
def test_a_folder_that_is_not_whole_is_refused(bert: Path, tmp_path: Path, break_it, expected: str) -> None:
    folder = tmp_path / "model"
    shutil.copytree(bert, folder)
    break_it(folder)
    with pytest.raises(UserError, match=expected) as found:
        model_folder(str(folder))
    assert "\n" not in str(found.value)


def test_pieces_of_a_sentencepiece_model_are_counted(bert: Path, tmp_path: Path) -> None:
    """A piece is field 1 of a protobuf message; a trainer's settings (field 2) and a number follow."""
    folder = tmp_path / "model"
    shutil.copytree(bert, folder)
    (folder / "vocab.txt").unlink()
    piece = b"\x0a\x09" + b"\x0a\x02ab" + b"\x15\x00\x00\x80\xbf"  # a string and a float, 9 bytes
    (folder / "spiece.model").write_bytes(piece * 100 + b"\x12\x02\x08\x01" + b"\x18\x96\x01")
    assert describe(folder)["tokens"] == 100
    (folder / "spiece.model").write_bytes(piece * 101)
    with pytest.raises(UserError, match="not from the same checkpoint"):
        model_folder(str(folder))
    (folder / "spiece.model").write_bytes(piece * 100 + b"\x0a\x09")
    with pytest.raises(UserError, match="no tokenizer file"):
        model_folder(str(folder))


def test_get_makes_a_folder_that_stands_alone(hub, bert: Path, tmp_path: Path) -> None:
    hub.add_folder("someone/tiny-bert", bert)
    target = tmp_path / "models" / "tiny"
    command = ["models", "get", "someone/tiny-bert", "--to", str(target)]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0
    assert hashlib.sha256((bert / "model.safetensors").read_bytes()).hexdigest() in done.stdout
    assert {path.name for path in target.iterdir()} == FETCHED
    assert not [*(tmp_path / "cache").rglob("*.safetensors")]
    again = CliRunner().invoke(app, command)
    assert isinstance(again.exception, UserError) and "not empty" in str(again.exception)
    (target / "extra").touch()
    assert CliRunner().invoke(app, [*command, "--overwrite"]).exit_code == 0
    assert not (target / "extra").exists()
    (target / "config.json").unlink()
    refused = CliRunner().invoke(app, [*command, "--overwrite"])
    assert "replaces models only" in str(refused.exception)
    assert list(target.parent.iterdir()) == [target]


def test_show_says_what_transformers_counts(hub, bert: Path) -> None:
    shown = json.loads(CliRunner().invoke(app, ["models", "show", str(bert), "--json"]).stdout)
    model = transformers.BertModel.from_pretrained(bert)
    assert shown["parameters"] == model.num_parameters()
    assert (shown["layers"], shown["width"], shown["heads"], shown["longest input"]) == (2, 32, 2, 64)
    assert (shown["pooler"], shown["head of masked words"], shown["licence"]) == (True, False, "mit")


def test_show_knows_heads_and_relative_positions(tmp_path: Path, bert: Path) -> None:
    transformers.BertForMaskedLM.from_pretrained(bert).save_pretrained(tmp_path / "masked")
    config = transformers.T5Config(vocab_size=100, d_model=16, d_kv=4, d_ff=32, num_layers=1, num_heads=2)
    transformers.T5ForConditionalGeneration(config).save_pretrained(tmp_path / "t5")
    for name in ("masked", "t5"):
        shutil.copy(bert / "vocab.txt", tmp_path / name)
    masked, t5 = describe(tmp_path / "masked"), describe(tmp_path / "t5")
    assert (masked["pooler"], masked["head of masked words"]) == (False, True)
    assert t5["longest input"].startswith("any")
    assert t5["pooler"] is None


def test_an_old_bert_without_a_family_is_known_by_its_segments_and_loads(bert: Path, pickled: Path) -> None:
    """As TinyBERT is on the hub: config.json without model_type, a pickle, a bare vocabulary."""
    config = json.loads((pickled / "config.json").read_text())
    kept = {key: config[key] for key in config if key not in ("model_type", "architectures", "transformers_version")}
    (pickled / "config.json").write_text(json.dumps(kept))
    assert describe(pickled)["family"] == "bert"
    bodies, tokens = [], []
    for folder in (bert, pickled):
        loaded = load_classifier(str(folder), ("no", "yes"))
        tokens.append(torch.tensor(loaded.tokenizer(["a b word3"])["input_ids"]))
        bodies.append(loaded.model.body.eval())
    assert torch.equal(*tokens)
    first, second = (body(tokens[0]).last_hidden_state for body in bodies)
    assert torch.equal(first, second)


def test_the_list_says_what_is_here(hub, bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTNLAB_MODELS", str(tmp_path / "models"))
    shutil.copytree(bert, tmp_path / "models" / "roberta-base")
    shutil.copytree(bert, tmp_path / "models" / "my-own")
    hub.add_folder("google/flan-t5-small", bert)
    model_folder("flan-t5-small")
    found = {row["name"]: row for row in json.loads(CliRunner().invoke(app, ["models", "list", "--json"]).stdout)}
    assert found["roberta-base"]["where"] == found["my-own"]["where"] == "models folder"
    assert found["flan-t5-small"]["where"] == "cache"
    assert found["t5-3b"]["where"] is None


@pytest.mark.parametrize("known", [known for known in MODELS if known.family == "bert"], ids=lambda known: known.name)
def test_sizes_in_the_catalogue_are_those_of_the_shapes(known) -> None:
    vocabulary = 28_996 if known.name.endswith("-cased") else 30_522
    config = transformers.BertConfig(
        vocab_size=vocabulary,
        hidden_size=known.width,
        num_hidden_layers=known.layers,
        intermediate_size=1200 if known.width == 312 else 4 * known.width,
        num_attention_heads=2,
    )
    with torch.device("meta"):
        model = transformers.BertModel(config)
    assert model.num_parameters() / 1e6 == pytest.approx(known.millions, abs=0.06)


@pytest.mark.parametrize(
    "name", ["distilbert-base-uncased", "bert-base-cased", "roberta-base", "huawei-noah/TinyBERT_General_4L_312D"]
)
def test_names_of_courses_work_as_typed(hub, bert: Path, name: str) -> None:
    known = next(known for known in MODELS if name in (known.name, known.hub))
    hub.add_folder(known.hub, bert)
    assert model_folder(name).is_dir()
