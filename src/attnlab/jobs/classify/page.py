"""The passages of a classification run's page: classes, mistakes, calibration.

Everything is read from the files of the run. Mistakes are shown for dev only: a test set that is used to improve
a model can no longer measure it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from attnlab.jobs.classify import suspects
from attnlab.models.pretrained.tuned import classes_of
from attnlab.report import figures
from attnlab.report.figures import reliability
from attnlab.report.page import Figure, Passage, Table
from attnlab.runs import read_config, series
from attnlab.runs.predictions import PredictedExample, read_examples
from attnlab.stats.calibration import bins, calibration_error
from attnlab.stats.intervals import Proportion
from attnlab.stats.scores import Scores, macro_f1_interval

MISTAKES = 15
SHOWN = 240
"""Characters of a text in the list of mistakes."""


def passages(run: Path, record: Mapping[str, Any]) -> list[Passage]:
    """Empty for a run that is not finished."""
    predictions = {split: read_examples(run, split) for split in ("dev", "test")}
    dev = predictions["dev"]
    if not dev:
        return []
    classes = classes_of(run, record)
    scores = {split: scores_of(examples, classes) for split, examples in predictions.items() if examples}
    doubtful = suspects.passage(run)
    return [
        _classes(run, record, classes, scores),
        _mistakes(dev),
        *([doubtful] if doubtful is not None else []),
        _confidence(run, dev),
    ]


def scores_of(examples: Sequence[PredictedExample], classes: Sequence[str]) -> Scores:
    """Scores from the predicted classes; all of them are valid except the loss."""
    place = {name: number for number, name in enumerate(classes)}
    predicted = torch.tensor([place[example.predicted] for example in examples])
    labels = torch.tensor([place[example.label] for example in examples])
    return Scores(F.one_hot(predicted, len(classes)).double(), labels)


def _classes(run: Path, record: Mapping[str, Any], classes: tuple[str, ...], scores: Mapping[str, Scores]) -> Passage:
    method = read_config(run)["tuning"]["method"]
    total, learning = record.get("parameters", 0), record.get("learning_parameters", 0)
    texts = [f"Tuned by {method}: {learning:,} of {total:,} parameters are trained ({learning / max(1, total):.3%})."]
    if record.get("results", {}).get("overfit") is not None:
        texts.append("This run memorizes a few examples: its dev split is its training split.")
    drawn = [
        _figure(
            run,
            "confusion",
            confusion_matrix(scores["dev"].confusion.numpy(), classes),
            "label and predicted class on dev: counts, and shares of the row",
        )
    ]
    by_epoch = accuracy_by_epoch(run, record)
    if by_epoch:
        levels = {"most common class": scores["dev"].majority}
        picture = figures.curves(by_epoch, "Accuracy on train and dev", "epoch", "accuracy", levels, percent=True)
        drawn.append(_figure(run, "accuracy-by-epoch", picture, "accuracy by epoch, dropout off; train on a sample"))
    return Passage("Classes", texts, [_summary(scores), _by_class(scores["dev"], classes)], drawn)


def _summary(scores: Mapping[str, Scores]) -> Table:
    rows = []
    for split, split_scores in scores.items():
        low, high = macro_f1_interval(split_scores.confusion.numpy())
        rows.append(
            [
                split,
                f"{len(split_scores.labels):,}",
                str(_accuracy(split_scores)),
                f"{split_scores.macro_f1:.3f} ({low:.3f} to {high:.3f})",
                f"{split_scores.majority:.1%}",
            ]
        )
    return Table(["split", "examples", "accuracy (95%)", "macro-F1 (95%)", "most common class"], rows)


def _accuracy(scores: Scores) -> Proportion:
    return Proportion(int(scores.confusion.trace()), int(scores.confusion.sum()))


def _by_class(scores: Scores, classes: Sequence[str]) -> Table:
    rows = []
    for place, (name, score) in enumerate(zip(classes, scores.by_class(), strict=True)):
        right, predicted = int(scores.confusion[place, place]), int(scores.confusion[:, place].sum())
        precision = str(Proportion(right, predicted)) if predicted else "never predicted"
        recall = str(Proportion(right, score.count)) if score.count else "no examples"
        rows.append([name, f"{score.count:,}", f"{predicted:,}", precision, recall, f"{score.f1:.3f}"])
    return Table(["class on dev", "examples", "predicted", "precision (95%)", "recall (95%)", "F1"], rows)


def _mistakes(examples: Sequence[PredictedExample]) -> Passage:
    wrong = sorted((each for each in examples if each.predicted != each.label), key=lambda each: -each.probability)
    note = (
        f"{len(wrong):,} of {len(examples):,} on dev are wrong, the most confident first. Mistakes on test are "
        "not shown: a set that is used to improve a model can no longer measure it."
    )
    table = [
        [_short(each), each.label, each.predicted, f"{each.probability:.1%}", f"{each.label_probability or 0.0:.1%}"]
        for each in wrong[:MISTAKES]
    ]
    header = ["text", "label", "predicted", "probability", "of the label"]
    return Passage("Most confident mistakes on dev", [note], [Table(header, table)] if table else [])


def _short(example: PredictedExample) -> str:
    parts = [" ".join(text.split()) for text in (example.text, example.pair) if text is not None]
    room = SHOWN // len(parts)
    return " | ".join(part if len(part) <= room else f"{part[: room - 1]}…" for part in parts)


def _confidence(run: Path, examples: Sequence[PredictedExample]) -> Passage:
    groups = bins([each.probability for each in examples], [each.predicted == each.label for each in examples])
    text = (
        f"Expected calibration error on dev: {calibration_error(groups):.1%} (ten bins of equal width). It is the mean "
        "distance between the confidence of the classifier and its accuracy."
    )
    drawn = reliability([asdict(group) for group in groups])
    return Passage("Confidence", [text], figures=[_figure(run, "reliability", drawn, "accuracy by confidence on dev")])


def accuracy_by_epoch(run: Path, record: Mapping[str, Any]) -> dict[str, figures.Curve]:
    """Accuracy on train and dev at each evaluation."""
    training, count = record.get("training", {}), record["data"]["examples"]["train"]
    if not training.get("step"):
        return {}
    epochs_per_step = training["examples"] / count / training["step"]
    curves: dict[str, figures.Curve] = {}
    for name, key in (("train", "train_accuracy"), ("dev", "accuracy")):
        steps, values = series(run / "metrics.jsonl", "dev", key)
        if steps:
            curves[name] = ([step * epochs_per_step for step in steps], values)
    return curves


def confusion_matrix(counts: np.ndarray, classes: Sequence[str]) -> Any:
    """Rows are the label; colours are shares of a row, numbers are counts."""
    from matplotlib.ticker import PercentFormatter

    size, names = len(classes), [name if len(name) <= 18 else f"{name[:17]}…" for name in classes]
    shares = counts / np.maximum(1, counts.sum(1, keepdims=True))
    with figures.styled(figures.FRAMELESS):
        side = min(9.0, max(3.2, 1.6 + 0.85 * size))
        figure, axes = figures.subplots(figsize=(max(6.4, side + 1.2), side))
        image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
        axes.set_xticks(range(size), names, rotation=0 if size <= 4 else 45, ha="center" if size <= 4 else "right")
        axes.set_yticks(range(size), names)
        axes.tick_params(length=0)
        axes.set(title="Label (rows) and predicted class", xlabel="predicted", ylabel="label")
        for row, column in np.ndindex(size, size) if size <= 12 else ():
            ink = "white" if shares[row, column] > 0.6 else "#1a202c"
            axes.text(
                column,
                row,
                f"{counts[row, column]:,}\n{shares[row, column]:.0%}",
                ha="center",
                va="center",
                color=ink,
                fontsize=9,
            )
        figure.colorbar(image, label="share of the row", shrink=0.85, format=PercentFormatter(1.0, decimals=0))
        return figure


def _figure(run: Path, name: str, drawn: Any, caption: str) -> Figure:
    folder = run / "figures"
    folder.mkdir(exist_ok=True)
    return Figure(figures.save(drawn, folder / f"{name}.png"), caption)
