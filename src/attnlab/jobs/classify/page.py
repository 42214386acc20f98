"""What the page of a classification run shows besides: classes, mistakes, whether the confidence can be trusted.

All of it is read from what the run wrote down. Only dev is looked into: who chooses by the mistakes on test has no
test set any more.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from attnlab.report import figures
from attnlab.report.figures import reliability
from attnlab.report.page import Figure, Passage, Table
from attnlab.runs import read_config, series
from attnlab.stats.calibration import bins, calibration_error
from attnlab.stats.intervals import Proportion
from attnlab.stats.scores import Scores, macro_f1

MISTAKES = 15
SHOWN = 240
"""Characters of a text in the list of mistakes."""
DRAWS = 2000

Said = Mapping[str, Any]


def passages(run: Path, record: Mapping[str, Any]) -> list[Passage]:
    """Nothing for a run that has not come to its end."""
    found = {split: read_said(run / f"predictions-{split}.jsonl") for split in ("dev", "test")}
    if not found["dev"]:
        return []
    classes = tuple(record["data"]["classes"])
    scores = {split: scores_of(rows, classes) for split, rows in found.items() if rows}
    return [_classes(run, record, classes, scores), _mistakes(found["dev"]), _confidence(run, found["dev"])]


def read_said(path: Path) -> list[Said]:
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def scores_of(rows: Sequence[Said], classes: Sequence[str]) -> Scores:
    """Counts from what was said: as good as logits for everything but the loss."""
    place = {name: number for number, name in enumerate(classes)}
    said = torch.tensor([place[row["said"]] for row in rows])
    return Scores(F.one_hot(said, len(classes)).double(), torch.tensor([place[row["label"]] for row in rows]))


def macro_f1_interval(confusion: np.ndarray, draws: int = DRAWS) -> tuple[float, float]:
    """95% percentiles over examples drawn with replacement, which is a multinomial draw of the cells."""
    count = int(confusion.sum())
    cells = np.random.default_rng(0).multinomial(count, confusion.ravel() / count, size=draws)
    drawn = [macro_f1(torch.from_numpy(one.reshape(confusion.shape))) for one in cells]
    low, high = np.percentile(drawn, [2.5, 97.5])
    return float(low), float(high)


def _classes(run: Path, record: Mapping[str, Any], classes: tuple[str, ...], scores: Mapping[str, Scores]) -> Passage:
    method = read_config(run)["tuning"]["method"]
    total, learning = record.get("parameters", 0), record.get("learning_parameters", 0)
    texts = [f"Tuned by {method}: {learning:,} of {total:,} parameters learn ({learning / max(1, total):.3%})."]
    if record.get("results", {}).get("overfit") is not None:
        texts.append("This run learns a few examples by heart: its dev split is its training split.")
    drawn = [
        _figure(
            run,
            "confusion",
            confusion_matrix(scores["dev"].confusion.numpy(), classes),
            "right class and class said on dev: how many, and the share of the row",
        )
    ]
    by_epoch = accuracy_by_epoch(run, record)
    if by_epoch:
        levels = {"always the most common class": scores["dev"].majority}
        picture = figures.curves(by_epoch, "Accuracy on train and dev", "epoch", "accuracy", levels, percent=True)
        drawn.append(_figure(run, "accuracy-by-epoch", picture, "accuracy by epoch, dropout off; train on a sample"))
    return Passage("Classes", texts, [_summary(scores), _by_class(scores["dev"], classes)], drawn)


def _summary(scores: Mapping[str, Scores]) -> Table:
    rows = []
    for split, found in scores.items():
        low, high = macro_f1_interval(found.confusion.numpy())
        rows.append(
            [
                split,
                f"{len(found.labels):,}",
                str(_right(found)),
                f"{found.macro_f1:.3f} ({low:.3f} to {high:.3f})",
                f"{found.majority:.1%}",
            ]
        )
    return Table(["split", "examples", "accuracy (95%)", "macro-F1 (95%)", "always the most common"], rows)


def _right(scores: Scores) -> Proportion:
    return Proportion(int(scores.confusion.trace()), int(scores.confusion.sum()))


def _by_class(scores: Scores, classes: Sequence[str]) -> Table:
    rows = []
    for place, (name, score) in enumerate(zip(classes, scores.by_class(), strict=True)):
        right, said = int(scores.confusion[place, place]), int(scores.confusion[:, place].sum())
        precision = str(Proportion(right, said)) if said else "never said"
        recall = str(Proportion(right, score.count)) if score.count else "none there"
        rows.append([name, f"{score.count:,}", f"{said:,}", precision, recall, f"{score.f1:.3f}"])
    return Table(["class on dev", "there", "said", "precision (95%)", "recall (95%)", "F1"], rows)


def _mistakes(rows: Sequence[Said]) -> Passage:
    wrong = sorted((row for row in rows if row["said"] != row["label"]), key=lambda row: -row["probability"])
    note = (
        f"{len(wrong):,} of {len(rows):,} on dev are wrong; the ones it was surest of come first. Mistakes on test are "
        "not shown: a set that is read to improve a model can no longer judge it."
    )
    table = [
        [_short(row), row["label"], row["said"], f"{row['probability']:.1%}", f"{row['of_label']:.1%}"]
        for row in wrong[:MISTAKES]
    ]
    header = ["text", "right", "said", "probability", "of the right one"]
    return Passage("Surest mistakes on dev", [note], [Table(header, table)] if table else [])


def _short(row: Said) -> str:
    parts = [" ".join(row[part].split()) for part in ("text", "pair") if part in row]
    room = SHOWN // len(parts)
    return " | ".join(part if len(part) <= room else f"{part[: room - 1]}…" for part in parts)


def _confidence(run: Path, rows: Sequence[Said]) -> Passage:
    groups = bins([row["probability"] for row in rows], [row["said"] == row["label"] for row in rows])
    text = (
        f"Expected calibration error on dev: {calibration_error(groups):.1%} (ten bins of equal width). It is the mean "
        "distance between how sure the classifier is of what it says and how often that is right."
    )
    drawn = reliability([asdict(group) for group in groups])
    return Passage("Confidence", [text], figures=[_figure(run, "reliability", drawn, "accuracy by confidence on dev")])


def accuracy_by_epoch(run: Path, record: Mapping[str, Any]) -> dict[str, figures.Curve]:
    """Train and dev, as measured at each evaluation."""
    training, count = record.get("training", {}), record["data"]["examples"]["train"]
    if not training.get("step"):
        return {}
    epochs_per_step = training["examples"] / count / training["step"]
    found: dict[str, figures.Curve] = {}
    for name, key in (("train", "train_accuracy"), ("dev", "accuracy")):
        steps, values = series(run / "metrics.jsonl", "dev", key)
        if steps:
            found[name] = ([step * epochs_per_step for step in steps], values)
    return found


def confusion_matrix(counts: np.ndarray, classes: Sequence[str]) -> Any:
    """Rows are the right class; colours are shares of a row, numbers are counts."""
    from matplotlib import pyplot as plt

    size, names = len(classes), [name if len(name) <= 18 else f"{name[:17]}…" for name in classes]
    shares = counts / np.maximum(1, counts.sum(1, keepdims=True))
    with plt.rc_context(figures.STYLE | {"axes.grid": False, "axes.spines.left": False, "axes.spines.bottom": False}):
        side = min(9.0, max(3.2, 1.6 + 0.85 * size))
        figure, axes = plt.subplots(figsize=(max(6.4, side + 1.2), side))
        image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
        axes.set_xticks(range(size), names, rotation=0 if size <= 4 else 45, ha="center" if size <= 4 else "right")
        axes.set_yticks(range(size), names)
        axes.tick_params(length=0)
        axes.set(title="Right class (rows) and class said", xlabel="said", ylabel="right")
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
        figure.colorbar(
            image, label="share of the row", shrink=0.85, format=plt.matplotlib.ticker.PercentFormatter(1.0, decimals=0)
        )
        return figure


def _figure(run: Path, name: str, drawn: Any, caption: str) -> Figure:
    folder = run / "figures"
    folder.mkdir(exist_ok=True)
    return Figure(figures.save(drawn, folder / f"{name}.png"), caption)
