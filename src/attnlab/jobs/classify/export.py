"""A tuned classifier as a folder to share: a transformers model, or the trained weights only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from attnlab.base.errors import UserError
from attnlab.base.files import whole_folder, write_text
from attnlab.data.tasks.catalog import ABOUT as TASKS
from attnlab.jobs.classify.card import card
from attnlab.models.pretrained.classifier import Classifier
from attnlab.models.pretrained.label_words import LabelWords
from attnlab.models.pretrained.load import quietly
from attnlab.models.pretrained.to_transformers import to_transformers
from attnlab.models.pretrained.tuned import ABOUT, WEIGHTS, TunedClassifier, is_export, load_run
from attnlab.runs import read_record
from attnlab.runs.checkpoints import weights_of
from attnlab.version import __version__


def export(run: Path, folder: Path, weights_only: bool = False, overwrite: bool = False) -> str:
    """Write `folder` completely or not at all; returns its form: 'transformers', 'words' or 'weights'."""
    _may_write(folder, overwrite)
    record = read_record(run)
    if record["kind"] == "classify" and not record.get("results"):
        raise UserError(f"{run} is not finished, so it has no scores to export: finish it with 'attnlab resume {run}'.")
    trained = load_run(run)
    model = trained.model
    assert isinstance(model, Classifier | LabelWords)
    form = "weights" if weights_only else "words" if isinstance(model, LabelWords) else "transformers"
    plain = None if weights_only else to_transformers(model, trained.config.tuning.method, trained.classes)
    about = _about(trained, form, record)
    try:
        with whole_folder(folder) as partial:
            if plain is None:
                save_file(weights_of(model), partial / WEIGHTS)
            else:
                _save_plain(plain, trained, partial)
            write_text(partial / "README.md", card(trained, form, record))
            write_text(partial / ABOUT, json.dumps(about, indent=1, ensure_ascii=False) + "\n")
            for path in partial.iterdir():  # weight files are readable by their owner only
                path.chmod((partial / ABOUT).stat().st_mode)
    except OSError as error:
        raise UserError(f"{folder} cannot be written: {error.strerror or error}.") from None
    return form


def _save_plain(plain: Any, trained: TunedClassifier, folder: Path) -> None:
    trained.tokenizer.model_max_length = trained.longest
    with quietly():
        plain.save_pretrained(folder)
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
        "columns": trained.columns._asdict() if trained.columns else None,
        "base": {"name": config.model.name, "weights": record["data"]["weights"]},
        "config": {"model": config.model.model_dump(), "tuning": config.tuning.model_dump(), "data": data},
        "results": record["results"],
        "seed": record["seed"],
    }


def _may_write(folder: Path, overwrite: bool) -> None:
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not folder.is_dir():
        raise UserError(f"{folder} is a file: give a folder.")
    if not is_export(folder):
        raise UserError(f"{folder} is not empty and not an exported classifier: choose another --to.")
    if not overwrite:
        raise UserError(f"{folder} already exists: choose another --to, or replace it with --overwrite.")
