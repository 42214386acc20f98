"""How new settings are drawn and hopeless runs recognised: the parts of Optuna a sweep uses, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from attnlab.experiments.sweep.space import Axis, Choices

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.pruners import BasePruner
    from optuna.samplers import BaseSampler

STARTUP = 8  # trials a guided search draws at random before it trusts what it has seen
LOOKS = 2  # the first evaluation says little: none is ended before its second


def sampler(search: str, seed: int, number: int) -> BaseSampler:
    """The sampler of one trial: seeded by its number, so that no two workers draw alike."""
    from optuna.samplers import RandomSampler, TPESampler

    seed = seed * 1_000_003 + number
    if search == "guided":
        return TPESampler(seed=seed, n_startup_trials=STARTUP, constant_liar=True)
    return RandomSampler(seed=seed)


def pruner(name: str) -> BasePruner:
    from optuna.pruners import MedianPruner, NopPruner, SuccessiveHalvingPruner

    if name == "median":
        return MedianPruner(n_startup_trials=4, n_warmup_steps=LOOKS)
    return SuccessiveHalvingPruner(min_resource=LOOKS, reduction_factor=3) if name == "halving" else NopPruner()


def distributions(axes: Mapping[str, Axis]) -> dict[str, BaseDistribution]:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    def of(axis: Axis) -> BaseDistribution:
        if isinstance(axis, Choices):
            return CategoricalDistribution(axis.values)
        if axis.whole:
            return IntDistribution(int(axis.low), int(axis.high), log=axis.log)
        return FloatDistribution(float(axis.low), float(axis.high), log=axis.log)

    return {name: of(axis) for name, axis in axes.items()}
