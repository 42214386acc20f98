"""Parameters files: safetensors, so that loading one runs no code, with a description of the model.

The description has the attention, the sizes, the characters and the preset of the weights, so a file says itself
which model it belongs to. A file that does not match what is asked for is refused in one sentence.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from attnlab.base.errors import UserError
from attnlab.base.files import write_bytes
from attnlab.runs.checkpoints import Tensors, load_weights, weights_of
from model import GPT, GPTConfig

KEY = "attnlab knowledge"


@dataclass(frozen=True)
class Params:
    """A parameters file that was read."""

    path: Path
    model: dict[str, str | int]
    characters: list[str]
    preset: str
    tensors: Tensors

    def config(self, dropout: float) -> GPTConfig:
        """The shape of its model."""
        return GPTConfig(
            vocab_size=len(self.characters),
            block_size=int(self.model["context"]),
            n_layer=int(self.model["layers"]),
            n_head=int(self.model["heads"]),
            n_embd=int(self.model["width"]),
            embd_pdrop=dropout,
            resid_pdrop=dropout,
            attn_pdrop=dropout,
            synthesizer=self.model["attention"] == "synthesizer",
            rotary=self.model["positions"] == "rotary",
        )

    def must_have(self, expected: Mapping[str, str | int | None], itos: Mapping[int, str], corpus: str) -> None:
        """Raise if a given value differs from the file's, or `corpus` has other characters."""
        for name, value in expected.items():
            if value is not None and self.model[name] != value:
                raise UserError(
                    f"{self.path}: expected {name} {value}, got {name} {self.model[name]}: "
                    "give the parameters file of such a model, or the options of this one."
                )
        now = list(itos.values())
        if self.characters != now:
            only = sorted(set(self.characters) ^ set(now))
            raise UserError(
                f"{self.path} was trained with another vocabulary than that of {corpus} ({len(self.characters)} "
                f"characters there, {len(now)} here; {only[0]!r} is in one of them only): give the text it was "
                "pretrained on."
            )

    def load(self, model: GPT) -> None:
        try:
            load_weights(model, self.tensors)
        except ValueError as error:
            raise UserError(f"{self.path}: {error}.") from None


def save_params(path: Path, model: GPT, itos: Mapping[int, str], preset: str) -> None:
    """Write the file completely or not at all."""
    description = {"model": model.config.described(), "characters": list(itos.values()), "preset": preset}
    write_bytes(path, save(weights_of(model), {KEY: json.dumps(description)}))


def read_params(path: Path) -> Params:
    if not path.is_file():
        raise UserError(f"{path} does not exist or is not a file: give one that --writing_params_path has written.")
    try:
        with safe_open(path, "pt") as file:
            description = json.loads((file.metadata() or {})[KEY])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            model = description["model"]
            if "positions" not in model:
                raise UserError(f"{path} was written by an earlier version of these scripts: train it again.")
            return Params(path, model, description["characters"], description["preset"], tensors)
    except (SafetensorError, OSError, KeyError, ValueError):
        raise UserError(f"{path} is not a parameters file: give one that --writing_params_path has written.") from None
