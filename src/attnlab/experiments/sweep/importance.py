"""How much each setting matters, by Optuna's PED-ANOVA (Watanabe et al. 2023), where there are trials enough."""

from __future__ import annotations

import optuna

from attnlab.experiments.sweep.results import Results
from attnlab.experiments.sweep.samplers import distributions
from attnlab.experiments.sweep.space import Choices

ENOUGH = 8  # finished cells below which the numbers would be noise


def importances(results: Results) -> dict[str, float]:
    """Shares by setting, the most important first; nothing where there are too few trials or one setting."""
    varied = [name for name, axis in results.axes.items() if not isinstance(axis, Choices) or len(axis.values) > 1]
    if len(results.finished) < ENOUGH or len(varied) < 2:
        return {}
    drawn = distributions({name: results.axes[name] for name in varied})
    study = optuna.create_study(direction="maximize" if results.measure.sign > 0 else "minimize")
    for row in results.finished:
        study.add_trial(
            optuna.create_trial(
                params={name: row.settings[name] for name in varied}, distributions=drawn, value=row.mean.mean
            )
        )
    try:
        return {name: float(share) for name, share in optuna.importance.get_param_importances(study).items()}
    except (ValueError, RuntimeError):  # all scores alike: nothing matters
        return {}
