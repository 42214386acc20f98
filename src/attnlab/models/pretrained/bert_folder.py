"""Where a BERT lies: a folder, a run that made one, or a name as `attnlab models` knows them."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from attnlab.base.errors import UserError
from attnlab.models.pretrained.source import VARIABLE, model_folder

SHAPE = re.compile(r"(\d+)L[_-](\d+)[DH]|L-(\d+)_H-(\d+)", re.IGNORECASE)  # 4L_312D, L-2_H-128


def find_bert(name: str | Path) -> Path:
    """The folder that `name` means, downloaded if need be. Another model is never put in its place."""
    given = Path(name).expanduser()
    if given.is_dir():  # what is wrong with it is told by who reads it
        return given / "model" if (given / "run.json").is_file() else given
    try:
        return model_folder(str(name))
    except UserError as error:
        raise UserError(f"{str(error).rstrip('.')}{_alike(str(name))}.") from None


def _alike(name: str) -> str:
    """Folders of the shape that the name tells: other weights, so they are named and not taken."""
    wanted, root = SHAPE.search(name), os.environ.get(VARIABLE)
    if wanted is None or not root:
        return ""
    shape = tuple(int(number) for number in wanted.groups() if number)
    found = [str(file.parent) for file in sorted(Path(root).glob("*/config.json")) if _shape(file) == shape]
    return f" (of the same shape, but other weights: {', '.join(found)})" if found else ""


def _shape(config: Path) -> tuple[int, int] | None:
    try:
        found = json.loads(config.read_text(encoding="utf-8"))
        return found["num_hidden_layers"], found["hidden_size"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
