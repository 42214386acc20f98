"""Prepare a classifier for one of several ways of tuning. Weights that are not trained are frozen and not saved."""

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
"""Names that families give to the parts after their last block."""


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
    """Freeze and add weights for `method`, in place."""
    if method == "full":
        return
    has_head = isinstance(model, Classifier)
    if method in ("head", "contrastive"):
        if not has_head:
            raise UserError(f"--tune {method}: a model that answers with words has no head: use prompt or lora.")
        if model.new_pooler:
            raise UserError(
                f"--tune {method}: the model has no pooler, and a new one stays untrained: use --pooling mean."
            )
    if method == "contrastive":
        model.head.requires_grad_(False)  # it is fitted, and stored with the body
        return
    model.requires_grad_(False)
    if method == "last":
        for layer in _last_layers(model, layers):
            layer.requires_grad_(True)
    elif method == "bitfit":
        _unfreeze_biases(model.body)
    elif method == "prompt":
        model.body = Prompted(model.body, length)
    elif method == "prefix":
        add_prefix(model.body, length)
    elif method in ADAPTERS:
        add_adapter(model.body if has_head else model.model, method, rank, alpha, dropout)
    if isinstance(model, Classifier):
        model.head.requires_grad_(True)
        if model.new_pooler:
            model.body.pooler.requires_grad_(True)
    model.base_weights = frozenset(name for name, weight in model.named_parameters() if not weight.requires_grad)


def learning(model: nn.Module) -> int:
    """How many parameters are trained."""
    return sum(weight.numel() for weight in model.parameters() if weight.requires_grad)


def _unfreeze_biases(body: nn.Module) -> None:
    """Train the biases alone. Ben Zaken et al. 2022."""
    biases = [weight for name, weight in body.named_parameters() if name.endswith("bias") and weight.ndim == 1]
    if not biases:
        raise UserError("--tune bitfit: this model has no biases: use lora or prompt.")
    for weight in biases:
        weight.requires_grad_(True)


def _last_layers(model: Classifier | LabelWords, count: int) -> list[nn.Module]:
    """The last blocks of the body (of a text-to-text model: of its decoder too), and all parts after them."""
    stacks: list[Any] = [model.body] if isinstance(model, Classifier) else [model.body, model.model.get_decoder()]
    last: list[nn.Module] = []
    for stack in stacks:
        parts = list(stack.named_modules())
        name, blocks = next(((n, m) for n, m in parts if isinstance(m, nn.ModuleList)), ("", nn.ModuleList()))
        if count > len(blocks):
            raise UserError(f"--last-layers: the model has {len(blocks)} layers, got {count}.")
        last += list(blocks)[-count:]
        last += [part for path, part in parts if path.rpartition(".")[2] in AFTER and not path.startswith(f"{name}.")]
    return last
