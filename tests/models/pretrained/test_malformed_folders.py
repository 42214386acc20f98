"""Folders of models with values of the wrong kind: one sentence, whichever command reads them."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from attnlab.base.errors import UserError
from attnlab.cli import app

Make = Callable[..., Path]


def invoked(*words: object) -> Any:
    """A run that succeeds or ends in a sentence; returns it."""
    done = CliRunner().invoke(app, list(map(str, words)))
    assert done.exception is None or isinstance(done.exception, UserError | SystemExit), repr(done.exception)
    return done


def changed(file: Path, **values: object) -> None:
    file.write_text(json.dumps(json.loads(file.read_text(encoding="utf-8")) | values), encoding="utf-8")


ODD = (None, [None], {"a": 1}, -1, 2**70)


@pytest.mark.parametrize("field", ["hidden_size", "num_hidden_layers", "vocab_size", "model_type", "id2label"])
def test_an_odd_configuration_is_shown_or_refused(field: str, tmp_path: Path, tiny_model: Make) -> None:
    folder = tiny_model("bert")
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    for value in ODD:
        changed(tmp_path / "config.json", **{field: value})
        invoked("models", "show", tmp_path)
        invoked("inspect", tmp_path, "--text", "good", "--json")


@pytest.mark.parametrize("content", ["", "[]", "{", '{"pooling_mode_mean_tokens": [null]}', "\\xff", "null"])
def test_a_broken_pooling_file_is_one_sentence(
    content: str, tmp_path: Path, tiny_model: Make, reviews: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tiny_model("bert")
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text(content)
    done = invoked("classify", "--task", reviews, "--model", tmp_path, "--device", "cpu", "--dry-run")
    if content != '{"pooling_mode_mean_tokens": [null]}':
        assert isinstance(done.exception, UserError) and "config.json" in str(done.exception)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory, tiny_model: Make, fit: Make, reviews: Path) -> Path:
    run = fit(tmp_path_factory.mktemp("runs") / "run", tiny_model("bert"), reviews, model={"pooling": "pooler"})
    done = invoked("export", run, "--to", run.parent / "exported")
    assert done.exit_code == 0, done.exception
    return run.parent / "exported"


def test_an_export_with_odd_values_or_a_pickle_is_one_sentence(exported: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in exported.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    assert invoked("predict", copy, "--text", "good").exit_code == 0
    about = copy / "attnlab.json"
    before = about.read_text(encoding="utf-8")
    for field in ("form", "classes", "columns", "config", "max_tokens", "base"):
        for value in ODD:
            changed(about, **{field: value})
            invoked("predict", copy, "--text", "good")
            about.write_text(before, encoding="utf-8")
    changed(about, classes=["a", "b", "c"])
    assert "names 3 classes, and its weights have 2" in str(invoked("predict", copy, "--text", "good").exception)
    about.write_text(before, encoding="utf-8")
    (copy / "model.safetensors").unlink()
    (copy / "pytorch_model.bin").write_bytes(pickle.dumps({"weight": print}))
    refused = invoked("predict", copy, "--text", "good").exception
    assert isinstance(refused, UserError) and "cannot be" in str(refused)
