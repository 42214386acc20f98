"""The contract of a job: every kind of run is trained, resumed, compared, searched, scored and loaded through the same
functions.

A kind whose run is one training derives from `engine.TrainingJob` and writes `build`; one that consists of several
runs writes `run`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

from torch import nn

from attnlab.data.batching import Examples
from attnlab.report.page import Passage
from attnlab.runs import ROOT, RunFolder
from attnlab.training.callbacks import Callback, TrainState
from attnlab.training.estimate import Estimate
from attnlab.training.loop import Metric
from attnlab.training.objectives import Evaluate, Objective


@dataclass
class Parts:
    """What a job passes to the training loop."""

    model: nn.Module
    objective: Objective
    data: Examples
    evaluate: Evaluate | None = None
    metric: Metric | None = None
    files: dict[str, str] = field(default_factory=dict)
    """Texts to be stored in the run folder, by name."""
    facts: dict[str, Any] = field(default_factory=dict)
    """About the data, for the record."""
    changes: list[str] = field(default_factory=list)
    """Sentences on how the run differs from the given settings."""
    fit: Callable[[], int] | None = None
    """Finds the weights at once, without steps; returns its iterations."""
    finish: Callable[[RunFolder, TrainState], dict[str, Any]] | None = None
    """Scores the trained model and returns the results."""
    callbacks: list[Callback] = field(default_factory=list)
    reading_seconds: float = 0.0
    """Spent on what is computed once from the texts, before the first step."""
    passages: Callable[[Path, dict[str, Any]], Sequence[Passage]] | None = None
    """For the run's page, from its folder and record."""
    whole: nn.Module | None = None
    """The model that `model` is a part of, if the rest is not trained."""


@dataclass(frozen=True)
class RunOptions:
    """Where a run is stored and whether it is a new one."""

    path: Path | None = None
    overwrite: bool = False
    resume: bool = False
    dry_run: bool = False
    label: str | None = None
    root: Path = ROOT
    resume_command: str | None = None
    """The command that resumes it, if the run is part of an experiment or a chain."""
    callbacks: tuple[Callback, ...] = ()
    """Called after the lab's own."""
    changes: tuple[str, ...] = ()
    """Sentences on how the run differs from what was asked that were already printed: for its record."""


class TrainedModel(Protocol):
    """The model of a run with its best weights and, depending on the kind, its tokenizer or vocabulary."""

    @property
    def run(self) -> Path: ...

    @property
    def model(self) -> nn.Module: ...


class Job(Protocol):
    """One run, from its settings to a finished folder."""

    kind: ClassVar[str]
    prunable: ClassVar[bool]
    """Whether its evaluations while training can end it early."""

    def __init__(self, config: Any) -> None: ...

    def run(self, options: RunOptions) -> Path | None:
        """Train, or resume, into a run folder; returns it, or None after a dry run."""
        ...

    def estimate(self) -> Estimate | None:
        """Time and memory of all steps; None where they are not known before the first run. Writes nothing."""
        ...

    @classmethod
    def score_test(cls, run: Path) -> dict[str, float]:
        """The test scores of a finished run."""
        ...

    @classmethod
    def load(cls, run: Path) -> TrainedModel:
        """The model that a run trained."""
        ...

    @classmethod
    def passages(cls, run: Path, record: dict[str, Any]) -> Sequence[Passage]:
        """What the page of a run of this kind shows besides what all show."""
        ...
