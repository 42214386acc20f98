"""A WordPiece tokenizer as files: read from a Hugging Face folder, and written in a form that `transformers` reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from attnlab.base.errors import UserError
from attnlab.base.files import read_json, read_text, write_text
from attnlab.data.tokenizers.wordpiece import CLS, INSIDE, LONGEST_WORD, SEP, SPECIAL, UNKNOWN, WordPiece
from attnlab.data.tokenizers.wordpiece_text import Words


def read_tokenizer(folder: Path) -> WordPiece:
    """From tokenizer.json, which is complete, or from vocab.txt and tokenizer_config.json (upper and lower case)."""
    if (folder / "tokenizer.json").is_file():
        try:
            return _from_json(folder / "tokenizer.json")
        except (TypeError, KeyError, AttributeError):
            raise UserError(f"{folder / 'tokenizer.json'} is no tokenizer file: fetch it again.") from None
    if (folder / "vocab.txt").is_file():
        settings = folder / "tokenizer_config.json"
        return _from_list(folder / "vocab.txt", read_json(settings) if settings.is_file() else {})
    raise UserError(f"{folder} has no vocabulary: expected a vocab.txt or a tokenizer.json in it.")


def save_tokenizer(tokenizer: WordPiece, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    words = tokenizer.words
    settings = {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": words.lowercase,
        "strip_accents": words.strip_accents,
        "tokenize_chinese_chars": words.ideographs,
        "cls_token": "[CLS]",
        "mask_token": "[MASK]",
        "pad_token": "[PAD]",
        "sep_token": "[SEP]",
        "unk_token": "[UNK]",
    }
    write_text(folder / "vocab.txt", "".join(f"{piece}\n" for piece in tokenizer.vocabulary))
    write_text(folder / "tokenizer_config.json", json.dumps(settings, indent=1) + "\n")
    write_text(folder / "tokenizer.json", json.dumps(_to_json(tokenizer), ensure_ascii=False) + "\n")


def _from_list(path: Path, settings: dict[str, Any]) -> WordPiece:
    pieces = read_text(path).removesuffix("\n").split("\n")
    words = Words(
        settings.get("do_lower_case", True), settings.get("strip_accents"), settings.get("tokenize_chinese_chars", True)
    )
    return _build(path, [piece.removesuffix("\r") for piece in pieces], words)


def _from_json(path: Path) -> WordPiece:
    content = read_json(path)
    model, normalizer = content.get("model") or {}, content.get("normalizer") or {}
    kinds = (model.get("type", "WordPiece"), normalizer.get("type"))
    if kinds != ("WordPiece", "BertNormalizer") or not isinstance(model.get("vocab"), dict):
        raise UserError(f"{path} is not a BERT tokenizer ({kinds[0]}, {kinds[1]}): give the folder of a BERT model.")
    expected = {"unk_token": UNKNOWN, "continuing_subword_prefix": INSIDE, "max_input_chars_per_word": LONGEST_WORD}
    for field, value in expected.items():
        if model.get(field, value) != value:
            raise UserError(f"{path} has {field} {model[field]!r}: expected BERT's {value!r}.")
    if not normalizer.get("clean_text", True):
        raise UserError(f"{path} keeps control characters: expected clean_text true, as in BERT.")
    pieces = sorted(model["vocab"], key=model["vocab"].__getitem__)
    if list(map(model["vocab"].get, pieces)) != list(range(len(pieces))):
        raise UserError(f"{path} has gaps or duplicates in the ids of its pieces: expected 0, 1, 2, ...")
    extra = [token["content"] for token in content.get("added_tokens", []) if token["content"] not in SPECIAL]
    if extra:
        raise UserError(f"{path} adds the piece {extra[0]!r}: expected only BERT's five special pieces.")
    words = Words(
        normalizer.get("lowercase", True), normalizer.get("strip_accents"), normalizer.get("handle_chinese_chars", True)
    )
    return _build(path, pieces, words)


def _build(path: Path, pieces: list[str], words: Words) -> WordPiece:
    """The tokenizer; an error names the file."""
    try:
        return WordPiece(pieces, words)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def _to_json(tokenizer: WordPiece) -> dict[str, Any]:
    """The format of the `tokenizers` library."""
    words = tokenizer.words

    def special(name: str, kind: int) -> dict[str, Any]:
        return {"SpecialToken": {"id": name, "type_id": kind}}

    def text(name: str, kind: int) -> dict[str, Any]:
        return {"Sequence": {"id": name, "type_id": kind}}

    single = [special(CLS, 0), text("A", 0), special(SEP, 0)]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": id_,
                "content": tokenizer.vocabulary[id_],
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for id_ in sorted(tokenizer.special_ids)
        ],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": words.ideographs,
            "strip_accents": words.strip_accents,
            "lowercase": words.lowercase,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": single,
            "pair": [*single, text("B", 1), special(SEP, 1)],
            "special_tokens": {
                name: {"id": name, "ids": [tokenizer.ids[name]], "tokens": [name]} for name in (CLS, SEP)
            },
        },
        "decoder": {"type": "WordPiece", "prefix": INSIDE, "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": UNKNOWN,
            "continuing_subword_prefix": INSIDE,
            "max_input_chars_per_word": LONGEST_WORD,
            "vocab": tokenizer.ids,
        },
    }
