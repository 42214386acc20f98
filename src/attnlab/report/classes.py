"""How a classifier does on a split, class by class: tables, the confusion matrix, mistakes, calibration.

Of many classes the worst come first, and the matrix shows those that are confused most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from attnlab.report import figures
from attnlab.report.figures import reliability
from attnlab.report.page import Figure, Passage, Table, draw
from attnlab.runs.predictions import PredictedExample
from attnlab.stats.calibration import bins, calibration_error
from attnlab.stats.intervals import Proportion
from attnlab.stats.scores import Scores, macro_f1_interval

MANY = 12
"""Classes from which on they are sorted and the matrix is cut."""
PAIRS = 15
MISTAKES = 15
SHOWN = 240
"""Characters of a text in the list of mistakes."""


def scores_of(examples: Sequence[PredictedExample], classes: Sequence[str]) -> Scores:
    """Scores from the predicted classes; all of them are valid except the loss."""
    place = {name: number for number, name in enumerate(classes)}
    predicted = torch.tensor([place[example.predicted] for example in examples])
    labels = torch.tensor([place[example.label] for example in examples])
    return Scores(F.one_hot(predicted, len(classes)).double(), labels)


def summary_table(scores: Mapping[str, Scores]) -> Table:
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


def class_table(scores: Scores, classes: Sequence[str], split: str) -> Table:
    """One row per class; of many the one with the lowest F1 first, those without examples last."""
    rows = []
    by_class = list(enumerate(zip(classes, scores.by_class(), strict=True)))
    if len(classes) > MANY:
        by_class.sort(key=lambda each: (not each[1][1].count, each[1][1].f1, -each[1][1].count))
    for place, (name, score) in by_class:
        right, predicted = int(scores.confusion[place, place]), int(scores.confusion[:, place].sum())
        precision = str(Proportion(right, predicted)) if predicted else "never predicted"
        recall = str(Proportion(right, score.count)) if score.count else "no examples"
        rows.append([name, f"{score.count:,}", f"{predicted:,}", precision, recall, f"{score.f1:.3f}"])
    return Table([f"class on {split}", "examples", "predicted", "precision (95%)", "recall (95%)", "F1"], rows)


def confused_pairs(scores: Scores, classes: Sequence[str]) -> Table:
    """The label and the predicted class of most mistakes."""
    counts = scores.confusion.numpy().copy()
    np.fill_diagonal(counts, 0)
    order = np.argsort(-counts, axis=None, kind="stable")[:PAIRS]
    totals = scores.confusion.sum(1).tolist()
    rows = [
        [
            classes[label],
            classes[predicted],
            f"{counts[label, predicted]:,}",
            f"{counts[label, predicted] / totals[label]:.0%}",
        ]
        for label, predicted in (np.unravel_index(place, counts.shape) for place in order)
        if counts[label, predicted]
    ]
    return Table(["label", "predicted instead", "times", "of the label"], rows)


def confusion_figure(root: Path, scores: Scores, classes: Sequence[str], split: str) -> Figure:
    """Of many classes those that are confused most."""
    counts, caption = scores.confusion.numpy(), f"label and predicted class on {split}: counts, and shares of the row"
    if len(classes) > MANY:
        wrong = counts.sum(0) + counts.sum(1) - 2 * counts.diagonal()
        chosen = np.sort(np.argsort(-wrong, kind="stable")[:MANY])
        caption += f"; the {MANY} of {len(classes)} classes with most mistakes, shares of the shown columns"
        counts, classes = counts[np.ix_(chosen, chosen)], [classes[place] for place in chosen]
    return draw(root, "confusion", confusion_matrix(counts, classes), caption)


def mistakes_passage(examples: Sequence[PredictedExample], split: str, note: str) -> Passage:
    wrong = sorted((each for each in examples if each.predicted != each.label), key=lambda each: -each.probability)
    count = f"{len(wrong):,} of {len(examples):,} on {split} are wrong, the most confident first."
    table = [
        [_short(each), each.label, each.predicted, f"{each.probability:.1%}", f"{each.label_probability or 0.0:.1%}"]
        for each in wrong[:MISTAKES]
    ]
    header = ["text", "label", "predicted", "probability", "of the label"]
    return Passage(f"Most confident mistakes on {split}", [f"{count} {note}"], [Table(header, table)] if table else [])


def _short(example: PredictedExample) -> str:
    parts = [" ".join(text.split()) for text in (example.text, example.pair) if text is not None]
    room = SHOWN // len(parts)
    return " | ".join(part if len(part) <= room else f"{part[: room - 1]}…" for part in parts)


def confidence_passage(root: Path, examples: Sequence[PredictedExample], split: str) -> Passage:
    groups = bins([each.probability for each in examples], [each.predicted == each.label for each in examples])
    text = (
        f"Expected calibration error on {split}: {calibration_error(groups):.1%} (ten bins of equal width). It is the "
        "mean distance between the confidence of the classifier and its accuracy."
    )
    drawn = reliability([asdict(group) for group in groups])
    return Passage(
        "Confidence", [text], figures=[draw(root, "reliability", drawn, f"accuracy by confidence on {split}")]
    )


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
