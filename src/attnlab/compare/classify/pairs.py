"""Any two classifiers of a comparison, tested against each other on the test set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from attnlab.compare.classify.rows import ClassifyRow
from attnlab.errors import UserError, unknown
from attnlab.runs.predictions import Said
from attnlab.significance import Discordant, bootstrap, holm

SURE = 0.05


@dataclass(frozen=True)
class Pair:
    """The first against the second: on which examples their chosen runs part, and the difference over all seeds."""

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
        low, high = self.interval
        p = f"p = {self.discordant.p:.2g}" + (f", {self.adjusted:.2g} after Holm" if self.adjusted is not None else "")
        over = f"{self.seeds} seeds" if self.seeds > 1 else "one seed"
        apart = "differ" if (self.discordant.p if self.adjusted is None else self.adjusted) <= SURE else "may be equal"
        return (
            f"{self.first} against {self.second} on {self.examples:,} test examples: {self.difference:+.1%} in accuracy "
            f"({low:+.1%} to {high:+.1%}, bootstrap over {over} and the examples). Of the runs best on dev, only the "
            f"first is right {self.discordant.first} times, only the second {self.discordant.second} times: {p} "
            f"(McNemar); the two {apart}."
        )


def tested(first: ClassifyRow, second: ClassifyRow) -> Pair:
    """Two variants of one comparison."""
    for row in (first, second):
        if not row.said:
            raise UserError(f"{row.label} has no predictions on test: {row.reason or 'its test split was left alone.'}")
    shared = sorted(set(first.said) & set(second.said))
    if not shared:
        raise UserError(f"{first.label} and {second.label} have no seed in common: go on with --resume.")
    chosen = first.said[first.chosen_seed], second.said[second.chosen_seed]
    return pair_of((first.label, second.label), chosen, [(first.said[seed], second.said[seed]) for seed in shared])


def pair_of(names: tuple[str, str], chosen: tuple[Said, Said], by_seed: Sequence[tuple[Said, Said]]) -> Pair:
    """Two classifiers from what they said: the runs to test, and all runs seed by seed."""
    if len({said.examples for both in [chosen, *by_seed] for said in both}) > 1:
        raise UserError(f"{names[0]} and {names[1]} were tested on different examples: they cannot be compared.")
    ones, others = (np.stack([both[side].right for both in by_seed]) for side in (0, 1))  # (S, N)
    return Pair(
        *names, Discordant.of(chosen[0].right, chosen[1].right), float(ones.mean() - others.mean()),
        bootstrap(ones, others), *ones.shape,
    )  # fmt: skip


def all_pairs(rows: Sequence[ClassifyRow]) -> list[Pair]:
    """Every two of the variants that have predictions, corrected for their number."""
    found = [tested(one, two) for one, two in combinations([row for row in rows if row.said], 2)]
    return [replace(pair, adjusted=p) for pair, p in zip(found, holm([each.discordant.p for each in found]), strict=True)]


def one_test_set(rows: Sequence[ClassifyRow]) -> bool:
    return len({said.examples for row in rows for said in row.said.values()}) == 1


def named_pair(rows: Sequence[ClassifyRow], asked: str) -> Pair:
    """'A,B': two labels of a comparison."""
    names = [name.strip() for name in asked.split(",")]
    if len(names) != 2:
        raise UserError(f"--pair {asked}: write two variants, such as --pair {rows[0].label},{rows[-1].label}.")
    by_label = {row.label: row for row in rows}
    for name in names:
        if name not in by_label:
            raise UserError(f"--pair: {unknown('variant', name, by_label)}")
    return tested(by_label[names[0]], by_label[names[1]])
