"""Folders with all files but wrong content: one sentence, or a note."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from attnlab.base.errors import UserError
from attnlab.models.pretrained.load import load_classifier

CLASSES = ("positive", "negative")


def spoil_tokenizer(folder: Path) -> None:
    """The file of a vocabulary as it should be, in a form that no library knows."""
    path = folder / "tokenizer.json"
    found = json.loads(path.read_text())
    found["model"]["type"] = "NoSuchModel"
    path.write_text(json.dumps(found))


def vocabulary_alone(folder: Path) -> None:
    """tokenizer_config.json names a class that needs the tokenizer.json which is missing."""
    vocabulary = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    (folder / "tokenizer.json").unlink()


def change(folder: Path, **values: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (spoil_tokenizer, "its tokenizer cannot be loaded"),
        (vocabulary_alone, "its tokenizer cannot be loaded"),
        (lambda folder: change(folder, model_type="nosuch"), "config.json cannot be loaded"),
        (lambda folder: change(folder, hidden_act="sine"), "its encoder cannot be loaded"),
        (lambda folder: change(folder, num_hidden_layers=3), "lack encoder.layer.2"),
    ],
)
def test_what_transformers_cannot_read_is_one_sentence(
    tiny_model: Callable[..., Path], tmp_path: Path, spoil: Callable[[Path], None], sentence: str
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(tiny_model(), folder)
    spoil(folder)
    with pytest.raises(UserError, match=sentence) as error:
        load_classifier(str(folder), CLASSES)
    assert str(folder) in str(error.value) and "\n" not in str(error.value)


def test_a_tokenizer_far_smaller_than_the_table_is_noted(tiny_model: Callable[..., Path], tmp_path: Path) -> None:
    assert not load_classifier(str(tiny_model()), CLASSES).notes
    folder = tmp_path / "model"
    shutil.copytree(tiny_model(), folder)
    path = folder / "tokenizer.json"
    found = json.loads(path.read_text())
    size = len(found["model"]["vocab"])
    found["model"]["vocab"] = dict(list(found["model"]["vocab"].items())[: size - 6])
    path.write_text(json.dumps(found))
    (note,) = load_classifier(str(folder), CLASSES).notes
    assert f"has {size - 6} tokens, the weights have {size}" in note
