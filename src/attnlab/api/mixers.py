"""`lab.audit` and `lab.check`: is a mixer sound, and is an implementation of attention right?"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from attnlab.api.arguments import checked
from attnlab.api.gpt import attention_name

if TYPE_CHECKING:
    from attnlab.api.gpt import Attention
    from attnlab.attention.audit import Audit
    from attnlab.check.results import CheckReport

    Source = str | os.PathLike[str]


@checked
def audit(
    attention: Attention,
    *,
    width: int = 16,
    heads: int = 4,
    context: int = 136,
    causal: bool = True,
    positions: str = "none",
    cost: bool = True,
    half: bool = True,
) -> Audit:
    """Check that a mixer keeps its promises: it sees no later token, decodes as it trains, costs what it states.

    `attention` is a name, a file, a class, or a module that is built, with its `width`. `context` is the length of the
    longest sequence that is checked. `cost` measures time and memory, `half` tries 16-bit precision in a process of its
    own. A file is audited in such a process as a whole: it may end or hang without harm.
    """
    from attnlab.attention import MixerShape
    from attnlab.attention.audit.child import audit_file
    from attnlab.attention.audit.run import audit as run

    shape = MixerShape(width, heads, context, causal, positions=positions)
    name = attention_name(attention)
    return (audit_file if name.endswith(".py") else run)(name, shape, cost, half)


@checked
def check(
    file: Source, stage: str = "heads", time_limit: float = 10.0, seed: int | None = None, record: Source | None = None
) -> CheckReport:
    """Check your own attention, function by function, in a .py file or a notebook, and name the likely mistake.

    `stage` is plain, causal or heads; `time_limit` is in seconds per function; `seed` repeats the inputs of an earlier
    check; to `record` each result is appended as a line of JSON when it is known.
    """
    from attnlab.base.errors import UserError, unknown
    from attnlab.check.results import ExerciseStage
    from attnlab.check.runner import check_file

    if stage not in list(ExerciseStage):
        raise UserError(unknown("stage", stage, list(ExerciseStage)))
    if time_limit <= 0:
        raise UserError(f"the time limit must be above zero, got {time_limit:g} seconds.")
    return check_file(Path(file), ExerciseStage(stage), time_limit, seed, Path(record) if record is not None else None)
