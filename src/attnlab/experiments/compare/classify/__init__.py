"""Classifiers on one task: models, ways of tuning, optimizers; dev and test as bars, cost beside quality."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attnlab.config.classify import ClassifyConfig
from attnlab.jobs.measures import Measure
from attnlab.config.recipe import Key
from attnlab.experiments.compare.cells import Cell, Choice, Variant, cells, job_config, own_settings
from attnlab.experiments.compare.choices import AXES, RATE, usual_rate
from attnlab.experiments.compare.classify import page, words
from attnlab.experiments.compare.classify.memory import must_fit, needed, parameters_of
from attnlab.experiments.compare.classify.pairs import all_pairs, named_pair
from attnlab.experiments.compare.classify.rows import ClassifyRow, row_of
from attnlab.experiments.compare.results import Results
from attnlab.experiments.compare.subjects import Subject
from attnlab.jobs.classify.texts import read_texts
from attnlab.report.page import Figure, Passage, Table

METHOD, OPTIMIZER = AXES["methods"], AXES["optimizers"]


class ClassifySubject(Subject):
    rates = words.RATES

    def axes(self, config: Any) -> list[list[Choice]]:
        axes = []
        for axis, key in AXES.items():
            named = getattr(config.compare, axis)
            if named:
                axes.append([_choice(key, name, own) for name, own in named.items()])
        return axes

    def settings(self, config: Any, variant: Variant) -> dict[Key, Any]:
        """A rate that nobody gave is the usual one of what is tuned."""
        found = dict(variant.settings)
        if RATE not in found:
            method, optimizer = found.get(METHOD, config.tuning.method), found.get(OPTIMIZER, config.optimizer.name)
            found[RATE] = config.optimizer.lr or usual_rate(method, optimizer)
        return found

    def check(self, config: Any) -> None:
        super().check(config)
        read_texts(job_config(config, next(cells(config)), {}).data)  # a task that is not there is nobody's row

    def decide(self, config: Any, cell: Cell) -> dict[str, Any]:
        """Whether it can fit at all, told before its weights are read."""
        asked = job_config(config, cell, {})
        parameters, shape = parameters_of(asked)
        need = needed(asked, parameters, shape)
        must_fit(asked, need)
        return {"parameters": parameters, "needed_bytes": need}

    def row(
        self, variant: Variant, paths: dict[int, Path], records: dict[int, dict[str, Any]], known: Mapping[str, Any]
    ) -> ClassifyRow:
        return row_of(variant, paths, records, known)

    def table(self, results: Results, brief: bool = False) -> Table:
        return page.quality(results, self.measures)

    def cost(self, results: Results) -> Table:
        return page.cost(results)

    def endings(self, root: Path, results: Results) -> list[Figure]:
        return page.endings(root, results, self.measures)

    def passages(self, root: Path, results: Results) -> list[Passage | None]:
        notes = words.collapses(results)
        return [
            Passage("What collapsed", notes) if notes else None,
            page.money(root, results, self._tested(results)),
            page.way(root, results),
            page.differences(results),
        ]

    def _tested(self, results: Results) -> Measure:
        """Test accuracy; where the test split was left alone, the one on dev."""
        on_test = [
            m for m in self.measures if m.split == "test" and any(row.by_seed(m.name) for row in results.finished)
        ]
        return on_test[0] if on_test else results.measure

    def notes(self, results: Results) -> list[str]:
        return [*words.collapses(results), *words.money(results)]

    def plain(self, row: Any, results: Results) -> dict[str, Any]:
        return super().plain(row, results) | {
            "learning_parameters": row.learning_parameters,
            "learning_rates": row.rates,
            "collapsed_seeds": row.collapsed,
        }

    def pair(self, results: Results, asked: str) -> str:
        return named_pair(results.rows, asked).sentence()

    def more(self, results: Results) -> dict[str, Any]:
        chosen = words.best_for_the_money(results)
        return {
            "best_for_the_money": chosen.label if chosen else None,
            "pairs": [
                {
                    "first": pair.first,
                    "second": pair.second,
                    "difference": pair.difference,
                    "interval": pair.interval,
                    "only_first_right": pair.discordant.first,
                    "only_second_right": pair.discordant.second,
                    "p": pair.discordant.p,
                    "p_holm": pair.adjusted,
                }
                for pair in all_pairs(results.ordered)
            ],
        }


def _choice(key: Key, name: str, own: Mapping[str, Any]) -> Choice:
    """A name with its own settings; a folder is called by its last part and found from anywhere."""
    folder = key == AXES["models"] and os.path.isdir(os.path.expanduser(name))
    value = os.path.abspath(os.path.expanduser(name)) if folder else name
    return Choice(Path(value).name if folder else name, {key: value, **own_settings(ClassifyConfig, own)})
