"""The passage of a run's page on its confidence: calibration before and after, accuracy against the share answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from attnlab.evaluation import figures
from attnlab.report.figures import reliability
from attnlab.report.page import Figure, Passage, Table, draw
from attnlab.runs.predictions import PredictedExample
from attnlab.stats.calibration import Abstention, bins, calibration_error, coverage

THRESHOLDS = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)


def confidence_passage(run: Path, record: Mapping[str, Any], by_split: Mapping[str, list[PredictedExample]]) -> Passage:
    """Calibration before and after, and what is gained by leaving doubtful texts to a person."""
    split = "test" if "test" in by_split else "dev"
    examples = by_split[split]
    sure, right = [each.probability for each in examples], [each.predicted == each.label for each in examples]
    facts = record.get("calibration") or {}
    groups = [asdict(group) for group in bins(sure, right)]
    after = draw(run, "reliability", reliability(groups), f"accuracy by confidence on {split}, as predicted")
    if split not in facts:  # a run of an earlier version
        text = f"Expected calibration error on {split}: {calibration_error(bins(sure, right)):.1%} (ten bins)."
        return Passage("Confidence", [text], [_abstaining(sure, right)], [after, _curve(run, split, sure, right)])
    texts = [
        f"The logits are divided by a temperature of {facts['temperature']:.3g}, which was found on dev; predictions "
        "and exports have it. The expected calibration error is the mean distance between confidence and accuracy (ten "
        "bins of equal width).",
        "Texts below a threshold of the confidence may be left to a person: the table has what the others gain.",
    ]
    drawn = reliability(facts[split]["before"]["bins"])
    before = draw(run, "reliability-before", drawn, f"accuracy by confidence on {split}, before")
    tables = [_before_and_after(facts), _abstaining(sure, right)]
    return Passage("Confidence", texts, tables, [before, after, _curve(run, split, sure, right)])


def _before_and_after(facts: Mapping[str, Any]) -> Table:
    rows = [
        [split, *(f"{facts[split][when]['error']:.1%}" for when in ("before", "after"))]
        + [f"{facts[split][when]['loss']:.4f}" for when in ("before", "after")]
        for split in ("dev", "test")
        if split in facts
    ]
    return Table(["split", "calibration error before", "after", "loss before", "after"], rows)


def _abstaining(sure: list[float], right: list[bool]) -> Table:
    rows = []
    for threshold in THRESHOLDS:
        found = Abstention.at(threshold, sure, right)
        accuracy = str(found.accuracy) if found.answered else "none"
        rows.append([f"{threshold:g}", f"{found.answered / found.questions:.1%}", accuracy, f"{found.wrong_avoided:,}"])
    return Table(["confidence at least", "share answered", "accuracy of those (95%)", "mistakes avoided"], rows)


def _curve(run: Path, split: str, sure: list[float], right: list[bool]) -> Figure:
    shares, accuracies = coverage(sure, right)
    drawn = figures.coverage({"answered": shares, "accuracy": accuracies}, None)
    return draw(run, "answered", drawn, f"accuracy against the share answered on {split}, the most confident first")
