"""Checkpoints: written completely or not at all, verified when read, without pickle.

    checkpoints/step-00000200/
        model.safetensors       the weights
        optimizer.safetensors   the optimizer's tensors, by parameter name
        random.safetensors      the generators' states
        state.json              step, epoch, position in the epoch, best so far, ...
        checksums.json          sha256 of each of these, written last
    checkpoints/best-00000150/  the weights with the best dev score, and that score

A checkpoint is written under a temporary name, flushed to disk, then renamed. One that does not match its checksums
is renamed to `damaged-…` and the one before it is used.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save
from torch import Tensor, nn

from attnlab.base import console
from attnlab.base.errors import UserError
from attnlab.base.files import sha256, sync, write_text

Tensors = dict[str, Tensor]


@dataclass(frozen=True)
class Checkpoint:
    """The content of a checkpoint, on the CPU."""

    path: Path
    tensors: dict[str, Tensors]
    state: dict[str, Any]


class Damaged(Exception):
    """A checkpoint that does not match its checksums or cannot be read."""


class Checkpoints:
    """The checkpoints of one run."""

    def __init__(self, folder: Path, keep: int = 2) -> None:
        self.folder = folder
        self.keep = keep

    def save(self, step: int, tensors: Mapping[str, Tensors], state: Mapping[str, Any]) -> Path:
        """Write the checkpoint of a step, then delete all but the last `keep`."""
        path = self._write(f"step-{step:08d}", tensors, state)
        for old in self._named("step-")[: -self.keep]:
            shutil.rmtree(old)
        return path

    def save_best(self, step: int, model: Tensors, state: Mapping[str, Any]) -> Path:
        """Write the best weights so far, then delete the previous best."""
        path = self._write(f"best-{step:08d}", {"model": model}, state)
        for old in self._named("best-"):
            if old != path:
                shutil.rmtree(old)
        return path

    def newest(self) -> Checkpoint | None:
        """The newest undamaged checkpoint; damaged ones are reported and renamed."""
        for path in reversed(self._named("step-")):
            try:
                return read_checkpoint(path)
            except Damaged as damage:
                aside = path.with_name(f"damaged-{path.name}")
                shutil.rmtree(aside, ignore_errors=True)
                path.rename(aside)
                console.warn(f"{path} is damaged ({damage}): renamed to {aside.name}, using the one before.")
        return None

    def best(self) -> Checkpoint | None:
        """The weights with the best dev score."""
        found = self._named("best-")
        return read_checkpoint(found[-1]) if found else None

    def steps(self) -> list[Path]:
        """The folders of all checkpoints that were kept, oldest first."""
        return self._named("step-")

    def keep_weights(self) -> None:
        """After the run: keep the best weights, or the last if none were evaluated; delete the rest."""
        last = None if self._named("best-") else self.newest()
        if last is not None and set(last.tensors) != {"model"}:
            self._write(last.path.name, {"model": last.tensors["model"]}, last.state)
        for path in self._named("step-"):
            if last is None or path != last.path:
                shutil.rmtree(path)

    def _named(self, prefix: str) -> list[Path]:
        for old in self.folder.glob(".*.old"):  # killed between two renames: the old one is intact
            final = self.folder / old.name[1:-4]
            if not final.exists():
                old.rename(final)
        return sorted(self.folder.glob(f"{prefix}*")) if self.folder.is_dir() else []

    def _write(self, name: str, tensors: Mapping[str, Tensors], state: Mapping[str, Any]) -> Path:
        self.folder.mkdir(exist_ok=True)
        final, temporary = self.folder / name, self.folder / f".{name}.tmp"
        shutil.rmtree(temporary, ignore_errors=True)  # from a process that was killed while writing
        temporary.mkdir()
        try:
            for stem, group in tensors.items():
                _write_bytes(temporary / f"{stem}.safetensors", save(group))
            _write_bytes(temporary / "state.json", json.dumps(state, indent=1).encode())
            checksums = {path.name: sha256(path) for path in sorted(temporary.iterdir())}
            write_text(temporary / "checksums.json", json.dumps(checksums, indent=1))
            sync(temporary)
            if final.exists():  # the same step again: the old one is deleted after the new one is in place
                os.replace(final, self.folder / f".{name}.old")
            os.replace(temporary, final)
            sync(self.folder)
            shutil.rmtree(self.folder / f".{name}.old", ignore_errors=True)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        return final


def read_checkpoint(path: Path) -> Checkpoint:
    """A checkpoint, verified by its checksums before anything in it is used."""
    try:
        checksums = json.loads((path / "checksums.json").read_text(encoding="utf-8"))
        for name, expected in checksums.items():
            if sha256(path / name) != expected:
                raise Damaged(f"{name} does not match its checksum")
        tensors = {
            name.removesuffix(".safetensors"): load_file(path / name)
            for name in checksums
            if name.endswith(".safetensors")
        }
        state = json.loads((path / "state.json").read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise Damaged(f"{Path(error.filename).name} is missing") from None
    except (OSError, ValueError, AttributeError) as error:
        raise Damaged(f"unreadable: {error}") from None
    return Checkpoint(path, tensors, state)


def _write_bytes(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def weights_of(model: torch.nn.Module) -> Tensors:
    """The model's tensors by name; tied weights are stored once.

    A model may name in `base_weights` the weights that stay those of its base model: they are loaded from there.
    """
    seen: set[int] = set()
    kept: Tensors = {}
    base_weights: frozenset[str] = getattr(model, "base_weights", frozenset())
    for name, tensor in model.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            seen.add(id(tensor))
            if name not in base_weights:
                kept[name] = tensor.detach().cpu().contiguous()
    return kept


def load_weights(model: torch.nn.Module, weights: Tensors) -> None:
    """Load stored weights into a model of the same shape; tied weights follow."""
    expected = weights_of(model)
    missing, unexpected = sorted(set(expected) - set(weights)), sorted(set(weights) - set(expected))
    differing = [n for n in expected if n in weights and expected[n].shape != weights[n].shape]
    if missing or unexpected or differing:
        name = (differing or missing or unexpected)[0]
        what = f"{name} is {'missing from' if missing else 'only in'} the file"
        if differing:
            file_shape, model_shape = tuple(weights[name].shape), tuple(expected[name].shape)
            what = f"{name} is {file_shape} in the file and {model_shape} in the model"
        raise ValueError(f"expected the weights of this architecture, got others: {what}")
    model.load_state_dict(weights, strict=False)


def load_best(model: nn.Module, run: Path) -> None:
    """Load a run's best weights on dev into `model`, or the last ones if nothing was evaluated."""
    checkpoints = Checkpoints(run / "checkpoints")
    try:
        checkpoint = checkpoints.best() or checkpoints.newest()
    except Damaged as damage:
        raise UserError(f"{run}: its best checkpoint is damaged ({damage}).") from None
    if checkpoint is None:
        raise UserError(f"{run} has no checkpoint yet: wait for it, or resume it with 'attnlab resume {run}'.")
    try:
        load_weights(model, checkpoint.tensors["model"])
    except ValueError as error:
        raise UserError(f"{run}: {error}.") from None
