"""Make a classifier learn in one of several ways. What does not learn is frozen, and not saved with a run."""

from __future__ import annotations

from typing import Any

from torch import nn

from attnlab.base.errors import UserError
from attnlab.models.pretrained.classifier import Classifier
from attnlab.models.pretrained.label_words import LabelWords
from attnlab.models.pretrained.tuning.adapters import ADAPTERS, add_adapter
from attnlab.models.pretrained.tuning.prefix import add_prefix
from attnlab.models.pretrained.tuning.prompt import Prompted

AFTER = ("final_layer_norm", "pooler", "norm", "ln_f")
"""What families call the parts behind their last block."""


def tune(
    model: Classifier | LabelWords,
    method: str,
    *,
    length: int = 128,
    rank: int = 8,
    alpha: float = 16.0,
    dropout: float = 0.0,
    layers: int = 2,
) -> None:
    """Freeze and add what `method` says, in place."""
    if method == "full":
        return
    own_head = isinstance(model, Classifier)
    model.requires_grad_(False)
    if method == "head":
        if not own_head:
            raise UserError("--tune head: a model that answers with words has no head of its own: use prompt or lora.")
        if model.new_pooler:
            raise UserError("--tune head: the model has no pooler, and a new one would not learn: use --pooling mean.")
    elif method == "last":
        for layer in _last_layers(model, layers):
            layer.requires_grad_(True)
    elif method == "bitfit":
        _biases(model.body)
    elif method == "prompt":
        _prompt(model, length)
    elif method == "prefix":
        add_prefix(model.body, length)
    elif method in ADAPTERS:
        add_adapter(model.body if own_head else model.model, method, rank, alpha, dropout)
    if isinstance(model, Classifier):
        model.head.requires_grad_(True)
        if model.new_pooler:
            model.body.pooler.requires_grad_(True)
    model.given = frozenset(name for name, weight in model.named_parameters() if not weight.requires_grad)


def learning(model: nn.Module) -> int:
    """How many parameters learn."""
    return sum(weight.numel() for weight in model.parameters() if weight.requires_grad)


def _prompt(model: Classifier | LabelWords, length: int) -> None:
    model.body = Prompted(model.body, length)


def _biases(body: nn.Module) -> None:
    """Ben Zaken et al. 2022: biases alone."""
    biases = [weight for name, weight in body.named_parameters() if name.endswith("bias") and weight.ndim == 1]
    if not biases:
        raise UserError("--tune bitfit: this model has no biases: use lora or prompt.")
    for weight in biases:
        weight.requires_grad_(True)


def _last_layers(model: Classifier | LabelWords, count: int) -> list[nn.Module]:
    """The last blocks of the body (of a text-to-text model: of its decoder too), and all that comes after them."""
    stacks: list[Any] = [model.body] if isinstance(model, Classifier) else [model.body, model.model.get_decoder()]
    found: list[nn.Module] = []
    for stack in stacks:
        parts = list(stack.named_modules())
        name, blocks = next(((n, m) for n, m in parts if isinstance(m, nn.ModuleList)), ("", nn.ModuleList()))
        if count > len(blocks):
            raise UserError(f"--last-layers: the model has {len(blocks)} layers, not {count}.")
        found += list(blocks)[-count:]
        found += [part for path, part in parts if path.rpartition(".")[2] in AFTER and not path.startswith(f"{name}.")]
    return found
