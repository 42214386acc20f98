"""Language models on one text: the same budget, an audit for the future, perplexities prefix by prefix, lengths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from attnlab.attention import MixerShape, find_variant
from attnlab.attention.audit.run import sees_future
from attnlab.attention.parts.positions import check_positions
from attnlab.config import split_list
from attnlab.config.language import LanguageConfig
from attnlab.experiments.compare.cells import Cell, Choice, Variant, cells, job_config, variants
from attnlab.experiments.compare.config import DEFAULT_STEPS, CompareConfig
from attnlab.experiments.compare.language.budget import steps_in
from attnlab.experiments.compare.language.rows import LanguageRow, curve_of, lengths_of
from attnlab.experiments.compare.results import Results
from attnlab.experiments.compare.subjects import Subject
from attnlab.jobs.language import LanguageJob, perplexity
from attnlab.jobs.several import must_fix_the_batch
from attnlab.models.gpt import shape_of
from attnlab.report.numbers import plain as plain_mean
from attnlab.report.page import Passage, Table

AUDITED = 72  # tokens of the sequences in which the audit looks for the future
MEASURES = ("train_loss", "dev_loss", "sample_loss", "prefix_loss", "tokens_per_second", "step_memory_mib", "seconds")
ATTENTION, POSITIONS = ("model", "attention"), ("model", "positions")


class LanguageSubject(Subject):
    def axes(self, config: CompareConfig) -> list[list[Choice]]:
        named = split_list(config.compare.attention)
        attention = [Choice(Path(name).stem if name.endswith(".py") else name, {ATTENTION: name}) for name in named]
        return [attention, [Choice(name, {POSITIONS: name}) for name in split_list(config.compare.positions)]]

    def check(self, config: CompareConfig) -> None:
        must_fix_the_batch(config)
        for variant in variants(config):
            find_variant(variant.settings[ATTENTION])
            if variant.settings[POSITIONS] != "preset":
                check_positions(variant.settings[POSITIONS])
            job_config(config, Cell(variant, 0), {"steps": 1})  # refuses a change of something that is not there
        first = job_config(config, next(cells(config)), {"steps": 1})
        stream = LanguageJob(first).read()
        shape_of(first.model, len(stream.vocabulary)).mixer()

    def decide(self, config: CompareConfig, cell: Cell) -> dict[str, Any]:
        """Whether it sees the future, and its budget in steps."""
        trial = job_config(config, cell, {"steps": 1})
        future = sees_future(trial.model.attention, _audited_shape(trial))
        seconds = config.budget.seconds
        steps = config.budget.steps or DEFAULT_STEPS if seconds is None else steps_in(seconds, trial)
        return {"future": future, "steps": steps}

    def values(self, config: CompareConfig, known: Mapping[str, Any]) -> dict[str, Any]:
        shared: dict[str, Any] = config.model_dump(exclude={"compare", "budget"})
        steps = known["steps"]
        every = f"{max(1, steps // config.budget.evaluations)} steps"
        shared["training"] = {
            "steps": steps,
            "evaluate_every": every,
            "save_every": every,
            "log_every": min(config.budget.log_every, steps),
        }
        return shared

    def row(
        self, variant: Variant, paths: dict[int, Path], records: dict[int, dict[str, Any]], known: Mapping[str, Any]
    ) -> LanguageRow:
        results = {seed: record["results"] for seed, record in records.items()}
        lengths = {seed: found for seed, path in paths.items() if (found := lengths_of(path))}
        row: LanguageRow = LanguageRow.of(
            variant, records, known, audit=known.get("future"), curve=curve_of(paths, results), lengths=lengths
        )
        return row

    def table(self, results: Results, brief: bool = False) -> Table:
        from attnlab.experiments.compare.language.page import quality

        return quality(results, brief)

    def cost(self, results: Results) -> Table:
        from attnlab.experiments.compare.language.page import cost

        return cost(results)

    def passages(self, root: Path, results: Results) -> list[Passage | None]:
        from attnlab.experiments.compare.language.page import future, longer, path_figures

        way = Passage("The way there", figures=path_figures(root, results))
        return [way, future(root, results), longer(root, results)]

    def lead(self, results: Results) -> str:
        from attnlab.experiments.compare.language.words import budget

        return budget(results)

    def notes(self, results: Results) -> list[str]:
        from attnlab.experiments.compare.language.words import leaks

        return leaks(results)

    def cautions(self, results: Results) -> list[str]:
        from attnlab.experiments.compare.language.words import cautions

        return cautions(results)

    def plain(self, row: Any, results: Results) -> dict[str, Any]:
        settings = row.variant.settings
        prefix = results.difference(row, "prefix_loss")
        measured = [name for name in MEASURES if row.by_seed(name)]
        return {
            "attention": settings[ATTENTION],
            "positions": settings[POSITIONS],
            "sees_future": row.sees_future,
            **{name: plain_mean(row.mean(name), row.by_seed(name)) for name in measured},
            **{
                name.replace("loss", "perplexity"): perplexity(row.mean(name).mean)
                for name in measured
                if name.endswith("_loss")
            },
            "prefix_difference": plain_mean(prefix) if prefix else None,
            "prefix_gap": plain_mean(row.gap) if row.gap.count else None,
            "curve": {
                "steps": row.curve.steps,
                "seconds": [round(s, 2) for s in row.curve.seconds],
                "losses": [plain_mean(mean) for mean in row.curve.losses],
            },
            "lengths": {
                str(length): plain_mean(row.at_length(length))
                if row.at_length(length).count
                else next(iter(row.lengths.values()))[length]
                for length in results.config.measures.lengths
                if row.lengths
            },
        }


def _audited_shape(config: LanguageConfig) -> MixerShape:
    """The mixer as it stands in the model, on sequences short enough for an exact look."""
    shape = shape_of(config.model, vocabulary=1).mixer()
    return replace(shape, context=min(shape.context, AUDITED), dropout=0.0)
