"""The plain view of a comparison: measures in a table, their cost, and the sentences that any job shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from attnlab.base.console import clock
from attnlab.base.errors import UserError
from attnlab.config.recipe import Key
from attnlab.config.sections import Section
from attnlab.experiments.config import CompareConfig
from attnlab.experiments.results import ComparisonResults, ExperimentRow, seeds_text
from attnlab.jobs.registry import KINDS
from attnlab.report.page import Figure, Passage, Table
from attnlab.stats.intervals import Mean, Measure, plain, plus_minus

ONE_RATE = "One learning rate for all may suit some better than others."


class View:
    """Any job that has measures; a job with more to show overrides what it needs."""

    undecided: ClassVar[Mapping[str, Any]] = {}
    """What stands for `decide` while settings are only checked."""
    rates = ONE_RATE

    def __init__(self, job: str) -> None:
        self.job = job

    @property
    def measures(self) -> tuple[Measure, ...]:
        return KINDS[self.job].measures

    def check(self, configs: Sequence[Section]) -> None:
        """One sentence for what is wrong with the data or the model of all variants."""

    def decide(self, config: CompareConfig, job_config: Any) -> dict[str, Any]:
        """What is settled once per variant, before its first run, and stored."""
        return {}

    def settings(self, config: CompareConfig, decided: Mapping[str, Any]) -> dict[Key, Any]:
        """Settings of a run that follow from what was decided."""
        return {}

    def judged(self, row: ExperimentRow) -> ExperimentRow:
        """The row, with an objection if its numbers cannot be compared."""
        return row

    def table(self, results: ComparisonResults, brief: bool = False) -> Table:
        """One row per variant: what ranks first, with the difference; then the rest. `brief` fits a terminal."""
        chosen = results.measure
        others = [measure for measure in self.measures if measure is not chosen]
        header = ["variant", chosen.title, difference_title(results), *[measure.title for measure in others]]
        rows = []
        for row in results.ordered:
            if not row.runs:
                rows.append([row.label, f"failed: {row.reason}", *[""] * (len(others) + 1)])
                continue
            scores = [plus_minus(row.mean(measure.name), measure.form) for measure in others]
            rows.append([run_label(row, results), *ranked_cells(row, results), *scores])
        return Table(header, rows)

    def cost(self, results: ComparisonResults) -> Table:
        rows = [
            [row.label, f"{row.parameters:,}", f"{row.steps:,}", clock(row.mean("seconds").mean)]
            for row in results.ordered
            if row.runs
        ]
        return Table(["variant", "parameters", "steps", "time per run"], rows)

    def figures(self, root: Path, results: ComparisonResults) -> list[Figure]:
        """Where each variant ends, if there is more to show than its measures."""
        return []

    def passages(self, root: Path, results: ComparisonResults) -> list[Passage | None]:
        return []

    def lead(self, results: ComparisonResults) -> str:
        """What every run was given."""
        return (
            f"{len(results.rows)} variants × {results.config.compare.seeds} seeds of the job '{self.job}': for a seed "
            "the same data in the same order, and the same settings except for what is named."
        )

    def notes(self, results: ComparisonResults) -> list[str]:
        """Sentences on single variants."""
        return []

    def first(self, results: ComparisonResults) -> list[str]:
        """What must be known before any number."""
        return []

    def cautions(self, results: ComparisonResults) -> list[str]:
        """What the numbers do not show."""
        test = [measure.title for measure in self.measures if measure.split == "test"]
        chosen = f"Weights and ranking are chosen by {results.measure.title}"
        split = f"{chosen}; {', '.join(test)} chose nothing and is reported beside it." if test else f"{chosen}."
        return [f"{about_intervals(results)} {self.rates}", split]

    def settings_shown(self, config: CompareConfig) -> dict[str, Any]:
        """The settings of a comparison for its page, without those that exclude what was given or say nothing."""
        return _given(config.model_dump(mode="json"))

    def plain(self, row: ExperimentRow, results: ComparisonResults) -> dict[str, Any]:
        """A row for results.json: every number that was measured."""
        names = {
            name: None
            for run in row.runs.values()
            for name, value in run.items()
            if isinstance(value, int | float) and not isinstance(value, bool)
        }
        return {name: plain(row.mean(name), row.by_seed(name)) for name in names}

    def plain_extra(self, results: ComparisonResults) -> dict[str, Any]:
        """What else results.json holds."""
        return {}

    def test_pair(self, results: ComparisonResults, labels: str) -> str:
        """Two variants, 'A,B', tested against each other."""
        raise UserError(f"--pair: only classifiers store a prediction per example; these are runs of {self.job!r}.")


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    """Without what is None or empty."""
    nested = {name: _given(value) if isinstance(value, Mapping) else value for name, value in values.items()}
    return {name: value for name, value in nested.items() if value not in (None, "", {}, [])}


def signed(mean: Mean, form: str = ".3f") -> str:
    """+0.120 ± 0.019."""
    return plus_minus(mean, f"+{form}")


def difference_title(results: ComparisonResults) -> str:
    return f"difference to {results.base_name}".removesuffix(" to ")


def ranked_cells(row: ExperimentRow, results: ComparisonResults) -> list[str]:
    """The measure that ranks, and its difference to what the row is compared with."""
    form, difference = results.measure.form, results.difference(row)
    return [plus_minus(results.score(row), form), signed(difference, form) if difference else ""]


def run_label(row: ExperimentRow, results: ComparisonResults) -> str:
    """A variant's label, with the number of its runs when some are missing or it has fewer seeds."""
    if len(row.runs) < row.planned:
        return f"{row.label} ({len(row.runs)} of its runs)"
    return row.label + (f" ({seeds_text(row.planned)})" if row.planned < results.config.compare.seeds else "")


def about_intervals(results: ComparisonResults) -> str:
    return (
        f"{results.config.compare.seeds} seeds per variant. Intervals (±) are 95% after Student over seeds, each on "
        "its own: of twenty such statements one is expected to be wrong. They hold for other seeds on this data with "
        "these settings, not for other data, sizes or budgets."
    )


def verdicts(results: ComparisonResults) -> list[str]:
    """What may be concluded, in sentences."""
    reference = results.reference
    if reference is None:
        return ["No variant can be compared: each of them failed or has an objection."]
    if not results.ranked:
        return [
            "There is one seed: no interval can be given, and the variants are not ranked. They are listed in the "
            "order given; run the same comparison with --seeds 3 or more to learn which differences last."
        ]
    sentences = []
    if (first := results.rows[0]) is not reference:
        why = "cannot be compared" if first.runs else "failed"
        sentences.append(f"{first.label}, named first, {why}: differences are to {reference.label} instead.")
    measure = results.measure
    pairs = [
        (row, difference)
        for row in results.ordered
        if row.comparable and (difference := results.difference(row)) is not None
    ]
    for sign, what in ((-1, "a lower"), (1, "a higher")):
        rows = [(row, diff) for row, diff in pairs if diff.differs_from_zero and sign * diff.mean > 0]
        if rows:
            which = "; ".join(f"{row.label} by {signed(diff, measure.form)}" for row, diff in rows)
            sentences.append(f"With {what} {measure.title} than {results.base_name}, seed by seed: {which}.")
    if alike := [row.label for row, diff in pairs if not diff.differs_from_zero]:
        sentences.append(f"No significant difference to {results.base_name} with these seeds: {', '.join(alike)}.")
    return sentences
