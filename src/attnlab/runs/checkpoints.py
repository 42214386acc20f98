"""Checkpoints: written completely or not at all, verified when read, without pickle.

    checkpoints/step-00000200/
        model.safetensors       the weights
        optimizer.safetensors   the optimizer's tensors, by parameter name
        random.safetensors      the generators' states
        state.json              step, epoch, position in the epoch, best so far, ...
        checksums.json          sha256 of each of these, written last
    checkpoints/best-00000150/  the weights with the best dev score, and that score

A checkpoint is written under a temporary name, flushed to disk, then renamed. One that does not match its checksums
is not used, and the one before it is; the process that holds the run's lock renames it to `damaged-…`. A reader changes
nothing: a training may be replacing at any moment what it reads, and then it reads again.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn

from attnlab.base import console
from attnlab.base.errors import UserError
from attnlab.base.files import sha256, whole_folder, write_new
from attnlab.base.leftovers import clean, remove, remove_folder, replaced
from attnlab.base.machine.facts import is_out_of_memory

Tensors = dict[str, Tensor]
T = TypeVar("T")

ATTEMPTS, PAUSE = 200, 0.02  # how often a reader begins anew beside a training, and the seconds between


@dataclass(frozen=True)
class Checkpoint:
    """The content of a checkpoint, on the CPU."""

    path: Path
    tensors: dict[str, Tensors]
    state: dict[str, Any]


class Damaged(Exception):
    """A checkpoint that does not match its checksums or cannot be read."""


class Checkpoints:
    """The checkpoints of one run, for the process that trains it. `newest`, `best` and `steps` change nothing."""

    def __init__(self, folder: Path, keep: int = 2) -> None:
        self.folder = folder
        self.keep = keep

    def save(self, step: int, tensors: Mapping[str, Tensors], state: Mapping[str, Any]) -> Path:
        """Write the checkpoint of a step, then delete all but the last `keep`."""
        path = self._write(f"step-{step:08d}", tensors, state)
        for old in self.steps()[: -self.keep]:
            remove_folder(old)
        return path

    def save_best(self, step: int, model: Tensors, state: Mapping[str, Any]) -> Path:
        """Write the best weights so far, then delete the previous best."""
        path = self._write(f"best-{step:08d}", {"model": model}, state)
        for old in self._named("best-"):
            if old != path:
                remove_folder(old)
        return path

    def repaired(self) -> Checkpoint | None:
        """The newest undamaged checkpoint, after cleaning up what a killed process left and renaming damaged ones."""
        clean(self.folder)
        for path in reversed(self.steps()):
            try:
                return read_checkpoint(path)
            except Damaged as damage:
                aside = path.with_name(f"damaged-{path.name}")
                remove(aside)
                path.rename(aside)
                console.warn(f"{path} is damaged ({damage}): renamed to {aside.name}, using the one before.")
        return None

    def newest(self) -> Checkpoint | None:
        """The newest undamaged checkpoint; damaged ones are reported."""
        return _stable(self._newest)

    def best(self) -> Checkpoint | None:
        """The weights with the best dev score."""
        return _stable(self._best)

    def best_or_newest(self) -> Checkpoint | None:
        """The weights that a run is used with: the best on dev, else the last."""
        return _stable(lambda: self._best() or self._newest())

    def steps(self) -> list[Path]:
        """The folders of all checkpoints that were kept, oldest first."""
        return self._named("step-")

    def keep_weights(self) -> None:
        """After the run: keep the best weights, or the last if none were evaluated; delete the rest."""
        last = None if self._named("best-") else self.newest()
        if last is not None and set(last.tensors) != {"model"}:
            self._write(last.path.name, {"model": last.tensors["model"]}, last.state)
        for path in self.steps():
            if last is None or path != last.path:
                remove_folder(path)

    def _newest(self) -> Checkpoint | None:
        for path in reversed(self.steps()):
            try:
                return _read_still(path)
            except Damaged as damage:
                console.warn(f"{path} is damaged ({damage}): using the one before.")
        return None

    def _best(self) -> Checkpoint | None:
        kept = self._named("best-")
        return _read_still(kept[-1]) if kept else None

    def _named(self, prefix: str) -> list[Path]:
        """In order; one that a kill left between two renames under its temporary name."""
        paths = {path.name: path for path in self.folder.glob(f"{prefix}*")} if self.folder.is_dir() else {}
        paths |= {final.name: path for path, final in replaced(self.folder) if final.name.startswith(prefix)}
        return [paths[name] for name in sorted(paths)]

    def _write(self, name: str, tensors: Mapping[str, Tensors], state: Mapping[str, Any]) -> Path:
        final = self.folder / name
        with whole_folder(final) as partial:
            for stem, group in tensors.items():
                write_new(partial / f"{stem}.safetensors", save(group))
            write_new(partial / "state.json", json.dumps(state, indent=1).encode())
            checksums = {path.name: sha256(path) for path in sorted(partial.iterdir())}
            write_new(partial / "checksums.json", json.dumps(checksums, indent=1).encode())
        return final


class _Replaced(Exception):
    """A checkpoint was replaced or deleted while it was read."""


def _stable(read: Callable[[], T]) -> T:
    """What `read` returns once no training changes what it reads meanwhile."""
    for _ in range(ATTEMPTS):
        try:
            return read()
        except _Replaced:
            time.sleep(PAUSE)
    raise UserError("the checkpoints are replaced faster than they can be read: try again when the training is slower.")


def _read_still(path: Path) -> Checkpoint:
    """A checkpoint; `_Replaced` if its folder is not the same one before and after."""
    before = _identity(path)
    try:
        return read_checkpoint(path)
    except Damaged:
        if before is None or _identity(path) != before:
            raise _Replaced from None
        raise


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_ctime_ns


def read_checkpoint(path: Path) -> Checkpoint:
    """A checkpoint, verified by its checksums before anything in it is used."""
    try:
        checksums = json.loads((path / "checksums.json").read_text(encoding="utf-8"))
        if not isinstance(checksums, dict) or "state.json" not in checksums:
            raise Damaged("checksums.json has no checksums")
        for name, expected in checksums.items():
            if "/" in name or sha256(path / name) != expected:
                raise Damaged(f"{name} does not match its checksum")
        tensors = {
            name.removesuffix(".safetensors"): load_file(path / name)
            for name in checksums
            if name.endswith(".safetensors")
        }
        state = json.loads((path / "state.json").read_text(encoding="utf-8"))
        if not isinstance(state, dict):
            raise Damaged("state.json has no state")
    except FileNotFoundError as error:
        raise Damaged(f"{Path(error.filename or 'a file').name} is missing") from None
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:  # a file that vanishes is a RuntimeError
        if is_out_of_memory(error):
            raise
        raise Damaged(f"unreadable: {error}") from None
    return Checkpoint(path, tensors, state)


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


def weights_checksum(model: nn.Module) -> str:
    """The checksum of a model's weights: names, types, shapes and values."""
    checksum = hashlib.sha256()
    for name, tensor in sorted(weights_of(model).items()):
        checksum.update(f"{name} {tensor.dtype} {tuple(tensor.shape)} ".encode())
        checksum.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return checksum.hexdigest()


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
    try:
        checkpoint = Checkpoints(run / "checkpoints").best_or_newest()
    except Damaged as damage:
        raise UserError(f"{run}: its best checkpoint is damaged ({damage}).") from None
    if checkpoint is None:
        raise UserError(f"{run} has no checkpoint yet: wait for it, or resume it with 'attnlab resume {run}'.")
    try:
        load_weights(model, checkpoint.tensors["model"])
    except KeyError:
        raise UserError(f"{run}: {checkpoint.path.name} has no weights.") from None
    except ValueError as error:
        raise UserError(f"{run}: {error}.") from None
