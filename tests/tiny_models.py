"""Tiny models of several families, with random weights, as folders that transformers loads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

WORDS = [
    "the",
    "a",
    "film",
    "is",
    "was",
    "good",
    "bad",
    "not",
    "very",
    "plot",
    "actors",
    "and",
    "no",
    "yes",
    "what",
    "question",
    "it",
    "this",
    "of",
    "to",
    "run",
    "##ning",
    "##s",
]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def tiny_model(folder: Path, family: str = "bert", masked: bool = False, **changes: Any) -> Path:
    """A model of `family` in `folder` with a WordPiece tokenizer; `masked`: with its head for masked words."""
    import transformers

    vocabulary = SPECIAL + WORDS
    torch.manual_seed(0)
    config, kind, masked_kind = FAMILIES[family]
    values = {"vocab_size": len(vocabulary), "pad_token_id": 0} | config | changes
    settings = getattr(transformers, f"{kind}Config")(**values)
    name = masked_kind if masked else f"{kind}Model"
    getattr(transformers, name)(settings).save_pretrained(folder)
    _tokenizer(folder, vocabulary)
    return folder


_BERT = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 40,
}
FAMILIES: dict[str, tuple[dict[str, Any], str, str]] = {
    "bert": (_BERT, "Bert", "BertForMaskedLM"),
    "roberta": (_BERT | {"type_vocab_size": 1}, "Roberta", "RobertaForMaskedLM"),
    "mpnet": (_BERT, "MPNet", "MPNetForMaskedLM"),
    "electra": (_BERT | {"embedding_size": 16}, "Electra", "ElectraForMaskedLM"),
    "distilbert": (
        {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 24, "max_position_embeddings": 40},
        "DistilBert",
        "DistilBertForMaskedLM",
    ),
    "t5": (
        {"d_model": 16, "d_kv": 8, "num_layers": 2, "num_heads": 2, "d_ff": 24, "decoder_start_token_id": 0},
        "T5",
        "T5ForConditionalGeneration",
    ),
}


def _tokenizer(folder: Path, vocabulary: list[str]) -> None:
    from transformers import BertTokenizerFast

    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    BertTokenizerFast(vocab=str(folder / "vocab.txt"), model_max_length=36).save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
