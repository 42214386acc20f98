"""The sentences of a comparison's report: what it shows, what it does not, and why."""

from __future__ import annotations

from attnlab.experiments.compare.cells import seeds_of
from attnlab.experiments.compare.results import Results, Row
from attnlab.report.numbers import plus_minus
from attnlab.stats.intervals import Mean

ONE_RATE = "One learning rate for all may suit some better than others."


def signed(mean: Mean, form: str = ".3f") -> str:
    """+0.120 ± 0.019."""
    return plus_minus(mean, f"+{form}")


def named(row: Row, results: Results) -> str:
    """A variant's label, with how many of its runs there are when some are missing, or when it has fewer seeds."""
    wanted = len(seeds_of(results.config, row.variant))
    if len(row.runs) < wanted:
        return f"{row.label} ({len(row.runs)} of its runs)"
    return row.label + (f" ({wanted} seed{'s' if wanted > 1 else ''})" if wanted < results.config.compare.seeds else "")


def verdicts(results: Results) -> list[str]:
    """What may be concluded, in sentences."""
    reference = results.reference
    if reference is None:
        return ["No variant can be compared: each of them failed or was objected to."]
    if not results.ranked:
        return [
            "There is one seed: no interval can be given, and the variants are not ranked. They stand in the order "
            "in which they were named; run the same comparison with --seeds 3 or more to learn which differences last."
        ]
    better, worse, alike = _sorted_out(results)
    sentences = []
    if (first := results.rows[0]) is not reference:
        why = "cannot be compared" if first.runs else "failed"
        sentences.append(f"{first.label}, named first, {why}: differences are to {reference.label} instead.")
    measure = results.measure
    higher, lower = (better, worse) if measure.better == "higher" else (worse, better)
    for rows, what in ((lower, "a lower"), (higher, "a higher")):
        if rows:
            which = "; ".join(f"{row.label} by {signed(difference, measure.form)}" for row, difference in rows)
            sentences.append(f"With {what} {measure.title} than {results.base_name}, seed by seed: {which}.")
    if alike:
        which = ", ".join(row.label for row, _ in alike)
        sentences.append(f"Not to be told apart from {results.base_name} with these seeds: {which}.")
    return sentences


def _sorted_out(results: Results) -> tuple[list[tuple[Row, Mean]], ...]:
    pairs = [
        (row, difference)
        for row in results.ordered
        if row.comparable and (difference := results.difference(row)) is not None
    ]
    sure = [(row, difference) for row, difference in pairs if difference.differs_from_zero]
    sign = results.measure.sign
    better = [(row, difference) for row, difference in sure if sign * difference.mean > 0]
    worse = [(row, difference) for row, difference in sure if sign * difference.mean < 0]
    return better, worse, [pair for pair in pairs if not pair[1].differs_from_zero]


def seeds(results: Results) -> str:
    """What an interval over seeds speaks about."""
    return (
        f"{results.config.compare.seeds} seeds a variant. Intervals (±) are 95% after Student over seeds, each on its "
        "own: of twenty such statements one is expected to be wrong. They speak about other seeds on this data with "
        "these settings, not about other data, sizes or budgets."
    )
