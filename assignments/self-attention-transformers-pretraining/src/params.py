"""Parameters files: safetensors, so that loading one runs no code, with a description of the model.

The description has the attention, the sizes and the characters of the weights. A file that does not match the
model is refused in one sentence that names the difference.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from attnlab.base.errors import UserError
from attnlab.base.files import write_bytes
from attnlab.runs.checkpoints import Tensors, load_weights, weights_of
from model import GPT

KEY = "attnlab knowledge"


def save_params(path: Path, model: GPT, itos: Mapping[int, str]) -> None:
    """Write the file completely or not at all."""
    description = {"model": model.config.described(), "characters": [itos[n] for n in range(len(itos))]}
    write_bytes(path, save(weights_of(model.lab), {KEY: json.dumps(description)}))


def load_params(path: Path, model: GPT, itos: Mapping[int, str], corpus: str) -> None:
    """Load the weights of a file into a model of the same kind; `corpus` names the text of its characters."""
    description, tensors = _read(path)
    for name, expected in model.config.described().items():
        saved = description["model"].get(name)
        if saved != expected:
            raise UserError(
                f"{path}: expected {name} {expected}, got {name} {saved}: "
                "give the parameters file of such a model, or the options of this one."
            )
    then, now = description["characters"], [itos[n] for n in range(len(itos))]
    if then != now:
        only = sorted(set(then) ^ set(now))
        raise UserError(
            f"{path} was trained with another vocabulary than that of {corpus} ({len(then)} characters there, "
            f"{len(now)} here; {only[0]!r} is in one of them only): give the text it was pretrained on."
        )
    try:
        load_weights(model.lab, tensors)
    except ValueError as error:
        raise UserError(f"{path}: {error}.") from None


def _read(path: Path) -> tuple[dict[str, Any], Tensors]:
    if not path.is_file():
        raise UserError(f"{path} does not exist or is not a file: give one that --writing_params_path has written.")
    try:
        with safe_open(path, "pt") as file:
            description = json.loads((file.metadata() or {})[KEY])
            return description, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, KeyError, ValueError):
        raise UserError(f"{path} is not a parameters file: give one that --writing_params_path has written.") from None
