"""The passages of a classification run's page: classes, mistakes, calibration.

Everything is read from the files of the run. Mistakes are shown for dev only: a test set that is used to improve
a model can no longer measure it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attnlab.jobs.classify import suspects
from attnlab.jobs.classify.beside import baselines_passage
from attnlab.jobs.classify.confidence import confidence_passage
from attnlab.models.pretrained.tuned import classes_of
from attnlab.report import figures
from attnlab.report.classes import (
    class_table,
    confused_pairs,
    confusion_figure,
    mistakes_passage,
    scores_of,
    summary_table,
)
from attnlab.report.page import Passage, draw
from attnlab.runs import read_config, series
from attnlab.runs.predictions import read_examples
from attnlab.stats.scores import Scores

UNSEEN = "Mistakes on test are not shown: a set that is used to improve a model can no longer measure it."


def passages(run: Path, record: Mapping[str, Any]) -> list[Passage]:
    """Empty for a run that is not finished."""
    predictions = {split: read_examples(run, split) for split in ("dev", "test")}
    dev = predictions["dev"]
    if not dev:
        return []
    classes = classes_of(run, record)
    scores = {split: scores_of(examples, classes) for split, examples in predictions.items() if examples}
    shown = {split: examples for split, examples in predictions.items() if examples}
    beside, doubtful = baselines_passage(run, record), suspects.passage(run)
    return [
        *([beside] if beside is not None else []),
        _classes(run, record, classes, scores),
        mistakes_passage(dev, "dev", UNSEEN),
        *([doubtful] if doubtful is not None else []),
        confidence_passage(run, record, shown),
    ]


def _classes(run: Path, record: Mapping[str, Any], classes: tuple[str, ...], scores: Mapping[str, Scores]) -> Passage:
    method = read_config(run)["tuning"]["method"]
    total, learning = record.get("parameters", 0), record.get("learning_parameters", 0)
    texts = [f"Tuned by {method}: {learning:,} of {total:,} parameters are trained ({learning / max(1, total):.3%})."]
    if record.get("results", {}).get("overfit") is not None:
        texts.append("This run memorizes a few examples: its dev split is its training split.")
    drawn = [confusion_figure(run, scores["dev"], classes, "dev")]
    by_epoch = accuracy_by_epoch(run, record)
    if by_epoch:
        levels = {"most common class": scores["dev"].majority}
        picture = figures.curves(by_epoch, "Accuracy on train and dev", "epoch", "accuracy", levels, percent=True)
        drawn.append(draw(run, "accuracy-by-epoch", picture, "accuracy by epoch, dropout off; train on a sample"))
    tables = [summary_table(scores), class_table(scores["dev"], classes, "dev"), confused_pairs(scores["dev"], classes)]
    return Passage("Classes", texts, tables, drawn)


def accuracy_by_epoch(run: Path, record: Mapping[str, Any]) -> dict[str, figures.Curve]:
    """Accuracy on train and dev at each evaluation."""
    training, count = record.get("training", {}), record["data"]["examples"]["train"]
    if not training.get("step") or record.get("steps") == 0:  # what is fitted has no epochs
        return {}
    epochs_per_step = training["examples"] / count / training["step"]
    curves: dict[str, figures.Curve] = {}
    for name, key in (("train", "train_accuracy"), ("dev", "accuracy")):
        steps, values = series(run / "metrics.jsonl", "dev", key)
        if steps:
            curves[name] = ([step * epochs_per_step for step in steps], values)
    return curves
