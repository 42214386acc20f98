"""Two classifiers compared by a paired test of their predictions on the same test examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from attnlab.base.errors import UserError
from attnlab.runs.predictions import Prediction, read_predictions
from attnlab.stats.significance import Discordant, bootstrap

SIGNIFICANT = 0.05


@dataclass(frozen=True)
class PairedRuns:
    """The first against the second: where their chosen runs disagree, and the difference over all seeds."""

    first: str
    second: str
    discordant: Discordant
    difference: float
    interval: tuple[float, float]
    seeds: int
    examples: int
    adjusted: float | None = None
    """McNemar's p after Holm, among all pairs of a report."""

    def sentence(self) -> str:
        (low, high), p = self.interval, self.discordant.p
        over, which = f"{self.seeds} seeds and the examples", "Of their runs best on dev"
        if self.seeds == 1:
            over, which = "the examples", "Of one run each"
        return (
            f"{self.first} against {self.second} on {self.examples:,} test examples: {self.difference:+.1%} in "
            f"accuracy ({low:+.1%} to {high:+.1%}, bootstrap over {over}). {which}, only the first is right "
            f"{self.discordant.first} times, only the second {self.discordant.second} times: p = {p:.2g} (McNemar); "
            f"{'a significant difference' if p <= SIGNIFICANT else 'no significant difference'} between these two runs."
        )


def pair_runs(
    names: tuple[str, str], chosen: tuple[Prediction, Prediction], by_seed: Sequence[tuple[Prediction, Prediction]]
) -> PairedRuns:
    """Two classifiers compared: the chosen runs, and all runs seed by seed."""
    if len({run.examples for both in [chosen, *by_seed] for run in both}) > 1:
        raise UserError(f"{names[0]} and {names[1]} were tested on different examples: use the same test split.")
    ones, others = (np.stack([both[side].right for both in by_seed]) for side in (0, 1))  # (S, N)
    seeds, examples = ones.shape
    return PairedRuns(
        *names,
        Discordant.of(chosen[0].right, chosen[1].right),
        float(ones.mean() - others.mean()),
        bootstrap(ones, others),
        seeds,
        examples,
    )


def paired_test(first: Path, second: Path) -> str | None:
    """The paired test of two run folders as a sentence; None if one of them has no predictions on test."""
    one, two = read_predictions(first), read_predictions(second)
    if one is None or two is None:
        return None
    if one.examples != two.examples:
        return "The runs were tested on different examples, so there is no paired test."
    return pair_runs((str(first), str(second)), (one, two), [(one, two)]).sentence()
