"""A folder that `attnlab export` made, read again.

attnlab.json             classes, lengths, columns, base model, how it was tuned
model.safetensors, …     a plain folder of transformers ("transformers", or "words" for one that says the class)
weights.safetensors      or the trained weights alone, which belong to a base model ("weights")
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from attnlab.base.errors import UserError
from attnlab.config import check
from attnlab.config.classify import ClassifyConfig
from attnlab.data.tasks.tables import Columns
from attnlab.models.pretrained.load import import_transformers, load_classifier, load_tokenizer, quietly
from attnlab.models.pretrained.tuned import Trained, load_tuned, must_be_base
from attnlab.runs.checkpoints import load_weights

ABOUT, WEIGHTS = "attnlab.json", "weights.safetensors"


def is_export(path: Path) -> bool:
    return (path / ABOUT).is_file()


def load_export(folder: Path) -> Trained:
    """The classifier in an exported folder; weights alone are put onto their base model."""
    try:
        about: dict[str, Any] = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        form, classes, columns = about["form"], tuple(about["classes"]), about["columns"]
        config = check(ClassifyConfig, about["config"])
        longest, base = int(about["max_tokens"]), about["base"]
        model, tokenizer, origin = _load(folder, form, classes, config, base["weights"])
    except (KeyError, TypeError, ValueError, OSError, RuntimeError) as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0].rstrip(".")
        raise UserError(f"{folder} cannot be read as an exported classifier ({reason}): export it again.") from None
    return Trained(folder, config, model, tokenizer, classes, longest, Columns(**columns) if columns else None, origin)


def _load(
    folder: Path, form: str, classes: tuple[str, ...], config: ClassifyConfig, base: str
) -> tuple[nn.Module, Any, Path]:
    if form == "weights":
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        loaded = load_tuned(config, classes)
        must_be_base(loaded.folder, base, folder)
        try:
            load_weights(loaded.model, load_file(folder / WEIGHTS))
        except SafetensorError as error:
            raise ValueError(f"{WEIGHTS}: {error}") from None
        return loaded.model, loaded.tokenizer, loaded.folder
    if form == "words":
        loaded = load_classifier(str(folder.resolve()), classes, head="words")
        return loaded.model, loaded.tokenizer, folder
    transformers = import_transformers()
    with quietly():
        model = transformers.AutoModelForSequenceClassification.from_pretrained(folder, local_files_only=True)
    return Logits(model), load_tokenizer(transformers, folder), folder


class Logits(nn.Module):
    """A model of transformers, called as the lab's own are."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, **inputs: Tensor) -> Tensor:
        found: Tensor = self.model(**inputs).logits
        return found
