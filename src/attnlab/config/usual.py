"""Where to start with a tuning method and a model: rate, epochs and batch, in one table.

Rates are for Adam and its relatives: the fewer weights are trained, and the smaller the model, the higher the rate.
"""

from __future__ import annotations

import math
from typing import NamedTuple

SIZES = (10e6, 60e6, 200e6)
"""Parameters below which an encoder is tiny, small or of base size; from the last on it is large."""
BATCHES = (32, 32, 32, 16)
FEW_ROWS, FEW_BATCH = 1000, 16
LEAST_STEPS, MOST_EPOCHS = 150, 20
"""Few rows are read more often, until there are so many steps: with a handful of steps a model stays at chance."""


class Usual(NamedTuple):
    """For a tiny, a small, a base and a large model."""

    rates: tuple[float, float, float, float]
    epochs: tuple[int, int, int, int]


_ADAPTER = Usual((5e-3, 1e-3, 5e-4, 2e-4), (8, 5, 3, 3))
USUAL = {
    "full": Usual((5e-4, 1e-4, 5e-5, 2e-5), (5, 3, 3, 3)),
    "last": Usual((5e-4, 3e-4, 2e-4, 1e-4), (6, 4, 4, 3)),
    "bitfit": Usual((5e-3, 2e-3, 1e-3, 5e-4), (10, 6, 5, 4)),
    "contrastive": Usual((2e-4, 1e-4, 5e-5, 2e-5), (5, 3, 2, 2)),
    "head": Usual((1e-2, 1e-2, 1e-2, 5e-3), (20, 20, 20, 20)),
    "prompt": Usual((2e-2, 1e-2, 1e-2, 1e-2), (10, 8, 6, 5)),
    "prefix": Usual((1e-2, 5e-3, 5e-3, 5e-3), (10, 8, 6, 5)),
    "ia3": Usual((2e-2, 1e-2, 5e-3, 5e-3), (10, 8, 6, 5)),
    **dict.fromkeys(("lora", "dora", "rslora", "loha", "lokr", "oft", "hra"), _ADAPTER),
}
OPTIMIZER_FACTORS = {"sgd": 200, "asgd": 2000, "adagrad": 10, "adadelta": 20_000, "adamax": 2, "rmsprop": 0.2}
"""By how much the usual rate of another optimizer differs: rules of thumb, to start from."""


def _size(parameters: float) -> int:
    return sum(parameters >= limit for limit in SIZES)


def usual_rate(method: str, optimizer: str, parameters: float) -> float:
    """Unknown names are refused elsewhere."""
    rates = USUAL.get(method, USUAL["full"]).rates
    return rates[_size(parameters)] * OPTIMIZER_FACTORS.get(optimizer.lower(), 1)


def usual_batch(parameters: float, rows: int) -> int:
    """Examples per batch."""
    batch = BATCHES[_size(parameters)]
    return min(batch, FEW_BATCH) if rows < FEW_ROWS else batch


def usual_epochs(method: str, parameters: float, steps_per_epoch: int) -> int:
    """Of few rows more, so that the weights change at all."""
    epochs = USUAL.get(method, USUAL["full"]).epochs[_size(parameters)]
    return max(epochs, min(MOST_EPOCHS, math.ceil(LEAST_STEPS / max(1, steps_per_epoch))))
