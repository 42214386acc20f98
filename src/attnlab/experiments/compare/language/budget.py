"""A budget in seconds as a number of steps, from the measured pace of a variant.

The number is fixed before the first run of a variant and the same for all its seeds: a schedule needs to know
where it ends, and a run that is taken up again must end where it would have.
"""

from __future__ import annotations

import torch

from attnlab.base.randomness import seed_everything
from attnlab.config.language import LanguageConfig
from attnlab.jobs.language import LanguageJob
from attnlab.training.precision_choice import FEWEST_STEPS, choose_precision
from attnlab.training.speed import measure_pace


def steps_in(seconds: float, config: LanguageConfig) -> int:
    """How many training steps of this model fit; found with one that is thrown away."""
    torch.set_num_threads(int(config.machine.threads))
    seed_everything(config.training.seed)
    job = LanguageJob(config)
    parts = job.build(config.machine.device)
    batches = job.batches(parts.data)  # type: ignore[arg-type]
    if config.machine.precision == "auto":
        config = config.model_copy(deep=True)
        config.machine.precision, _ = choose_precision(parts.model, parts.objective, batches, config, FEWEST_STEPS)
    pace = measure_pace(parts.model, parts.objective, batches, config)
    return max(1, round(seconds / pace.seconds_a_step))
