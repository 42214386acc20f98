"""The best weights of a run, put into a model."""

from __future__ import annotations

from pathlib import Path

from torch import nn

from attnlab.errors import UserError
from attnlab.training.checkpoints import Checkpoints, Damaged, load_weights


def load_best(model: nn.Module, run: Path) -> None:
    """Put a run's best weights on dev into `model`, or the last ones if nothing was evaluated."""
    checkpoints = Checkpoints(run / "checkpoints")
    try:
        found = checkpoints.best() or checkpoints.newest()
    except Damaged as damage:
        raise UserError(f"{run}: its best checkpoint is damaged ({damage}).") from None
    if found is None:
        raise UserError(f"{run} has no checkpoint yet: let it train, or go on with 'attnlab resume {run}'.")
    try:
        load_weights(model, found.tensors["model"])
    except ValueError as error:
        raise UserError(f"{run}: {error}.") from None
