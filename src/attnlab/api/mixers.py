"""`lab.audit` and `lab.check`: is a mixer sound, and is an implementation of attention right?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnlab.api.gpt import attention_name

if TYPE_CHECKING:
    from attnlab.api.gpt import Attention
    from attnlab.attention.audit import Audit
    from attnlab.check.results import CheckReport


def audit(attention: Attention, *, cost: bool = True, half: bool = True, **shape: Any) -> Audit:
    """Check that a mixer keeps its promises: it sees no later token, decodes as it trains, costs what it states.

    `attention` is a name, a file or a class; `shape` are fields of `MixerShape` such as width=16, heads=4, context=72.
    `cost` measures time and memory, `half` tries 16-bit precision in a process of its own.
    """
    from dataclasses import replace

    from attnlab.attention.audit.future import DEFAULT
    from attnlab.attention.audit.run import audit as run

    return run(attention_name(attention), replace(DEFAULT, **shape), cost, half)


def check(file: str | Path, stage: str = "heads", time_limit: float = 10.0) -> CheckReport:
    """Check your own attention, function by function, in a .py file or a notebook, and name the likely mistake.

    `stage` is plain, causal or heads; `time_limit` is in seconds per function.
    """
    from attnlab.base.errors import UserError, unknown
    from attnlab.check.results import ExerciseStage
    from attnlab.check.runner import check_file

    if stage not in list(ExerciseStage):
        raise UserError(unknown("stage", stage, list(ExerciseStage)))
    if time_limit <= 0:
        raise UserError(f"time_limit must be above zero, got {time_limit:g}.")
    return check_file(Path(file), ExerciseStage(stage), time_limit)
