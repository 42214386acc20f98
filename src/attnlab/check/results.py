"""What a check says: plain data that goes through JSON unchanged. No torch here."""

from __future__ import annotations

import enum
from dataclasses import asdict, dataclass, field, fields
from typing import Any


class Stage(enum.StrEnum):
    """The three stages of the exercise, in the order in which a student works through them."""

    PLAIN = "plain"
    CAUSAL = "causal"
    HEADS = "heads"

    def up_to(self) -> list[Stage]:
        stages = list(Stage)
        return stages[: stages.index(self) + 1]


class Status(enum.StrEnum):
    PASS = "pass"
    FAIL = "fail"
    MISSING = "missing"


@dataclass
class Result:
    """One check of one function."""

    function: str
    stage: Stage
    case: str = ""
    """Which call of the function, where there are several: "3 heads, causal"."""
    status: Status = Status.PASS
    optional: bool = False
    """The exercise does not ask for this function, so a missing one is not a failure."""
    problem: str = ""
    """What is wrong, in one sentence."""
    expected: str = ""
    came: str = ""
    largest_difference: float | str | None = None
    first_difference: dict[str, Any] | None = None
    """The first entry that differs: its index, the value expected there, the value that came."""
    mistake: str | None = None
    """The key of the catalogued mistake that gives exactly this answer."""
    advice: str = ""
    line: int | None = None
    where: str = ""
    """The line as a place to go to: `mine.py:12` or `mine.ipynb, code cell 3, line 2`."""
    remarks: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"{self.function} ({self.case})" if self.case else self.function

    @property
    def counts_as_failure(self) -> bool:
        return self.status is Status.FAIL or (self.status is Status.MISSING and not self.optional)

    @classmethod
    def from_event(cls, event: dict[str, Any]) -> Result:
        """The result that a child's event carries."""
        values = {f.name: event[f.name] for f in fields(cls)}
        return cls(**{**values, "stage": Stage(event["stage"]), "status": Status(event["status"])})


@dataclass
class Job:
    """What the parent asks of the child: this text, up to this stage, but not what is known already."""

    path: str
    text: str
    stage: Stage
    time_limit: float
    skip_lines: list[int] = field(default_factory=list)
    """Top-level statements that ended an earlier child."""
    known: dict[str, str] = field(default_factory=dict)
    """Checks that have a result, with their status."""

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Job:
        return cls(**{**data, "stage": Stage(data["stage"])})


@dataclass(frozen=True)
class Remark:
    """Something worth knowing about the file that fails nothing."""

    text: str
    line: int | None = None
    where: str = ""


@dataclass
class Report:
    file: str
    stage: Stage
    results: list[Result]
    remarks: list[Remark]

    @property
    def passed(self) -> bool:
        return not any(result.counts_as_failure for result in self.results)

    def to_json(self) -> dict[str, Any]:
        return {"passed": self.passed, **asdict(self)}


def point_to_causes(report: Report) -> Report:
    """self_attention made of a wrong piece is wrong too: send the reader to the piece."""
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
            whole.advice = f"correct {', '.join(names)} first: that may be all."
    return report
