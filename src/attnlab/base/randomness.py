"""The random generators of torch, numpy and Python: seeded, saved, restored, left unchanged."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

Tensors = dict[str, Tensor]


def random_tensors() -> tuple[Tensors, dict[str, Any]]:
    """The states of torch's, numpy's and Python's generators."""
    kind, keys, position, has_gauss, gauss = np.random.get_state(legacy=True)
    tensors = {"torch": torch.get_rng_state(), "numpy": torch.from_numpy(np.asarray(keys).copy())}
    for n in range(torch.cuda.device_count() if torch.cuda.is_initialized() else 0):
        tensors[f"cuda:{n}"] = torch.cuda.get_rng_state(n)
    version, internal, gauss_next = random.getstate()
    plain = {
        "numpy": [kind, int(position), int(has_gauss), float(gauss)],
        "python": [version, list(internal), gauss_next],
    }
    return tensors, plain


def load_random(tensors: Tensors, plain: dict[str, Any]) -> None:
    torch.set_rng_state(tensors["torch"])
    for name in tensors:
        if name.startswith("cuda:"):
            torch.cuda.set_rng_state(tensors[name], int(name[5:]))
    kind, position, has_gauss, gauss = plain["numpy"]
    np.random.set_state((kind, tensors["numpy"].numpy(), position, has_gauss, gauss))
    version, internal, gauss_next = plain["python"]
    random.setstate((version, tuple(internal), gauss_next))


@contextmanager
def random_untouched() -> Iterator[None]:
    """Restore the generators after the block, so evaluating more often does not change training."""
    before = random_tensors()
    try:
        yield
    finally:
        load_random(*before)


def seed_everything(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def seed_process(seed: int, rank: int) -> None:
    """Give each process other random numbers for dropout; the first keeps those of a single process."""
    if rank:
        seed_everything(int(np.random.SeedSequence([seed, rank]).generate_state(1)[0]))
