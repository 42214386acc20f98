"""What a sweep can be told. Free of torch and of Optuna: help must be quick."""

from __future__ import annotations

import os
import re
from typing import Any, ClassVar, Literal

from pydantic import field_validator

from attnlab.config import MachineSection, Section, option
from attnlab.jobs.several import ManyRuns, beside

DEFAULT_TRIALS = 20
JOURNAL = "journal"


class SweepSection(ManyRuns):
    topic: ClassVar[str] = "What is searched"

    job: str = option("classify", "What is run: classify, finetune, language, knowledge.")
    vary: dict[str, list[Any]] = option(
        {},
        "Settings with values (optimizer.lr=1e-4,1e-3; tuning.method=full,head) or, not for a grid, a range "
        "(training.epochs=2..10; optimizer.lr=1e-5..1e-3 log).",
    )
    search: Literal["grid", "random", "guided"] = option(
        "grid", "grid (every value with every other), random, or guided (Optuna's TPE: where good ones were found)."
    )
    trials: int | None = option(
        None, f"How many settings random and guided try (default: {DEFAULT_TRIALS}, or what --seconds allow).", ge=1
    )
    seconds: float | None = option(None, "Begin nothing new after so many seconds; what runs is finished.", gt=0)
    prune: Literal["median", "halving", "none"] = option(
        "none", "End hopeless runs early: median (worse than half of the others so far), halving (successive)."
    )
    seeds: int = option(1, "Runs of each, with the seeds 0, 1, ...; the choice is by their mean on dev.", ge=1)
    search_seed: int = option(0, "Seed of random and guided.", ge=0)
    store: str = option(
        JOURNAL, "Where trials are kept: journal (a file in the folder), sqlite:///file.db, postgresql://user@host/db."
    )

    @field_validator("store")
    @classmethod
    def _store(cls, value: str) -> str:
        if value == JOURNAL:
            return value
        if value.startswith("sqlite:///") and len(value) > len("sqlite:///"):
            return "sqlite:///" + os.path.abspath(os.path.expanduser(value.removeprefix("sqlite:///")))
        if value.startswith("postgresql://"):
            if re.match(r"postgresql://[^/@]*:[^/@]*@", value) or "password=" in value:
                raise ValueError(
                    "leave the password out of the address, which the sweep's folder keeps: "
                    "PGPASSWORD or ~/.pgpass can hold it"
                )
            return value
        raise ValueError(f"{value!r} is no store: write journal, sqlite:///file.db or postgresql://user@host/database")


class SweepFlags(Section):
    """The flags of the command; all else is a setting of the job, told by its name."""

    sweep: SweepSection = SweepSection()
    machine: MachineSection = MachineSection()


def sweep_of(job: str) -> type[Any]:
    """What a sweep over such jobs is told: what is searched, and the job's own settings."""
    return beside(job, "sweep", SweepSection(job=job))
