"""What a comparison asks of a kind of job. Its headline measures are enough; a kind that knows more overrides.

A kind with an adapter of its own names it in ADAPTERS.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attnlab.base.errors import UserError
from attnlab.base.formats import clock
from attnlab.jobs.measures import Measure
from attnlab.config.recipe import Key
from attnlab.experiments.compare import words
from attnlab.experiments.compare.cells import Cell, Choice, Variant, job_config, variants
from attnlab.experiments.compare.results import Results, Row
from attnlab.jobs.registry import config_of
from attnlab.jobs.several import must_fix_the_batch, must_not_name_a_seed
from attnlab.report.numbers import plain, plus_minus
from attnlab.report.page import Figure, Passage, Table

ADAPTERS = {
    "language": ("attnlab.experiments.compare.language", "LanguageSubject"),
    "classify": ("attnlab.experiments.compare.classify", "ClassifySubject"),
}


def subject_of(config: Any) -> Subject:
    """The adapter of the job that is compared."""
    job = config.compare.job
    if job not in ADAPTERS:
        return Subject(job)
    module, name = ADAPTERS[job]
    found: Subject = getattr(importlib.import_module(module), name)(job)
    return found


class Subject:
    """Any job that has headline measures."""

    rates = words.ONE_RATE

    def __init__(self, job: str) -> None:
        self.job = job

    @property
    def measures(self) -> tuple[Measure, ...]:
        measures: tuple[Measure, ...] = config_of(self.job).headlines
        return measures

    def axes(self, config: Any) -> list[list[Choice]]:
        """Axes that only this kind has, beside `vary` and `changes`."""
        return []

    def check(self, config: Any) -> None:
        """Whatever is wrong for all variants is an error; what is wrong for one will be a row."""
        must_fix_the_batch(config)
        must_not_name_a_seed(config, self.job, "comparison")
        for variant in variants(config):
            job_config(config, Cell(variant, 0), {})  # refuses what is no setting or no value of it

    def decide(self, config: Any, cell: Cell) -> dict[str, Any]:
        """What is settled once for a variant, before its first run, and kept."""
        return {}

    def settings(self, config: Any, variant: Variant) -> dict[Key, Any]:
        """What makes the variant."""
        return dict(variant.settings)

    def values(self, config: Any, known: Mapping[str, Any]) -> dict[str, Any]:
        """What all runs share, as the job's configuration takes it."""
        values: dict[str, Any] = config.model_dump(exclude={"compare"})
        return values

    def row(
        self, variant: Variant, paths: dict[int, Path], records: dict[int, dict[str, Any]], known: Mapping[str, Any]
    ) -> Row:
        """A variant from the folders and records of its finished runs, by seed."""
        return Row.of(variant, records, known)

    def table(self, results: Results, brief: bool = False) -> Table:
        """One row a variant: what ranks first, with the difference; then the rest."""
        chosen = results.measure
        others = [measure for measure in self.measures if measure is not chosen]
        header = [
            "variant",
            chosen.title,
            f"difference to {results.base_name}".removesuffix(" to "),
            *[measure.title for measure in others],
        ]
        rows = []
        for row in results.ordered:
            if not row.runs:
                rows.append([row.label, "failed", *[""] * (len(others) + 1)])
                continue
            difference = results.difference(row)
            rows.append(
                [
                    words.named(row, results),
                    plus_minus(row.mean(chosen.name), chosen.form),
                    words.signed(difference, chosen.form) if difference else "",
                    *[plus_minus(row.mean(measure.name), measure.form) for measure in others],
                ]
            )
        return Table(header, rows)

    def cost(self, results: Results) -> Table:
        rows = [
            [row.label, f"{row.parameters:,}", f"{row.steps:,}", clock(row.mean("seconds").mean)]
            for row in results.ordered
            if row.runs
        ]
        return Table(["variant", "parameters", "steps", "time a run"], rows)

    def endings(self, root: Path, results: Results) -> list[Figure]:
        """Where each variant ends, if there is more to it than its measures."""
        return []

    def passages(self, root: Path, results: Results) -> list[Passage | None]:
        """What else the page shows."""
        return []

    def lead(self, results: Results) -> str:
        """What every run was given."""
        return (
            f"{len(results.rows)} variants × {results.config.compare.seeds} seeds of the job '{self.job}': for a seed "
            "the same data in the same order, and the same settings but for what is named."
        )

    def notes(self, results: Results) -> list[str]:
        """What must be said about single variants."""
        return []

    def cautions(self, results: Results) -> list[str]:
        """What the numbers do not say."""
        test = [measure.title for measure in self.measures if measure.split == "test"]
        chosen = f"Weights and ranking are chosen by {results.measure.title}"
        split = f"{chosen}; {', '.join(test)} chose nothing and stands beside it." if test else f"{chosen}."
        return [f"{words.seeds(results)} {self.rates}", split]

    def plain(self, row: Row, results: Results) -> dict[str, Any]:
        """A row for results.json: every number that was measured."""
        names = {
            name: None
            for run in row.runs.values()
            for name, value in run.items()
            if isinstance(value, int | float) and not isinstance(value, bool)
        }
        return {name: plain(row.mean(name), row.by_seed(name)) for name in names}

    def pair(self, results: Results, asked: str) -> str:
        """Two variants, 'A,B', tested against each other."""
        raise UserError(f"--pair: only classifiers say something about each example; these are runs of {self.job!r}.")

    def more(self, results: Results) -> dict[str, Any]:
        """What else results.json holds."""
        return {}
