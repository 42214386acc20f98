"""Probabilities that can be believed: one temperature, found on dev, by which all logits of a run are divided.

The report has the calibration before and after. On dev it was fitted, so it is test that shows what it is worth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from attnlab.stats.calibration import bins, calibration_error, temperature
from attnlab.stats.scores import Scores


def calibrate(raw: Mapping[str, Scores], fit: bool = True) -> tuple[dict[str, Scores], dict[str, Any]]:
    """The scores of every split with the temperature of dev, and for the record the calibration before and after."""
    dev = raw["dev"]
    found = temperature(dev.logits.double().numpy(), dev.labels.tolist()) if fit else 1.0
    after = {split: Scores(scores.logits / found, scores.labels) for split, scores in raw.items()}
    facts: dict[str, Any] = {"temperature": found}
    for split in raw:
        facts[split] = {"before": _measured(raw[split]), "after": _measured(after[split])}
    return after, facts


def _measured(scores: Scores) -> dict[str, Any]:
    """Loss, expected calibration error, and the bins it is made of."""
    sure = scores.logits.double().softmax(-1).max(-1)
    groups = bins(sure.values.tolist(), (sure.indices == scores.labels).tolist())
    return {"loss": scores.loss, "error": calibration_error(groups), "bins": [asdict(group) for group in groups]}
