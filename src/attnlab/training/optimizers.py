"""Optimizers by name, and which parameters get weight decay.

Weight decay applies to matrices; biases, norms and embeddings have none. With Muon, the matrices inside the model
use Muon; embeddings, the output layer, biases and norms use AdamW.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.base.randomness import Tensors
from attnlab.config import OptimizerSection, ScheduleSection
from attnlab.distributed.team import Processes
from attnlab.training.muon import Muon

Groups = list[dict[str, Any]]
Make = Callable[[Groups, OptimizerSection], torch.optim.Optimizer]


def _adam_family(kind: type[torch.optim.Optimizer], **extra: Any) -> Make:
    return lambda groups, s: kind(groups, lr=s.lr, betas=(s.beta1, s.beta2), **extra)  # type: ignore[call-arg]


def _plain(kind: type[torch.optim.Optimizer]) -> Make:
    return lambda groups, s: kind(groups, lr=s.lr)  # type: ignore[call-arg]


def _with_momentum(kind: type[torch.optim.Optimizer]) -> Make:
    return lambda groups, s: kind(groups, lr=s.lr, momentum=s.momentum)  # type: ignore[call-arg]


MAKERS: dict[str, Make] = {
    "adamw": _adam_family(torch.optim.AdamW, fused=True),
    "adam": _adam_family(torch.optim.Adam, fused=True),
    "adamax": _adam_family(torch.optim.Adamax),
    "nadam": _adam_family(torch.optim.NAdam),
    "radam": _adam_family(torch.optim.RAdam),
    "sgd": _with_momentum(torch.optim.SGD),
    "rmsprop": _with_momentum(torch.optim.RMSprop),
    "adagrad": _plain(torch.optim.Adagrad),
    "adadelta": _plain(torch.optim.Adadelta),
    "asgd": _plain(torch.optim.ASGD),
    "adafactor": _plain(torch.optim.Adafactor),
    "muon": _adam_family(Muon, fused=True),
}


def make_optimizer(model: nn.Module, settings: OptimizerSection, precision: str = "fp32") -> torch.optim.Optimizer:
    """The optimizer named in `settings` for the parameters of `model` that learn, in a run of that precision."""
    optimizer = MAKERS[settings.name](parameter_groups(model, settings), settings)
    if isinstance(optimizer, Muon) and precision == "bf16":
        optimizer.iterate_in = torch.bfloat16
    for group in optimizer.param_groups:
        group["peak_lr"] = group["lr"]  # multiplied by the schedule's factor
    return optimizer


def parameter_groups(model: nn.Module, settings: OptimizerSection) -> Groups:
    """Learning parameters in up to three groups: Muon's matrices, others with decay, others without."""
    matrices, decayed, plain = [], [], []
    embeddings, output = _embeddings(model), _output_layer(model)
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        inner_matrix = parameter.ndim == 2 and parameter not in embeddings
        if settings.name == "muon" and inner_matrix and parameter is not output:
            matrices.append((name, parameter))
        elif parameter.ndim >= 2 and parameter not in embeddings:
            decayed.append((name, parameter))
        else:
            plain.append((name, parameter))
    groups: Groups = [
        {"params": matrices, "weight_decay": settings.weight_decay, "lr": settings.matrix_lr, "muon": True},
        {"params": decayed, "weight_decay": settings.weight_decay},
        {"params": plain, "weight_decay": 0.0},
    ]
    return [part for group in groups if group["params"] for part in _by_depth(group, model, settings)]


def _by_depth(group: dict[str, Any], model: nn.Module, settings: OptimizerSection) -> Groups:
    """A group with the rate lr·d^(top - depth) for each depth, if d is not 1 (Howard and Ruder 2018)."""
    if settings.layer_decay == 1.0:
        return [group]
    depths, rate = _depths(model), group.get("lr", settings.lr)
    top = max(depths.values())
    parts: dict[int, dict[str, Any]] = {}
    for name, parameter in group["params"]:
        depth = depths[name]
        part = group | {"params": [], "lr": rate * settings.layer_decay ** (top - depth)}
        parts.setdefault(depth, part)["params"].append((name, parameter))
    return [parts[depth] for depth in sorted(parts)]


def _depths(model: nn.Module) -> dict[str, int]:
    """Depth of each parameter: 0 below the layers (embeddings), 1, 2, ... for the layers, one more above them."""
    stacks = {name: module for name, module in model.named_modules() if isinstance(module, nn.ModuleList)}
    stack = max(stacks, key=lambda name: len(stacks[name]), default=None)
    count = len(stacks[stack]) if stack is not None else 0
    depths: dict[str, int] = {}
    below = True
    for name, _ in model.named_parameters():
        inside = stack is not None and name.startswith(f"{stack}.")
        below = below and not inside and count > 0
        if inside:
            depths[name] = int(name.removeprefix(f"{stack}.").partition(".")[0]) + 1
        else:
            depths[name] = 0 if below or "embed" in name else count + 1
    return depths


class _ByIdentity:
    """A set of tensors that compares by identity (== on tensors compares their values)."""

    def __init__(self, tensors: list[torch.Tensor]) -> None:
        self._ids = {id(tensor) for tensor in tensors}

    def __contains__(self, tensor: torch.Tensor) -> bool:
        return id(tensor) in self._ids


def _embeddings(model: nn.Module) -> _ByIdentity:
    return _ByIdentity([m.weight for m in model.modules() if isinstance(m, nn.Embedding)])


def _output_layer(model: nn.Module) -> torch.Tensor | None:
    """The last linear layer: its rows are classes or tokens, which need not be orthogonal."""
    linear = [module for module in model.modules() if isinstance(module, nn.Linear)]
    return linear[-1].weight if linear else None


SHAPES: dict[str, Callable[[float, float], float]] = {
    "constant": lambda p, decay: 1.0,
    "linear": lambda p, decay: 1.0 - p,
    "cosine": lambda p, decay: 0.5 * (1.0 + math.cos(math.pi * p)),
    "wsd": lambda p, decay: min(1.0, (1.0 - p) / decay),
}


@dataclass(frozen=True)
class Schedule:
    """The factor of the learning rate for a step of a run of `steps` steps."""

    settings: ScheduleSection
    steps: int

    def __call__(self, step: int, tokens: int) -> float:
        """The factor for the next step, after `step` steps and `tokens` tokens."""
        settings = self.settings
        if settings.warmup_tokens is not None:
            # The step at which the warm-up ends is not known in advance: decay runs over the whole length.
            rise = min(1.0, (tokens + 1) / max(1, settings.warmup_tokens))
            return rise * self._shape(step, self.steps)
        warmup = self.warmup_steps
        if step < warmup:
            return (step + 1) / warmup
        return self._shape(step - warmup, self.steps - warmup)

    @property
    def warmup_steps(self) -> int:
        if self.settings.warmup_ratio is not None:
            return round(self.settings.warmup_ratio * self.steps)
        return self.settings.warmup_steps or 0

    def _shape(self, done: int, length: int) -> float:
        """The factor after `done` of the `length` steps that follow the warm-up."""
        settings = self.settings
        if settings.name == "constant":
            return 1.0
        if settings.name == "wave":
            return max(settings.final, SHAPES["cosine"](done / (settings.wave_steps or max(1, length)), 1.0))
        progress = done / max(1, length)
        # The decay of 'wsd' is a share of the whole run; here progress is counted after the warm-up.
        decay = settings.decay_ratio * self.steps / max(1, self.steps - self.warmup_steps)
        return settings.final + (1.0 - settings.final) * SHAPES[settings.name](min(1.0, progress), decay)


def optimizer_tensors(model: nn.Module, optimizer: torch.optim.Optimizer, processes: Processes) -> Tensors:
    """The optimizer's tensors, named `parameter/key`."""
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    return {
        f"{names[id(parameter)]}/{key}": processes.full_tensor(torch.as_tensor(value)).detach().cpu().contiguous()
        for parameter, entries in optimizer.state.items()
        for key, value in entries.items()
        if value is not None
    }


def load_optimizer(model: nn.Module, optimizer: torch.optim.Optimizer, tensors: Tensors, processes: Processes) -> None:
    """Load the optimizer's tensors, on each parameter's device."""
    parameters = dict(model.named_parameters())
    order = {id(p): n for n, p in enumerate(p for group in optimizer.param_groups for p in group["params"])}
    states: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        parameter, _, key = name.rpartition("/")
        target = parameters[parameter]
        states.setdefault(order[id(target)], {})[key] = processes.shard_like(tensor.clone(), target)
    optimizer.load_state_dict({**optimizer.state_dict(), "state": states})
