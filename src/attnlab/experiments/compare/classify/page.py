"""The tables and passages that only a comparison of classifiers has."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from attnlab.base.formats import clock
from attnlab.config.measures import Measure
from attnlab.experiments.compare import words as common
from attnlab.experiments.compare.classify import figures, words
from attnlab.experiments.compare.classify.pairs import all_pairs
from attnlab.experiments.compare.classify.rows import ClassifyRow
from attnlab.experiments.compare.results import Results
from attnlab.report.numbers import plus_minus
from attnlab.report.page import Figure, Passage, Table, draw
from attnlab.runs.paired import SIGNIFICANT, PairedRuns

PANELS = 12


def quality(results: Results, measures: Sequence[Measure]) -> Table:
    """One row a variant, those with collapsed seeds marked, those that failed with their reason."""
    chosen = results.measure
    others = [measure for measure in measures if measure is not chosen]
    header = [
        "variant",
        chosen.title,
        f"difference to {results.base_name}".removesuffix(" to "),
        *[measure.title for measure in others],
        "macro F1 on test",
    ]
    rows = []
    for row in results.ordered:
        if not row.runs:
            rows.append([row.label, f"0: {row.reason}", *[""] * (len(header) - 2)])
            continue
        difference = results.difference(row)
        mark = f" {words.MARK} {len(row.collapsed)} of {len(row.runs)} collapsed" if row.collapsed else ""
        rows.append(
            [
                common.named(row, results) + mark,
                plus_minus(row.mean(chosen.name), chosen.form),
                common.signed(difference, chosen.form) if difference else "",
                *[plus_minus(row.mean(measure.name), measure.form) for measure in others],
                plus_minus(row.mean("test_macro_f1"), ".1%"),
            ]
        )
    return Table(header, rows)


def cost(results: Results) -> Table:
    header = ["variant", "learning rate", "learning", "parameters", "steps", "time a run", "peak memory"]
    rows = [
        [
            row.label,
            words.rates(row),
            f"{row.learning_parameters:,}",
            f"{row.parameters:,}",
            f"{row.steps:,}",
            clock(row.mean("seconds").mean),
            words.memory(row) or "not measured",
        ]
        for row in results.ordered
        if row.runs
    ]
    return Table(header, rows)


def endings(root: Path, results: Results, measures: Sequence[Measure]) -> list[Figure]:
    shown = [measure for measure in measures if any(row.by_seed(measure.name) for row in results.finished)]
    how = "error bars are 95% intervals over seeds, ticks the runs" if results.ranked else words.ONE_SEED
    caption = f"Accuracy on dev and test; {how}; a bar at 0 could not be run."
    return [draw(root, "bars", figures.bars(results.ordered, shown), caption)]


def money(root: Path, results: Results, measure: Measure) -> Passage | None:
    """Cost beside quality."""
    rows = [row for row in results.finished if row.by_seed(measure.name)]
    if len(rows) < 2:
        return None
    drawn = figures.worth(rows, measure, words.best_for_the_money(results))
    caption = f"{measure.title.capitalize()} against the time of a run."
    return Passage(
        "Best for the money", [*words.money(results), words.COST], figures=[draw(root, "worth", drawn, caption)]
    )


def way(root: Path, results: Results) -> Passage | None:
    """Accuracy by epoch; of very many variants the first."""
    rows = [row for row in results.finished if row.course.epochs][:PANELS]
    if not rows:
        return None
    levels = [value for row in rows for value in row.by_seed("dev_baseline").values()]
    drawn = figures.courses(rows, sum(levels) / len(levels) if levels else None)
    caption = "Accuracy on train (a part of it, dropout off) and dev by epoch; bands are 95% intervals over seeds."
    return Passage("The way there", figures=[draw(root, "courses", drawn, caption)])


def differences(results: Results) -> Passage | None:
    """Every two variants against each other."""
    rows = [row for row in results.ordered if row.said]
    if len(rows) < 2:
        return None
    heading = "Which differences are more than chance"
    pairs = all_pairs(rows)
    if not pairs:
        return Passage(heading, ["The variants were tested on different examples: no two of them are compared."])
    return Passage(heading, [words.PAIRS], [_matrix(rows, pairs), _details(pairs)])


def _matrix(rows: Sequence[ClassifyRow], pairs: Sequence[PairedRuns]) -> Table:
    found = {(pair.first, pair.second): pair for pair in pairs}
    labels = [row.label for row in rows]
    lines = []
    for one in labels[:-1]:
        cells = [found.get((one, two)) for two in labels[1:]]
        lines.append([one, *[_cell(pair) if pair else "" for pair in cells]])
    return Table(["row − column", *labels[1:]], lines)


def _cell(pair: PairedRuns) -> str:
    assert pair.adjusted is not None
    return f"{pair.difference:+.1%} (p {pair.adjusted:.2g}){' *' if pair.adjusted <= SIGNIFICANT else ''}"


def _details(pairs: Sequence[PairedRuns]) -> Table:
    header = [
        "first",
        "second",
        "difference (95%, bootstrap)",
        "only first right",
        "only second right",
        "p (McNemar)",
        "p after Holm",
    ]
    rows = [
        [
            pair.first,
            pair.second,
            f"{pair.difference:+.1%} ({pair.interval[0]:+.1%} to {pair.interval[1]:+.1%})",
            str(pair.discordant.first),
            str(pair.discordant.second),
            f"{pair.discordant.p:.2g}",
            f"{pair.adjusted:.2g}",
        ]
        for pair in pairs
    ]
    return Table(header, rows)
