"""Tables of classifiers tested against each other in pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attnlab.report.page import Table
from attnlab.runs.paired import SIGNIFICANT, PairedRuns


def pair_matrix(labels: Sequence[str], pairs: Sequence[PairedRuns]) -> Table:
    """The difference of every two, with its p-value."""
    cells = {(pair.first, pair.second): _cell(pair) for pair in pairs}
    lines = [[one, *[cells.get((one, two), "") for two in labels[1:]]] for one in labels[:-1]]
    return Table(["row − column", *labels[1:]], lines)


def _cell(pair: PairedRuns) -> str:
    assert pair.adjusted is not None
    return f"{pair.difference:+.1%} (p {pair.adjusted:.2g}){' *' if pair.adjusted <= SIGNIFICANT else ''}"


def pair_details(pairs: Sequence[PairedRuns]) -> Table:
    right = ("only first right", "only second right")
    header = ["first", "second", "difference (95%, bootstrap)", *right, "p (McNemar)", "p after Holm"]
    rows = [
        [
            *(pair.first, pair.second),
            f"{pair.difference:+.1%} ({pair.interval[0]:+.1%} to {pair.interval[1]:+.1%})",
            *(str(pair.discordant.first), str(pair.discordant.second)),
            *(f"{pair.discordant.p:.2g}", f"{pair.adjusted:.2g}"),
        ]
        for pair in pairs
    ]
    return Table(header, rows)


def plain_pair(pair: PairedRuns) -> dict[str, Any]:
    return {
        "first": pair.first,
        "second": pair.second,
        "difference": pair.difference,
        "interval": pair.interval,
        "only_first_right": pair.discordant.first,
        "only_second_right": pair.discordant.second,
        "p": pair.discordant.p,
        "p_holm": pair.adjusted,
    }
