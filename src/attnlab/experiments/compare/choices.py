"""Models, tuning methods and optimizers to compare, each with settings of its own. Free of torch.

On a command line 'full, head:lr=1e-2:epochs=20'; in a recipe a list of names, or a mapping:

    methods: {full: {optimizer.lr: 5e-5}, head: {optimizer.lr: 1e-2}}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from attnlab.config import OptimizerSection, option
from attnlab.config.axes import dotted
from attnlab.config.classify import ClassifyConfig

AXES = {"models": ("model", "name"), "methods": ("tuning", "method"), "optimizers": ("optimizer", "name")}
"""Of a classification: what each list of choices is about."""
RATE = ("optimizer", "lr")

RATES = {
    "full": 5e-5,
    "last": 2e-4,
    "bitfit": 1e-3,
    "head": 1e-2,
    "prompt": 1e-2,
    "prefix": 5e-3,
    "ia3": 5e-3,
    "lora": 5e-4,
    "dora": 5e-4,
    "rslora": 5e-4,
    "loha": 5e-4,
    "lokr": 5e-4,
    "oft": 5e-4,
    "hra": 5e-4,
}
"""The usual learning rate of a method with Adam and its relatives: the fewer weights learn, the higher."""
TIMES = {"sgd": 200, "asgd": 2000, "adagrad": 10, "adadelta": 20_000, "adamax": 2, "rmsprop": 0.2}
"""By how much the usual rate of another optimizer differs: rules of thumb, for a start."""


class RatedOptimizer(OptimizerSection):
    """An optimizer whose rate depends on what it tunes."""

    topic: ClassVar[str] = OptimizerSection.topic
    lr: float | None = option(  # type: ignore[assignment]
        None, "Peak learning rate (default: the usual one of each tuning method and optimizer).", gt=0
    )


def rated_optimizer() -> RatedOptimizer:
    """As classification has it, but for the rate."""
    given = ClassifyConfig.model_fields["optimizer"].default.model_dump(exclude_unset=True, exclude={"lr"})
    return RatedOptimizer(**given)


def usual_rate(method: str, optimizer: str) -> float:
    """Where to start with a method and an optimizer, if nothing is said; names that are none are refused elsewhere."""
    return RATES.get(method, RATES["full"]) * TIMES.get(optimizer.lower(), 1)


def parse_choices(value: Any) -> dict[str, dict[str, Any]]:
    """{name: {setting: value}} from any of the ways to write it."""
    if isinstance(value, Mapping):
        named = {str(name): dotted(_settings(name, own)) for name, own in value.items()}
    else:
        parts = value if isinstance(value, list | tuple) else str(value).split(",")
        pairs = [_typed(str(part)) for part in parts if str(part).strip()]
        named = dict(pairs)
        if len(named) < len(pairs):
            raise ValueError("the same name stands there twice: a comparison needs different ones")
    if "" in named:
        raise ValueError("a name is missing before ':'")
    return named


def _settings(name: Any, own: Any) -> dict[str, Any]:
    if own is not None and not isinstance(own, Mapping):
        raise ValueError(f"write the settings of {name!r} as '{name}: {{optimizer.lr: 1e-3}}'")
    return dict(own or {})


def _typed(part: str) -> tuple[str, dict[str, Any]]:
    """'head:lr=1e-2:epochs=20'."""
    name, *given = (each.strip() for each in part.split(":"))
    settings: dict[str, Any] = {}
    for each in given:
        setting, equals, value = each.partition("=")
        if not equals:
            raise ValueError(f"{each!r} is no setting of {name!r}: write '{name}:lr=1e-3'")
        settings[setting.strip()] = value.strip()
    return name, settings
