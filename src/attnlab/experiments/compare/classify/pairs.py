"""Any two classifiers of a comparison, tested against each other on the test set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from attnlab.base.errors import UserError, unknown
from attnlab.experiments.compare.classify.rows import ClassifyRow
from attnlab.runs.paired import PairedRuns, pair_runs
from attnlab.stats.significance import holm


def tested(first: ClassifyRow, second: ClassifyRow) -> PairedRuns:
    """Two variants: McNemar between the run of each that is best on dev, the difference over the seeds both have."""
    for row in (first, second):
        if not row.said:
            raise UserError(f"{row.label} has no predictions on test: {row.reason or 'its test split was left alone.'}")
    shared = sorted(set(first.said) & set(second.said))
    if not shared:
        raise UserError(f"{first.label} and {second.label} have no seed in common: go on with --resume.")
    chosen = first.said[first.chosen_seed], second.said[second.chosen_seed]
    return pair_runs((first.label, second.label), chosen, [(first.said[seed], second.said[seed]) for seed in shared])


def all_pairs(rows: Sequence[ClassifyRow]) -> list[PairedRuns]:
    """Every two of the variants, corrected for their number; none where they were tested on different examples."""
    rows = [row for row in rows if row.said]
    if len({said.examples for row in rows for said in row.said.values()}) > 1:
        return []
    found = [tested(one, two) for one, two in combinations(rows, 2) if set(one.said) & set(two.said)]
    adjusted = holm([pair.discordant.p for pair in found])
    return [replace(pair, adjusted=p) for pair, p in zip(found, adjusted, strict=True)]


def named_pair(rows: Sequence[ClassifyRow], asked: str) -> PairedRuns:
    """'A,B': two labels of a comparison."""
    names = [name.strip() for name in asked.split(",")]
    if len(names) != 2:
        raise UserError(f"--pair {asked!r}: write two variants, such as --pair '{rows[0].label},{rows[-1].label}'.")
    by_label = {row.label: row for row in rows}
    for name in names:
        if name not in by_label:
            raise UserError(f"--pair: {unknown('variant', name, by_label)}")
    return tested(by_label[names[0]], by_label[names[1]])
