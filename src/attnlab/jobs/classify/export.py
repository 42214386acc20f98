"""A tuned classifier as a folder to share: a transformers model, or the trained weights only."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from attnlab.base.errors import UserError
from attnlab.base.files import whole_folder, write_text
from attnlab.data.tasks.catalog import ABOUT as TASKS
from attnlab.jobs.classify.card import card
from attnlab.models.linear.model import WORDS
from attnlab.models.pretrained.classifier import Classifier
from attnlab.models.pretrained.label_words import LabelWords
from attnlab.models.pretrained.load import quietly
from attnlab.models.pretrained.to_transformers import fits_transformers, save_body, to_transformers, without_adapters
from attnlab.models.pretrained.tuned import (
    ABOUT,
    ENCODER_FORM,
    LINEAR_FORM,
    WEIGHTS,
    TunedClassifier,
    is_export,
    load_run,
)
from attnlab.runs import read_record
from attnlab.runs.checkpoints import weights_of
from attnlab.version import __version__


def export(run: Path, folder: Path, weights_only: bool = False, overwrite: bool = False) -> str:
    """Write `folder` completely or not at all; returns its form, see `form_of`."""
    _may_write(folder, overwrite)
    record = read_record(run)
    if record["kind"] == "classify" and not record.get("results"):
        raise UserError(f"{run} is not finished, so it has no scores to export: finish it with 'attnlab resume {run}'.")
    trained = load_run(run)
    form = form_of(trained, weights_only)
    save = _SAVE[form](trained)
    about = _about(trained, form, record)
    try:
        with whole_folder(folder) as partial:
            save(partial)
            write_text(partial / "README.md", card(trained, form, record))
            write_text(partial / ABOUT, json.dumps(about, indent=1, ensure_ascii=False) + "\n")
            for path in partial.iterdir():  # weight files are readable by their owner only
                path.chmod((partial / ABOUT).stat().st_mode)
    except OSError as error:
        raise UserError(f"{folder} cannot be written: {error.strerror or error}.") from None
    return form


def form_of(trained: TunedClassifier, weights_only: bool) -> str:
    """The form in which a classifier is exported: one that others can load where there is one."""
    model = trained.model
    if trained.words is not None:
        return LINEAR_FORM
    assert isinstance(model, Classifier | LabelWords)
    if weights_only:
        return "weights"
    if isinstance(model, LabelWords):
        return "words"
    return "transformers" if fits_transformers(model, trained.config.tuning.method) else ENCODER_FORM


def _transformers(trained: TunedClassifier) -> Save:
    model = trained.model
    assert isinstance(model, Classifier | LabelWords)
    plain = to_transformers(model, trained.config.tuning.method, trained.classes)

    def save(folder: Path) -> None:
        with quietly():
            plain.save_pretrained(folder)
        _save_tokenizer(trained, folder)

    return save


def _encoder(trained: TunedClassifier) -> Save:
    """The encoder as a plain folder of transformers, adapters merged, and what is on top of it beside it."""
    model = trained.model
    assert isinstance(model, Classifier)
    on_top = without_adapters(model, trained.config.tuning.method)

    def save(folder: Path) -> None:
        with quietly():
            save_body(model, folder)
        _save_tokenizer(trained, folder)
        save_file(on_top, folder / WEIGHTS)

    return save


def _weights(trained: TunedClassifier) -> Save:
    weights = weights_of(trained.model)
    return lambda folder: save_file(weights, folder / WEIGHTS)


def _linear(trained: TunedClassifier) -> Save:
    """The vocabulary as JSON, the weights, and the tokenizer by whose tokens texts are cut."""

    def save(folder: Path) -> None:
        assert trained.words is not None
        if trained.words.words is not None:
            write_text(folder / WORDS, trained.words.words.to_json())
        save_file(weights_of(trained.model), folder / WEIGHTS)
        if trained.tokenizer is not None:
            _save_tokenizer(trained, folder)

    return save


Save = Callable[[Path], None]
_SAVE: dict[str, Callable[[TunedClassifier], Save]] = {
    "transformers": _transformers,
    "words": _transformers,
    ENCODER_FORM: _encoder,
    "weights": _weights,
    LINEAR_FORM: _linear,
}


def _save_tokenizer(trained: TunedClassifier, folder: Path) -> None:
    trained.tokenizer.model_max_length = trained.longest
    with quietly():
        trained.tokenizer.save_pretrained(folder)


def _about(trained: TunedClassifier, form: str, record: dict[str, Any]) -> dict[str, Any]:
    """What the lab needs to use the folder: no paths of this machine, except the base model's name."""
    config = trained.config
    data = {"max_tokens": config.data.max_tokens} | ({"task": config.data.task} if config.data.task in TASKS else {})
    return {
        "attnlab": __version__,
        "form": form,
        "classes": list(trained.classes),
        "max_tokens": trained.longest,
        "temperature": trained.temperature,
        "columns": trained.columns._asdict() if trained.columns else None,
        "base": {"name": config.model.name, "weights": record["data"].get("weights")},
        "config": {"model": _model_section(trained, form), "tuning": config.tuning.model_dump(), "data": data},
        "results": record["results"],
        "seed": record["seed"],
    }


def _model_section(trained: TunedClassifier, form: str) -> dict[str, Any]:
    """With the pooling and head that 'auto' became: the exported encoder does not say how it was trained."""
    section, model = trained.config.model.model_dump(), trained.model
    if form in (ENCODER_FORM, "weights") and isinstance(model, Classifier):
        section |= {"pooling": model.pooling, "head": "linear" if model.head.dense is None else "dense"}
    return section


def _may_write(folder: Path, overwrite: bool) -> None:
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not folder.is_dir():
        raise UserError(f"{folder} is a file: give a folder.")
    if not is_export(folder):
        raise UserError(f"{folder} is not empty and not an exported classifier: choose another --to.")
    if not overwrite:
        raise UserError(f"{folder} already exists: choose another --to, or replace it with --overwrite.")
