"""A tuned classifier as a model of transformers, with the same logits."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import nn

from attnlab.base.errors import UserError
from attnlab.models.pretrained.classifier import ACTIVATIONS, Classifier
from attnlab.models.pretrained.families import Family, family_of
from attnlab.models.pretrained.label_words import LabelWords
from attnlab.models.pretrained.load import import_transformers, quietly
from attnlab.models.pretrained.tuning.adapters import ADAPTERS, merge_adapters
from attnlab.models.pretrained.tuning.prompt import Prompted
from attnlab.runs.checkpoints import Tensors

INSTEAD = "export it with --weights-only"


def fits_transformers(model: Classifier, method: str) -> bool:
    """Whether transformers has a classifier with this pooling and head."""
    body: Any = model.body
    if method in ("prompt", "prefix"):
        return False
    family = family_of(body.config.model_type)
    expected = ACTIVATIONS[family.activation] if family.activation else None
    return bool(family.names) and model.pooling == family.pooling and model.head.activation is expected


def without_adapters(model: Classifier, method: str) -> Tensors:
    """What is on top of the encoder, or inside it (a prompt, a prefix), by name; adapters are merged into it."""
    if method in ADAPTERS:
        merge_adapters(model)
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    return {name: t for name, t in weights.items() if name.startswith(("head.", "body.prompt")) or ".prefix." in name}


def save_body(model: Classifier, folder: Path) -> None:
    """The encoder alone, as transformers stores it."""
    body: Any = model.body.body if isinstance(model.body, Prompted) else model.body
    weights = {name: tensor for name, tensor in body.state_dict().items() if ".prefix." not in name}
    body.save_pretrained(folder, state_dict=weights)


def to_transformers(model: Classifier | LabelWords, method: str, classes: Sequence[str]) -> Any:
    """A model that `transformers` loads without the lab; raises where there is none. Changes `model`."""
    if method in ("prompt", "prefix"):
        raise UserError(f"a trained {method} is not part of a plain folder of transformers: {INSTEAD}.")
    if method in ADAPTERS:
        merge_adapters(model)
    if isinstance(model, LabelWords):
        return model.model
    body: Any = model.body
    family = family_of(body.config.model_type)
    _check_head(model, body.config.model_type, family)
    return _with_weights(model, family, classes)


def _check_head(model: Classifier, kind: str, family: Family) -> None:
    """Pooling and head must be those of transformers' class for the family."""
    if not family.names:
        raise UserError(f"transformers has no classifier of this kind for a {kind} model: {INSTEAD}.")
    expected = ACTIVATIONS[family.activation] if family.activation else None
    if model.pooling != family.pooling or model.head.activation is not expected:
        head = "dense" if expected else "linear"
        raise UserError(
            f"transformers' classifier for a {kind} model reads the {family.pooling} vector with a {head} head, and "
            f"this one the {model.pooling} vector with a {'dense' if model.head.dense else 'linear'} head: train with "
            f"--pooling {family.pooling} --head {head}, or {INSTEAD}."
        )


def _with_weights(model: Classifier, family: Family, classes: Sequence[str]) -> Any:
    """The family's class with the weights of body and head; every name must match."""
    transformers = import_transformers()
    body: Any = model.body
    config = copy.deepcopy(body.config)
    config.id2label = dict(enumerate(classes))
    config.label2id = {name: index for index, name in enumerate(classes)}
    config.problem_type = "single_label_classification"
    with quietly():
        target = transformers.AutoModelForSequenceClassification.from_config(config)
    weights = {f"{target.base_model_prefix}.{name}": tensor for name, tensor in body.state_dict().items()}
    parts: dict[str, nn.Module | None] = {"dense": model.head.dense, "out": model.head.out}
    for part, name in family.names.items():
        layer = parts[part]
        assert layer is not None
        weights |= {f"{name}.{key}": tensor for key, tensor in layer.state_dict().items()}
    target.load_state_dict(weights)
    return target.eval()
