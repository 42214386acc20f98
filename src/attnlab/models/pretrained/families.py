"""How families of encoders differ: which vector stands for a text, which head follows, what its weights are called.

A family's head is the one `AutoModelForSequenceClassification` builds for it, so that a tuned model can be
exported as a plain folder of `transformers`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Family:
    """A family's classification head; `names` maps its parts to transformers' names, empty if it has no such class."""

    pooling: str
    activation: str | None = None
    """Of a dense layer between vector and logits; None: no such layer."""
    names: Mapping[str, str] = field(default_factory=dict)
    masked: dict[str, str] = field(default_factory=dict)
    """The weights of the masked-language-model head: the lab's names to transformers'."""


def _masked(dense: str, norm: str, bias: str) -> dict[str, str]:
    return {
        "dense.weight": f"{dense}.weight",
        "dense.bias": f"{dense}.bias",
        "norm.weight": f"{norm}.weight",
        "norm.bias": f"{norm}.bias",
        "decoder.bias": bias,
    }


_BERT = _masked("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "cls.predictions.bias")
_LM_HEAD = _masked("lm_head.dense", "lm_head.layer_norm", "lm_head.bias")
_DISTILBERT = _masked("vocab_transform", "vocab_layer_norm", "vocab_projector.bias")
_FIRST = {"dense": "classifier.dense", "out": "classifier.out_proj"}
FAMILIES = {
    "bert": Family("pooler", None, {"out": "classifier"}, _BERT),
    "distilbert": Family("first", "relu", {"dense": "pre_classifier", "out": "classifier"}, _DISTILBERT),
    "roberta": Family("first", "tanh", _FIRST, _LM_HEAD),
    "xlm-roberta": Family("first", "tanh", _FIRST),
    "camembert": Family("first", "tanh", _FIRST, _LM_HEAD),
    "mpnet": Family("first", "tanh", _FIRST, _LM_HEAD),
    "electra": Family("first", "gelu", _FIRST),
    "deberta-v2": Family("first", "gelu", {"dense": "pooler.dense", "out": "classifier"}),
    "gpt2": Family("last"),  # transformers' head for it has no biases
    "t5": Family("mean"),
    "mt5": Family("mean"),
}
OTHER = Family("mean")


def family_of(model_type: str) -> Family:
    return FAMILIES.get(model_type, OTHER)
