"""Masked words beside classification for a model of the hub: an adapter for its tokenizer, and a second head."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.base.errors import UserError
from attnlab.base.randomness import random_untouched
from attnlab.data.encoded import encode
from attnlab.data.tokenizers.wordpiece import Encoded
from attnlab.models.bert.config import ACTIVATIONS, BertConfig
from attnlab.models.bert.heads import MaskedHead, MaskedOutput
from attnlab.models.pretrained.classifier import HEAD_STD, Classifier
from attnlab.models.pretrained.families import family_of
from attnlab.models.pretrained.load import LoadedClassifier

BEGIN = {"Ġ": True, "▁": True, "##": False}
"""How families mark pieces: with a sign where a word begins, or (BERT) where it continues."""


class HubPieces:
    """A tokenizer of the hub with the interface that masking expects."""

    def __init__(self, tokenizer: Any) -> None:
        if tokenizer.mask_token_id is None:
            raise UserError("--joint-mlm: the model's tokenizer has no piece for a masked word: use a BERT-like model.")
        self.tokenizer = tokenizer
        self.mask_id, self.pad_id = int(tokenizer.mask_token_id), int(tokenizer.pad_token_id)
        self.special_ids = frozenset(tokenizer.all_special_ids)

    def __len__(self) -> int:
        return len(self.tokenizer)

    @cached_property
    def inside(self) -> list[bool]:
        """For every id, whether the piece continues the word before it."""
        pieces = self.tokenizer.convert_ids_to_tokens(range(len(self)))
        sign = max(BEGIN, key=lambda mark: sum(piece.startswith(mark) for piece in pieces))
        return [piece.startswith(sign) != BEGIN[sign] for piece in pieces]

    def encode(self, text: str, pair: str | None = None, longest: int | None = None) -> Encoded:
        return encode(self.tokenizer, [text], [pair], longest or self.tokenizer.model_max_length)[0]


class JointClassifier(nn.Module):
    """One body, two heads: with `masked_labels` it returns the loss of the masked words, else class logits."""

    base_weights: frozenset[str] = frozenset()

    def __init__(self, classifier: Classifier, masked: MaskedHead) -> None:
        super().__init__()
        self.classifier, self.masked = classifier, masked

    def forward(self, masked_labels: Tensor | None = None, **inputs: Tensor) -> Tensor | MaskedOutput:
        if masked_labels is None:
            return self.classifier(**inputs)
        return self.masked.output(self.classifier.hidden(**inputs), masked_labels)


def with_masked_words(loaded: LoadedClassifier) -> tuple[JointClassifier, str | None]:
    """The second head, tied to the words' embeddings, with the checkpoint's own weights where it has them.

    Returns a note as well if it has none and the head is new.
    """
    model = loaded.model
    if not isinstance(model, Classifier) or not hasattr(model.body, "embeddings"):
        raise UserError("--joint-mlm: masked words need a BERT-like model with a classification head.")
    config: Any = model.body.config
    words: nn.Embedding = model.body.get_input_embeddings()  # type: ignore[operator]
    name = getattr(config, "hidden_act", None) or getattr(config, "activation", None)
    activation = name if name in ACTIVATIONS else "gelu"
    head = MaskedHead(
        BertConfig(
            width=words.embedding_dim,
            heads=1,
            vocabulary=words.num_embeddings,
            activation=activation,
            norm_eps=getattr(config, "layer_norm_eps", 1e-12),
        ),
        words,
    )
    nn.init.normal_(head.dense.weight, std=HEAD_STD)
    nn.init.zeros_(head.dense.bias)
    nn.init.zeros_(head.decoder.bias)
    pretrained = _fill_head(head, loaded.folder, family_of(config.model_type).masked)
    return JointClassifier(model, head), None if pretrained else (
        f"{loaded.folder.name} has no head for masked words: a new one is trained, tied to its embeddings."
    )


def _fill_head(head: MaskedHead, folder: Path, names: dict[str, str]) -> bool:
    """Fill the head from the checkpoint; False if it has no such head."""
    state = _tensors(folder, set(names.values()))
    if not names or set(names.values()) - set(state):
        return False
    with torch.no_grad():
        for name, name_in_file in names.items():
            head.get_parameter(name).copy_(state[name_in_file])
    return True


def _tensors(folder: Path, names: set[str]) -> dict[str, Tensor]:
    from safetensors import safe_open

    tensors: dict[str, Tensor] = {}
    for path in folder.glob("*.safetensors"):
        with safe_open(path, "pt") as file:
            tensors |= {name: file.get_tensor(name) for name in names & set(file.keys())}
    if not tensors and (path := folder / "pytorch_model.bin").is_file():
        state = torch.load(path, map_location="cpu", weights_only=True)
        tensors = {name: state[name] for name in names & set(state)}
    return tensors


def joint_model(loaded: LoadedClassifier, method: str) -> JointClassifier:
    """The classifier with a second head; a note is added to `loaded` if the head is new."""
    if method == "head":
        raise UserError("--joint-mlm: with --tune head the body learns nothing from masked words: use --tune full.")
    with random_untouched():  # the rest of the run draws the same numbers as without the second head
        both, note = with_masked_words(loaded)
    if note:
        loaded.notes.append(note)
    both.base_weights = frozenset(f"classifier.{name}" for name in loaded.model.base_weights)
    return both
