"""A classifier on labelled texts it was not trained on: accuracy, macro F1, loss, confusion, every prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from attnlab.base.errors import UserError
from attnlab.data.tasks.labelled import LabelledText
from attnlab.models.pretrained.tuned import TunedClassifier
from attnlab.runs.predictions import PredictedExample
from attnlab.stats.calibration import Abstention, coverage
from attnlab.stats.intervals import Proportion
from attnlab.stats.scores import Scores, macro_f1_interval


@dataclass(frozen=True)
class LabelledScores:
    classes: tuple[str, ...]
    predictions: list[PredictedExample]
    scores: Scores
    cut: int
    """Texts that were too long for the classifier and were cut."""

    @property
    def accuracy(self) -> Proportion:
        return Proportion(int(self.scores.confusion.trace()), len(self.predictions))

    def abstention(self, below: float) -> Abstention:
        """What is gained and lost if texts with a lower confidence are left to a person."""
        return Abstention.at(below, *self._confidence())

    def _confidence(self) -> tuple[list[float], list[bool]]:
        return [each.probability for each in self.predictions], [
            each.predicted == each.label for each in self.predictions
        ]

    def summary(self) -> dict[str, Any]:
        """All numbers, for a file or a script; rows of the confusion are the label, columns the prediction."""
        scores, confusion = self.scores, self.scores.confusion
        answered, reached = coverage(*self._confidence())
        return {
            "accuracy": self.accuracy.share,
            "accuracy_interval": self.accuracy.interval,
            "macro_f1": scores.macro_f1,
            "macro_f1_interval": macro_f1_interval(confusion.numpy()),
            "loss": scores.loss,
            "examples": len(self.predictions),
            "most_common_class": scores.majority,
            "collapsed": scores.collapsed,
            "cut": self.cut,
            "classes": list(self.classes),
            "confusion": confusion.tolist(),
            "coverage": {"answered": answered, "accuracy": reached},
        }


def evaluate_labelled(trained: TunedClassifier, examples: Sequence[LabelledText], where: str = "") -> LabelledScores:
    """`where` is the beginning of a message about one of the texts."""
    if not examples or any(example.label < 0 for example in examples):
        raise UserError(f"{where}the texts have no labels to compare with: add a column, or use 'attnlab predict'.")
    encoded = trained.encode(examples, where)
    scores = Scores(trained.logits(encoded), torch.tensor([example.label for example in examples]))
    return LabelledScores(trained.classes, predicted_examples(examples, trained.classes, scores), scores, encoded.cut)


def predicted_examples(
    examples: Sequence[LabelledText], classes: Sequence[str], scores: Scores
) -> list[PredictedExample]:
    """The prediction for each example."""
    probabilities = scores.logits.softmax(-1)
    return [
        PredictedExample(
            example.text,
            classes[example.label],
            classes[chosen],
            round(float(probabilities[n, chosen]), 6),
            round(float(probabilities[n, example.label]), 6),
            example.pair,
        )
        for n, (example, chosen) in enumerate(zip(examples, scores.predicted.tolist(), strict=True))
    ]
