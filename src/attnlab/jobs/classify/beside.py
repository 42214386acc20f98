"""The passage of a run's page that puts its baselines beside it: scores, cost, bars and paired tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnlab.base.console import clock
from attnlab.jobs.classify.baselines import baselines_in, pairs_of
from attnlab.models.linear.model import TITLES
from attnlab.report.classifier_figures import bars
from attnlab.report.page import Passage, Table, draw
from attnlab.report.pairs import pair_details
from attnlab.stats.intervals import ACCURACIES, Mean, Proportion

ABOUT = (
    "The baselines are fitted to the same rows and the same texts, cut at the same length, as this run, and scored on "
    "the same rows. Their weight decay is chosen by cross-validation on the training rows."
)
PAIRED = (
    "On the same {split} rows: p is McNemar's exact test, the interval a bootstrap over the rows. One run each: it "
    "says nothing about other seeds. Holm's correction is for the number of baselines."
)


@dataclass(frozen=True)
class OneRow:
    """A bar of one run."""

    label: str
    values: Mapping[str, float]
    objection: str | None = None
    reason: str = ""

    def by_seed(self, name: str) -> dict[int, float]:
        return {0: self.values[name]} if name in self.values else {}

    def mean(self, name: str) -> Mean:
        return Mean(tuple(self.by_seed(name).values()))


def baselines_passage(run: Path, record: Mapping[str, Any]) -> Passage | None:
    """None for a run without baselines."""
    stored = baselines_in(run)
    if not stored:
        return None
    results, sizes = record.get("results", {}), record["data"]["examples"]
    training = record.get("training", {})
    own = results | {
        "seconds": training.get("seconds", 0.0) + results.get("feature_seconds", 0.0),
        "parameters": record.get("learning_parameters", 0),
    }
    rows = {"this run": own, **{TITLES[name]: values for name, values in stored.items()}}
    split = "test" if "test_accuracy" in results else "dev"
    pairs = list(pairs_of(run, split).values())
    drawn = bars(
        [OneRow(label, values) for label, values in rows.items()],
        [measure for measure in ACCURACIES if measure.name in results and measure.split in sizes],
        [],
    )
    return Passage(
        "Beside baselines",
        [ABOUT, PAIRED.format(split=split)],
        [_table(rows, sizes), *([pair_details(pairs)] if pairs else [])],
        [draw(run, "baselines", drawn, "Accuracy on dev and test, one run each.")],
    )


def _table(rows: Mapping[str, Mapping[str, Any]], sizes: Mapping[str, int]) -> Table:
    splits = [split for split in ("dev", "test") if split in sizes and f"{split}_accuracy" in rows["this run"]]
    header = ["", *[f"{split} accuracy (95%)" for split in splits], *[f"{split} macro F1" for split in splits]]
    shown = []
    for label, values in rows.items():
        accuracies = [str(_share(values[f"{split}_accuracy"], sizes[split])) for split in splits]
        f1 = [f"{values[f'{split}_macro_f1']:.3f}" for split in splits]
        shown.append([label, *accuracies, *f1, f"{values['parameters']:,}", clock(values["seconds"])])
    return Table([*header, "learning parameters", "time"], shown)


def _share(value: float, count: int) -> Proportion:
    return Proportion(round(value * count), count)
