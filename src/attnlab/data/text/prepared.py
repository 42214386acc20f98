"""The tokens of long texts in files that are mapped into memory, prepared once per text and way of reading it.

    CACHE/tokens/KEY/tokens.bin     the tokens of training and validation, one after the other
    CACHE/tokens/KEY/about.json     the vocabulary, the two lengths, and the type of a token

The key is the checksum of the text's content with how it was read, so a changed text is prepared anew. The folders can
be deleted at any time while no run uses them.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from attnlab.base import console
from attnlab.base.errors import UserError
from attnlab.base.files import read_json, sha256, sync, whole_folder, write_text
from attnlab.data.tokenizers.vocabulary import Vocabulary

LONG = 2**26  # bytes of text
FORMAT = 1
TYPES = (np.uint8, np.int16, np.int32)
TOKENS, ABOUT = "tokens.bin", "about.json"


@dataclass(frozen=True)
class Prepared:
    vocabulary: Vocabulary
    tokens: Iterator[tuple[np.ndarray, bool]]
    """Pieces in their order, each with whether it belongs to training."""


def cache_folder() -> Path:
    """ATTNLAB_CACHE, else attnlab in XDG_CACHE_HOME or in ~/.cache."""
    if own := os.environ.get("ATTNLAB_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "attnlab"


def mapped(
    path: Path, how: tuple[Any, ...], prepare: Callable[[], Prepared]
) -> tuple[Vocabulary, np.ndarray, np.ndarray]:
    """Vocabulary, training tokens and validation tokens of a text; `how` is all that decides them besides the text."""
    key = hashlib.sha256(json.dumps([FORMAT, sha256(path), *how]).encode()).hexdigest()[:32]
    folder = cache_folder() / "tokens" / key
    opened = _opened(folder)
    if opened is None:
        console.say(f"{path} is long: its tokens are prepared once, in {folder}.")
        _write(folder, prepare())
        opened = _opened(folder)
        assert opened is not None
    return opened


def _write(folder: Path, prepared: Prepared) -> None:
    kind = next(kind for kind in TYPES if len(prepared.vocabulary) - 1 <= np.iinfo(kind).max)
    counts = {True: 0, False: 0}
    try:
        with whole_folder(folder) as partial:
            with (partial / TOKENS).open("wb") as file:
                for ids, training in prepared.tokens:
                    ids.astype(kind).tofile(file)
                    counts[training] += len(ids)
            sync(partial / TOKENS)
            about = {
                "vocabulary": prepared.vocabulary.to_dict(),
                "train": counts[True],
                "dev": counts[False],
                "type": np.dtype(kind).name,
            }
            write_text(partial / ABOUT, json.dumps(about, ensure_ascii=False))
    except OSError as error:
        raise UserError(
            f"{folder} cannot be written ({error.strerror}): name another folder for tokens in ATTNLAB_CACHE."
        ) from None


def _opened(folder: Path) -> tuple[Vocabulary, np.ndarray, np.ndarray] | None:
    """What was prepared; None where nothing was, or where it is damaged."""
    try:
        about = read_json(folder / ABOUT)
        vocabulary = Vocabulary.from_dict(about["vocabulary"])
        tokens = np.memmap(folder / TOKENS, np.dtype(about["type"]), "c")  # private: nobody writes to the file
        train, dev = int(about["train"]), int(about["dev"])
    except (UserError, OSError, KeyError, TypeError, ValueError, AttributeError):
        return None
    return (vocabulary, tokens[:train], tokens[train:]) if len(tokens) == train + dev else None
