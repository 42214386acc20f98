"""Two classifiers compared by a paired test of their predictions on the same test examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np

from attnlab.base.errors import UserError
from attnlab.runs.predictions import Prediction, read_predictions
from attnlab.stats.significance import Discordant, bootstrap, holm

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


@dataclass(frozen=True)
class RunsOnTest:
    """The runs of one classifier by seed: predictions on test, and scores on dev."""

    label: str
    predictions: Mapping[int, Prediction]
    dev_scores: Mapping[int, float]
    reason: str = ""
    """Why there are no predictions."""

    @property
    def chosen(self) -> Prediction:
        """Of the run one would keep: the best on dev, of equals the first."""
        return self.predictions[max(self.predictions, key=lambda seed: (self.dev_scores[seed], -seed))]


def paired(first: RunsOnTest, second: RunsOnTest) -> PairedRuns:
    """McNemar between the run of each that is best on dev, the difference over the seeds both have."""
    for runs in (first, second):
        if not runs.predictions:
            raise UserError(f"{runs.label} has no predictions on test: {runs.reason}")
    shared = sorted(set(first.predictions) & set(second.predictions))
    if not shared:
        raise UserError(f"{first.label} and {second.label} have no seed in common: resume with --resume.")
    by_seed = [(first.predictions[seed], second.predictions[seed]) for seed in shared]
    return pair_runs((first.label, second.label), (first.chosen, second.chosen), by_seed)


def all_pairs(classifiers: Sequence[RunsOnTest]) -> list[PairedRuns]:
    """Every two, corrected for their number; none where they were tested on different examples."""
    tested = [runs for runs in classifiers if runs.predictions]
    if len({each.examples for runs in tested for each in runs.predictions.values()}) > 1:
        return []
    pairs = [paired(a, b) for a, b in combinations(tested, 2) if set(a.predictions) & set(b.predictions)]
    adjusted = holm([pair.discordant.p for pair in pairs])
    return [replace(pair, adjusted=p) for pair, p in zip(pairs, adjusted, strict=True)]


def paired_test(first: Path, second: Path) -> str | None:
    """The paired test of two run folders as a sentence; None if one of them has no predictions on test."""
    one, two = read_predictions(first), read_predictions(second)
    if one is None or two is None:
        return None
    if one.examples != two.examples:
        return "The runs were tested on different examples, so there is no paired test."
    return pair_runs((str(first), str(second)), (one, two), [(one, two)]).sentence()
