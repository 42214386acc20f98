"""The whole state of a training run as tensors and plain values, and back.

Together they make a resumed run identical to the bit: weights, optimizer, every random generator, and the position in
the data.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.base.randomness import load_random, random_tensors
from attnlab.distributed.sharding import full_tensor, shard_like
from attnlab.distributed.team import Processes

Tensors = dict[str, Tensor]


@dataclass
class TrainState:
    """The progress of a run, in plain values that fit in a JSON file."""

    step: int = 0  # optimizer steps made
    epoch: int = 0  # the epoch the next batch is from
    batch: int = 0  # its position in that epoch
    examples: int = 0
    tokens: int = 0  # real tokens seen, without padding
    positions: int = 0  # tokens and padding
    seconds: float = 0.0  # spent in training steps
    evaluated_at: int = -1  # the step of the last evaluation
    best: float | None = None
    best_step: int = 0
    worse: int = 0  # evaluations since the best one
    stopped_early: bool = False
    metrics_position: int = 0
    last: dict[str, float] = field(default_factory=dict)  # the last evaluation's values

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def optimizer_tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> Tensors:
    """The optimizer's tensors, named `parameter/key`."""
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    return {
        f"{names[id(parameter)]}/{key}": full_tensor(torch.as_tensor(value)).detach().cpu().contiguous()
        for parameter, entries in optimizer.state.items()
        for key, value in entries.items()
        if value is not None
    }


def load_optimizer(model: nn.Module, optimizer: torch.optim.Optimizer, tensors: Tensors) -> None:
    """Load the optimizer's tensors, on each parameter's device."""
    parameters = dict(model.named_parameters())
    order = {id(p): n for n, p in enumerate(p for group in optimizer.param_groups for p in group["params"])}
    states: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        parameter, _, key = name.rpartition("/")
        mine = parameters[parameter]
        states.setdefault(order[id(mine)], {})[key] = shard_like(tensor.clone(), mine)
    optimizer.load_state_dict({**optimizer.state_dict(), "state": states})


def random_of_all(processes: Processes) -> tuple[Tensors, dict[str, Any]]:
    """The generator states of all processes: those of the first, and the others' under `process N/`."""
    tensors, plain = random_tensors()
    packed = {name: tensor.numpy() for name, tensor in tensors.items()}
    for n, (more, words) in enumerate(processes.gather((packed, plain))[1:], start=1):
        tensors |= {f"process {n}/{name}": torch.from_numpy(array) for name, array in more.items()}
        plain |= {f"process {n}/{name}": value for name, value in words.items()}
    return tensors, plain


def load_random_of(rank: int, tensors: Tensors, plain: dict[str, Any]) -> None:
    """Load the states of one process from those of `random_of_all`."""
    prefix = f"process {rank}/" if rank else ""
    names = [name for name in tensors if name.startswith(prefix) and "/" not in name.removeprefix(prefix)]
    words = ("numpy", "python")
    load_random(
        {name.removeprefix(prefix): tensors[name] for name in names}, {name: plain[prefix + name] for name in words}
    )
