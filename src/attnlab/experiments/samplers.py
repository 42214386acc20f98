"""The parts of Optuna a sweep uses: how settings are drawn, poor runs recognised, and the importance of settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from attnlab.config.search_axes import Axis, Choices, varied
from attnlab.experiments.results import SweepResults

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.pruners import BasePruner
    from optuna.samplers import BaseSampler

STARTUP = 8  # trials a guided search draws at random first
LOOKS = 2  # evaluations before a run may be pruned: the first says little
ENOUGH = 8  # finished cells below which importances would be noise


def sampler(search: str, seed: int, number: int) -> BaseSampler:
    """The sampler of one trial, seeded by its number, so that no two workers draw the same."""
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


def importances(results: SweepResults) -> dict[str, float]:
    """Shares by setting, the most important first, by Optuna's PED-ANOVA (Watanabe et al. 2023).

    Empty where there are too few trials or only one setting varies.
    """
    names = varied(results.axes)
    if len(results.finished) < ENOUGH or len(names) < 2:
        return {}
    import optuna

    drawn = distributions({name: results.axes[name] for name in names})
    study = optuna.create_study(direction="maximize" if results.measure.sign > 0 else "minimize")
    for row in results.finished:
        settings = {name: row.settings[name] for name in names}
        study.add_trial(optuna.create_trial(params=settings, distributions=drawn, value=results.score(row).mean))
    try:
        return {name: float(share) for name, share in optuna.importance.get_param_importances(study).items()}
    except (ValueError, RuntimeError):  # all scores equal: nothing matters
        return {}
