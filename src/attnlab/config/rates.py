"""Learning rates to start from, by tuning method and optimizer: one table for every command. Free of torch."""

from __future__ import annotations

from typing import ClassVar

from attnlab.config.sections import OptimizerSection, option

METHOD_RATES = {
    "full": 5e-5,
    "last": 2e-4,
    "bitfit": 1e-3,
    "head": 1e-2,
    "prompt": 1e-2,
    "prefix": 5e-3,
    "ia3": 5e-3,
    **dict.fromkeys(("lora", "dora", "rslora", "loha", "lokr", "oft", "hra"), 5e-4),
}
"""With Adam and its relatives: the fewer weights are trained, the higher the rate."""
OPTIMIZER_FACTORS = {"sgd": 200, "asgd": 2000, "adagrad": 10, "adadelta": 20_000, "adamax": 2, "rmsprop": 0.2}
"""By how much the usual rate of another optimizer differs: rules of thumb, to start from."""


def usual_rate(method: str, optimizer: str) -> float:
    """Where to start with a tuning method and an optimizer; unknown names are refused elsewhere."""
    return METHOD_RATES.get(method, METHOD_RATES["full"]) * OPTIMIZER_FACTORS.get(optimizer.lower(), 1)


class RatedOptimizer(OptimizerSection):
    """An optimizer whose rate, unless given, follows from what it tunes."""

    topic: ClassVar[str] = OptimizerSection.topic
    lr: float | None = option(  # type: ignore[assignment]
        None, "Peak learning rate (default: the usual one of the tuning method and the optimizer).", gt=0
    )
