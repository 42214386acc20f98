"""The BERT of the assignment, in PyTorch alone: the numbers, pieces and files of transformers."""

from __future__ import annotations

import json
import os
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
import safetensors.torch
import torch
import transformers
from torch import nn

Load = Callable[[str], ModuleType]
LABELS = tuple("12345")
DATA = Path(os.environ.get("ATTNLAB_DATA", "no data"), "yelp")
MODELS = Path(os.environ.get("ATTNLAB_MODELS", "no models"))
SHAPE = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 40}
SHAPE |= {"vocab_size": 50, "max_position_embeddings": 32}


def real(name: str) -> object:
    return pytest.param(
        name, marks=pytest.mark.skipif(not (MODELS / name).is_dir(), reason=f"ATTNLAB_MODELS has no {name}")
    )


def batch(vocabulary: int) -> dict[str, torch.Tensor]:
    """Two padded rows with two segments."""
    torch.manual_seed(1)
    mask = torch.ones(2, 12, dtype=torch.long)
    mask[1, 7:] = 0
    types = torch.zeros(2, 12, dtype=torch.long)
    types[0, 5:] = 1
    ids = torch.randint(vocabulary, (2, 12)) * mask
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}


@pytest.fixture(params=["random", real("bert-tiny"), real("tinybert-4l-312d")])
def theirs(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, nn.Module]:
    """transformers' BERT for masked words, with random or real weights, in its folder."""
    torch.manual_seed(0)
    if request.param == "random":
        config = transformers.BertConfig(**SHAPE, initializer_range=0.2)
        model = transformers.BertForMaskedLM(config)
    else:
        model = transformers.BertForMaskedLM.from_pretrained(MODELS / request.param)  # a new head on a real body
    nn.init.normal_(model.cls.predictions.bias)
    model.save_pretrained(tmp_path / "theirs")
    return tmp_path / "theirs", model.eval()


def test_vectors_and_scores_are_those_of_transformers(bert: Load, theirs: tuple[Path, nn.Module]) -> None:
    folder, model = theirs
    weights, mymodel = bert("weights"), bert("mymodel")
    config = weights.read_config(folder, LABELS)
    ours = mymodel.BertForMaskedLanguageModel(config).eval()
    weights.load_weights(ours, folder)
    inputs = batch(config.vocab_size)
    real_ = inputs["attention_mask"].bool()
    with torch.no_grad():
        vectors = model.bert(**inputs).last_hidden_state
        torch.testing.assert_close(ours.bert(**inputs)[real_], vectors[real_], atol=1e-5, rtol=1e-5)
        del inputs["token_type_ids"]
        scores, found = model(**inputs).logits, ours(**inputs).logits
        torch.testing.assert_close(found[real_], scores[real_], atol=1e-5, rtol=1e-5)
        targets = torch.full_like(inputs["input_ids"], -100)
        targets[0, 3], targets[1, 1] = 7, 9
        expected = model(**inputs, labels=targets).loss
        torch.testing.assert_close(ours(**inputs, masked_labels=targets).loss, expected, atol=1e-5, rtol=1e-5)


def test_a_saved_model_is_one_of_transformers(
    bert: Load, theirs: tuple[Path, nn.Module], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The classifier is what transformers calls token classification, at [CLS]; the head of masked words is its own."""
    folder, _ = theirs
    weights, mymodel = bert("weights"), bert("mymodel")
    config = weights.read_config(folder, LABELS)
    ours = mymodel.BertForCLSMLM(config, 0.5).eval()
    weights.load_weights(ours, folder)
    assert "new, untrained: classifier." in capsys.readouterr().err
    (tmp_path / "out").mkdir()
    weights.save_model(ours, config, tmp_path / "out")
    inputs = batch(config.vocab_size)
    classifier = transformers.BertForTokenClassification.from_pretrained(tmp_path / "out").eval()
    assert [*classifier.config.id2label.values()] == [*LABELS]
    torch.testing.assert_close(
        ours.classification(**inputs).logits, classifier(**inputs).logits[:, 0], atol=1e-5, rtol=1e-5
    )
    again = mymodel.BertForCLSMLM(config).eval()
    weights.load_weights(again, tmp_path / "out")
    assert capsys.readouterr().err == "" or "untrained" not in capsys.readouterr().err
    assert all(map(torch.equal, again.parameters(), ours.parameters()))
    masked = transformers.BertForMaskedLM.from_pretrained(tmp_path / "out").eval()
    del inputs["token_type_ids"]
    torch.testing.assert_close(ours.language_model(**inputs).logits, masked(**inputs).logits, atol=1e-5, rtol=1e-5)


def test_one_body_and_both_losses(bert: Load) -> None:
    bert_, mymodel = bert("bert"), bert("mymodel")
    model = mymodel.BertForCLSMLM(bert_.BertConfig(**SHAPE, labels=LABELS), 0.25).eval()
    assert model.classification.bert is model.language_model.bert
    inputs = batch(50)
    targets = inputs["input_ids"].where(inputs["input_ids"] > 40, -100)
    labels = torch.tensor([1, 4])
    output = model(
        **inputs,
        labels=labels,
        masked_input_ids=inputs["input_ids"],
        masked_attention_mask=inputs["attention_mask"],
        masked_labels=targets,
    )
    torch.testing.assert_close(output.loss, output.cls_loss + 0.25 * output.mlm_loss)
    torch.testing.assert_close(output.cls_loss, nn.functional.cross_entropy(output.logits, labels))
    output.loss.backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    nothing = torch.full_like(targets, -100)
    assert float(model.language_model(inputs["input_ids"], None, nothing).loss.detach()) == 0.0


def test_old_names_and_pickles_are_read_and_code_is_not_run(bert: Load, tmp_path: Path) -> None:
    weights, mymodel = bert("weights"), bert("mymodel")
    config = transformers.BertConfig(**SHAPE)
    model = transformers.BertModel(config).eval()
    (tmp_path / "config.json").write_text(json.dumps({**SHAPE}))  # as TinyBERT's: no model_type
    renamed = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor
        for name, tensor in model.state_dict().items()
    }
    torch.save(renamed, tmp_path / "pytorch_model.bin")
    ours = mymodel.BertForSequenceClassification(weights.read_config(tmp_path, LABELS)).eval()
    weights.load_weights(ours, tmp_path)
    inputs = batch(50)
    shown = inputs["attention_mask"].bool()
    torch.testing.assert_close(ours.bert(**inputs)[shown], model(**inputs).last_hidden_state[shown])

    torch.save(model, tmp_path / "pytorch_model.bin")  # an object, not weights alone
    with pytest.raises(bert("errors").UserError, match="cannot be read as weights alone"):
        weights.load_weights(ours, tmp_path)
    torch.save([torch.ones(2)], tmp_path / "pytorch_model.bin")
    with pytest.raises(bert("errors").UserError, match="not a set of named weights"):
        weights.load_weights(ours, tmp_path)


def test_safetensors_are_those_of_the_library(bert: Load, tmp_path: Path) -> None:
    weights, path = bert("weights"), tmp_path / "x.safetensors"
    kinds = (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int8, torch.uint8)
    tensors = {str(kind): (100 * torch.rand(3, n)).to(kind) for n, kind in enumerate(kinds, 1)}
    tensors |= {"empty": torch.empty(0, 4), "number": torch.tensor(2.5)}
    safetensors.torch.save_file(tensors, path, metadata={"format": "pt"})
    for read, write in (
        (weights.read_safetensors, safetensors.torch.save_file),
        (safetensors.torch.load_file, lambda found, to: weights.write_safetensors(to, found)),
    ):
        write(tensors, path)
        found = read(path)
        assert found.keys() == tensors.keys()
        assert all(
            torch.equal(found[name], tensors[name]) and found[name].dtype == tensors[name].dtype for name in tensors
        )


@pytest.mark.parametrize("damage", ["short", "header", "length", "empty", "outside", "kind"])
def test_a_damaged_file_is_reported(bert: Load, tmp_path: Path, damage: str) -> None:
    weights, path = bert("weights"), tmp_path / "model.safetensors"
    safetensors.torch.save_file({"a": torch.ones(4, 4)}, path)
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])

    def with_header(**entry: object) -> bytes:
        text = json.dumps({"a": header["a"] | entry}).encode()
        return len(text).to_bytes(8, "little") + text + content[8 + length :]

    path.write_bytes(
        {
            "short": content[:-1],
            "header": content[:8] + b"x" + content[9:],
            "length": (2**40).to_bytes(8, "little") + content[8:],
            "empty": b"",
            "outside": with_header(data_offsets=[8, 72]),
            "kind": with_header(dtype="F7"),
        }[damage]
    )
    with pytest.raises(bert("errors").UserError, match=r"model\.safetensors is not a complete safetensors file"):
        weights.read_safetensors(path)


def test_a_file_is_written_whole_or_not_at_all(bert: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files, path = bert("files"), tmp_path / "file"
    files.write_whole(path, [b"old"])

    def parts() -> Iterator[bytes]:
        yield b"ne"
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        files.write_whole(path, parts())
    assert path.read_bytes() == b"old" and [*tmp_path.iterdir()] == [path]


def test_the_rate_is_that_of_transformers_schedule(bert: Load) -> None:
    training = bert("training")
    for warmup, steps in ((0, 7), (3, 10), (5, 5)):
        optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
        schedule = transformers.get_linear_schedule_with_warmup(optimizer, warmup, steps)
        for step in range(steps):
            assert training.rate_factor(step, warmup, steps) == pytest.approx(schedule.get_last_lr()[0])
            optimizer.step()
            schedule.step()


def test_the_loop_ends_with_the_weights_of_a_plain_loop_over_transformers(bert: Load, tmp_path: Path) -> None:
    """Two accumulated batches per step, clipped gradients, weight decay on matrices alone."""
    weights, mymodel, training = bert("weights"), bert("mymodel"), bert("training")
    config = transformers.BertConfig(
        **SHAPE, num_labels=5, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, initializer_range=0.2
    )
    theirs = transformers.BertForTokenClassification(config)
    theirs.save_pretrained(tmp_path)
    content = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(content | {"classify_from": "cls"}))
    ours = mymodel.BertForSequenceClassification(weights.read_config(tmp_path, LABELS))
    weights.load_weights(ours, tmp_path)
    torch.manual_seed(0)
    batches = [{"input_ids": torch.randint(1, 50, (4, 9)), "labels": torch.randint(5, (4,))} for _ in range(6)]
    args = Namespace(learning_rate=1e-2, weight_decay=0.1, adam_epsilon=1e-3, warmup_steps=1, max_grad_norm=0.5)
    vars(args).update(gradient_accumulation_steps=2, logging_steps=9, save_steps=0, fp16=False)
    args.evaluate_during_training = False
    training.train(
        ours,
        lambda number: {"loss": ours(**batches[number]).loss},
        lambda: training.Scores(0.5, 1.0),
        lambda: None,
        args,
        3,
        tmp_path / "checkpoint.pt",
    )
    decayed = [p for name, p in theirs.named_parameters() if p.ndim == 2 and "embeddings" not in name]
    plain = [p for name, p in theirs.named_parameters() if p.ndim != 2 or "embeddings" in name]
    # A large epsilon: the gradient of a key's bias is zero but for rounding, which Adam would blow up.
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, eps=1e-3)
    for step in range(3):
        for group in optimizer.param_groups:
            group["lr"] = 1e-2 * (0.0, 1.0, 0.5)[step]
        optimizer.zero_grad()
        for inputs in batches[2 * step : 2 * step + 2]:
            logits = theirs(inputs["input_ids"]).logits[:, 0]
            (nn.functional.cross_entropy(logits, inputs["labels"]) / 2).backward()
        nn.utils.clip_grad_norm_(theirs.parameters(), 0.5)
        optimizer.step()
    expected = theirs.state_dict()
    for name, tensor in weights.file_names(ours).items():
        torch.testing.assert_close(tensor, expected[name], atol=1e-5, rtol=1e-4)
