"""Results of the checks: plain data that converts to JSON and back. No torch here."""

from __future__ import annotations

import enum
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from attnlab.base import html
from attnlab.check.judge.protection import Protection


class ExerciseStage(enum.StrEnum):
    """The three stages of the exercise, in the order in which a student works through them."""

    PLAIN = "plain"
    CAUSAL = "causal"
    HEADS = "heads"

    def up_to(self) -> list[ExerciseStage]:
        stages = list(ExerciseStage)
        return stages[: stages.index(self) + 1]


class Status(enum.StrEnum):
    PASS = "pass"
    FAIL = "fail"
    MISSING = "missing"


@dataclass
class CheckResult:
    """One check of one function."""

    function: str
    stage: ExerciseStage
    case: str = ""
    """Which call of the function, where there are several: "3 heads, causal"."""
    status: Status = Status.PASS
    optional: bool = False
    """Not required by the exercise: a missing one is not a failure."""
    problem: str = ""
    """What is wrong, in one sentence."""
    expected: str = ""
    came: str = ""
    """What the function returned; the name is a key of the JSON report."""
    largest_difference: float | str | None = None
    first_difference: dict[str, Any] | None = None
    """The first entry that differs: its `index`, the value `expected` there, the value that `came`."""
    mistake: str | None = None
    """The key of the catalogued mistake that gives exactly this answer."""
    advice: str = ""
    line: int | None = None
    where: str = ""
    """The line as a location: `mine.py:12` or `mine.ipynb, code cell 3, line 2`."""
    remarks: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"{self.function} ({self.case})" if self.case else self.function

    @property
    def counts_as_failure(self) -> bool:
        return self.status is Status.FAIL or (self.status is Status.MISSING and not self.optional)

    @classmethod
    def from_event(cls, event: dict[str, Any]) -> CheckResult:
        """The result in an event of the judge."""
        values = {f.name: event[f.name] for f in fields(cls)}
        return cls(**{**values, "stage": ExerciseStage(event["stage"]), "status": Status(event["status"])})


@dataclass(frozen=True)
class Remark:
    """Something worth knowing about the file that is not a failure."""

    text: str
    line: int | None = None
    where: str = ""


@dataclass(repr=False)
class CheckReport:
    file: str
    stage: ExerciseStage
    results: list[CheckResult]
    remarks: list[Remark]
    protection: Protection
    """How the file was run: see judge/protection.py."""
    seed: int
    """Of all inputs and sizes; the same seed repeats the check."""

    @property
    def passed(self) -> bool:
        return not any(result.counts_as_failure for result in self.results)

    def __repr__(self) -> str:
        return f"CheckReport({self.file!r}, {'passed' if self.passed else 'failed'})"

    def _repr_html_(self) -> str:
        rows = [[r.name, r.status, " ".join(filter(None, [r.where, r.problem, r.advice]))] for r in self.results]
        remarks = [f"{remark.where} {remark.text}".strip() for remark in self.remarks]
        return html.heading(repr(self)) + html.table(["function", "", ""], rows) + "".join(map(html.paragraph, remarks))

    def to_json(self) -> dict[str, Any]:
        return {"passed": self.passed, **asdict(self)}


def point_to_causes(report: CheckReport) -> CheckReport:
    """A wrong piece makes self_attention wrong too: point the reader to the piece."""
    failures = [result for result in report.results if result.status is Status.FAIL]
    for whole in failures:
        if whole.function != "self_attention":
            continue
        pieces = [r for r in failures if r.function != "self_attention" and r.stage in whole.stage.up_to()]
        keys = set(whole.mistake.split("+")) if whole.mistake else set()
        if keys and keys <= {piece.mistake for piece in pieces}:
            names = dict.fromkeys(piece.function for piece in pieces if piece.mistake in keys)
            whole.advice = f"this follows from {' and '.join(names)}: correct that first."
        elif not keys and pieces and whole.first_difference:
            names = dict.fromkeys(piece.function for piece in pieces)
            whole.advice = f"correct {', '.join(names)} first: that may be enough."
    return report
