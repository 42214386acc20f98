"""All settings of a BERT's architecture, by the lab's names and those of Hugging Face's config.json."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from attnlab.attention import MixerShape, find_variant
from attnlab.base.errors import UserError, unknown

ACTIVATIONS = ("gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "silu", "swish")
VECTORS = ("cls", "pooler")
SOFTMAX = ("vanilla", "pieces")  # attention as BERT has it

HUGGING_FACE = {
    "vocabulary": "vocab_size",
    "width": "hidden_size",
    "layers": "num_hidden_layers",
    "heads": "num_attention_heads",
    "inside": "intermediate_size",
    "context": "max_position_embeddings",
    "types": "type_vocab_size",
    "activation": "hidden_act",
    "dropout": "hidden_dropout_prob",
    "attention_dropout": "attention_probs_dropout_prob",
    "classifier_dropout": "classifier_dropout",
    "norm_eps": "layer_norm_eps",
    "deviation": "initializer_range",
    "pad_id": "pad_token_id",
    "tied": "tie_word_embeddings",
}
OWN = ("attention", "classify_from")  # fields of the lab that Hugging Face does not have
MODEL_TYPE, OWN_MODEL_TYPE = "bert", "attnlab-bert"


@dataclass(frozen=True)
class BertConfig:
    """The defaults are BERT-base."""

    vocabulary: int = 30522
    width: int = 768
    layers: int = 12
    heads: int = 12
    inside: int = 3072
    """The width inside the MLP."""
    context: int = 512
    """The longest sequence: there is one learned vector per position."""
    types: int = 2
    """Number of segment types: first and second text."""
    activation: str = "gelu"
    dropout: float = 0.1
    attention_dropout: float = 0.1
    classifier_dropout: float | None = None
    """Before the classifier; None: as `dropout`."""
    norm_eps: float = 1e-12
    deviation: float = 0.02
    """Standard deviation of new weights."""
    pad_id: int = 0
    tied: bool = True
    """The head of masked words uses the word embeddings."""
    labels: tuple[str, ...] = ("LABEL_0", "LABEL_1")
    """Names of the classes."""
    attention: str = "vanilla"
    """Any bidirectional mixer of the lab, or the path of a .py file with your own."""
    classify_from: str = "cls"
    """cls: the last vector of [CLS]; pooler: the same after the tanh layer that `transformers` adds."""
    unpad: bool = True
    """Compute nothing for padding; the vectors there are then zero."""

    def __post_init__(self) -> None:
        for name in ("vocabulary", "layers", "inside", "types"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} is {getattr(self, name)}: it must be at least 1.")
        for name in ("dropout", "classifier_dropout"):
            if not 0.0 <= (getattr(self, name) or 0.0) < 1.0:
                raise UserError(f"{name} is {getattr(self, name)}: give a number from 0 up to, not including, 1.")
        if self.activation not in ACTIVATIONS:
            raise UserError(unknown("activation", self.activation, ACTIVATIONS))
        if self.classify_from not in VECTORS:
            raise UserError(unknown("vector to classify from", self.classify_from, VECTORS))
        if not self.labels:
            raise UserError("labels is empty: a classifier needs at least one class.")
        self.mixer()  # raises for an impossible shape
        find_variant(self.attention)

    def mixer(self) -> MixerShape:
        return MixerShape(self.width, self.heads, self.context, causal=False, dropout=self.attention_dropout)

    def changed(self, **changes: Any) -> BertConfig:
        """`labels` may be a number: the classes are then LABEL_0, LABEL_1 and so on."""
        names = [field.name for field in fields(self)]
        for name in changes:
            if name not in names:
                raise UserError(unknown("field of a BERT", name, names))
        labels = changes.get("labels")
        if isinstance(labels, int):
            changes["labels"] = label_names(labels)
        elif labels is not None:
            changes["labels"] = tuple(map(str, labels))
        return replace(self, **changes)

    def to_hugging_face(self, architectures: list[str]) -> dict[str, Any]:
        """The content of config.json. Another attention is another model type: `transformers` must not load it."""
        plain = self.attention in SOFTMAX
        return {
            "architectures": architectures,
            "model_type": MODEL_TYPE if plain else OWN_MODEL_TYPE,
            **{their_name: getattr(self, name) for name, their_name in HUGGING_FACE.items()},
            "id2label": {str(n): name for n, name in enumerate(self.labels)},
            "label2id": {name: n for n, name in enumerate(self.labels)},
            **{name: getattr(self, name) for name in OWN},
        }


def label_names(count: int) -> tuple[str, ...]:
    return tuple(f"LABEL_{n}" for n in range(count))


def read_config(path: Path, content: dict[str, Any], changes: dict[str, Any]) -> BertConfig:
    """The configuration in a config.json, with some fields changed; raises if it is not one of a BERT."""
    kind = content.get("model_type")
    if kind not in (MODEL_TYPE, OWN_MODEL_TYPE):
        raise UserError(f"{path}: expected a model of type 'bert', got {kind!r}: give the folder of a BERT.")
    fixed = {"position_embedding_type": "absolute", "is_decoder": False, "add_cross_attention": False}
    for name, value in fixed.items():
        if content.get(name, value) != value:
            raise UserError(f"{path}: expected {name} {value!r}, got {content[name]!r}: the lab's BERT has no other.")
    values = {
        name: content[their_name] for name, their_name in HUGGING_FACE.items() if content.get(their_name) is not None
    }
    values |= {name: content[name] for name in OWN if name in content and name not in changes}
    if str(values.get("attention", "")).endswith(".py"):  # a downloaded folder must not choose code to run
        raise UserError(f"{path} uses your own attention: give its file, attention={values['attention']!r}.")
    if "BertForSequenceClassification" in (content.get("architectures") or []):
        values.setdefault("classify_from", "pooler")
    try:
        names = content.get("id2label")
        if names:
            values["labels"] = tuple(str(names[key]) for key in sorted(names, key=int))
        elif "num_labels" in content:
            values["labels"] = label_names(content["num_labels"])
        return BertConfig(**values).changed(**changes)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    except (TypeError, ValueError, KeyError, IndexError, AttributeError, OverflowError):
        raise UserError(f"{path} has a value of the wrong type, such as text instead of a number.") from None
