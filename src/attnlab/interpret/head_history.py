"""How heads come about: the scores at every checkpoint that a run has kept (`--keep`), beside its validation loss."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnlab.base.errors import UserError
from attnlab.interpret.heads import DRAWS, HeadReport, score_heads
from attnlab.interpret.subject import open_subject
from attnlab.runs.checkpoints import Checkpoints, Damaged, load_weights, read_checkpoint
from attnlab.runs.folder import is_run
from attnlab.runs.metrics import series


@dataclass(frozen=True)
class HeadHistory:
    """The scores of a run by step, and its loss on dev by step."""

    name: str
    steps: list[int]
    reports: list[HeadReport]
    loss: tuple[list[int], list[float]]

    def strongest(self, kind: str, source: str = "random tokens") -> list[float]:
        """At each step, the score of the head that is strongest then."""
        return [report.scores(kind, source).strongest(1)[0][1].mean for report in self.reports]

    def rows(self) -> list[dict[str, Any]]:
        """One plain row per step, head, kind and source."""
        return [
            {"step": step, **row}
            for step, report in zip(self.steps, self.reports, strict=True)
            for row in report.rows()
        ]

    def __repr__(self) -> str:
        return f"HeadHistory({self.name!r}, {len(self.steps)} steps)"

    def _repr_html_(self) -> str:
        from attnlab.interpret.notebook import history_html

        return history_html(self)


def score_checkpoints(
    run: Path, text: str | None = None, draws: int = DRAWS, length: int | None = None, seed: int = 0
) -> HeadHistory:
    """Score the heads at every checkpoint, all on the same sequences."""
    if not is_run(run):
        raise UserError(f"{run} is no run: only a run has checkpoints.")
    kept = Checkpoints(run / "checkpoints").steps()
    if not kept:
        raise UserError(f"{run} has kept no checkpoints: train it with --save-every and a large --keep.")
    subject = open_subject(run)
    steps, reports = [], []
    for path in kept:
        try:
            load_weights(subject.model, read_checkpoint(path).tensors["model"])
        except (Damaged, ValueError) as problem:
            raise UserError(f"{path} cannot be scored: {problem}.") from None
        steps.append(int(path.name.removeprefix("step-")))
        reports.append(score_heads(subject, text, draws, length, seed))
    return HeadHistory(str(run), steps, reports, series(run / "metrics.jsonl", "dev", "loss"))
