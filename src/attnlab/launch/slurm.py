"""Submitting: submitit writes the sbatch file, pickles the task and keeps the log, all in the run's `slurm/`."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnlab.base.errors import UserError
from attnlab.launch.config import SlurmSection
from attnlab.launch.queue import last_line

if TYPE_CHECKING:
    from attnlab.launch.task import SlurmTask

SLURM_FOLDER = "slurm"  # in a run folder
# However the task of one node ends, that of the first may still be saving, and it reports what happened.
WAIT_FOR_FIRST_NODE = ["--kill-on-bad-exit=0", "--wait=0"]


def require_slurm() -> None:
    """A UserError where nothing can be submitted."""
    if shutil.which("sbatch") is None:
        raise UserError(
            "Slurm is not installed here: there is no sbatch; leave out --launch, or use a login node of a cluster."
        )
    try:
        import submitit  # noqa: F401
    except ImportError:
        raise UserError("--launch slurm needs submitit: pip install 'attnlab[slurm]'.") from None


def submit(
    tasks: Sequence[SlurmTask],
    folder: Path,
    slurm: SlurmSection,
    name: str,
    at_once: int | None = None,
    after: str | None = None,
) -> list[str]:
    """Submit one job, or an array of which `at_once` run at a time, to start when job `after` ends; returns the ids."""
    from submitit import SlurmExecutor
    from submitit.core.utils import FailedJobError

    executor = SlurmExecutor(folder / SLURM_FOLDER, max_num_timeout=slurm.restarts)
    executor.update_parameters(**_parameters(slurm, name, at_once or len(tasks), after))
    try:
        with redirect_stderr(StringIO()):  # where submitit repeats the message of sbatch
            jobs = executor.submit_array(list(tasks)) if len(tasks) > 1 else [executor.submit(tasks[0])]
    except FailedJobError as failure:
        raise UserError(f"Slurm refused the job: {_refusal(str(failure))}") from None
    return [job.job_id for job in jobs]


def _parameters(slurm: SlurmSection, name: str, at_once: int, after: str | None) -> dict[str, Any]:
    more: dict[str, Any] = {line[2:].partition("=")[0]: line.partition("=")[2] or True for line in slurm.sbatch}
    several = slurm.nodes > 1
    # since Slurm 22.05 a step does not inherit the number of cores of its job
    srun = [*(["--cpus-per-task", str(slurm.cpus)] if slurm.cpus else []), *(WAIT_FOR_FIRST_NODE if several else [])]
    parameters = {
        "job_name": f"attnlab-{name}",
        "partition": slurm.partition,
        "time": slurm.minutes,
        "nodes": slurm.nodes,
        "gpus_per_node": slurm.gpus,
        "cpus_per_task": slurm.cpus,
        "account": slurm.account,
        "qos": slurm.qos,
        "mem": f"{round(slurm.memory * 1024)}M" if slurm.memory else None,
        "constraint": slurm.constraint,
        "signal_delay_s": slurm.warning_seconds,
        "dependency": f"afterany:{after}" if after else None,
        "array_parallelism": at_once,
        "stderr_to_stdout": True,
        "additional_parameters": {"requeue": True} | more,
        "setup": ["export PYTHONSAFEPATH=1"],  # modules are not searched for in the folder of the submission
        "ntasks_per_node": 1 if several else None,
        "srun_args": srun or None,
    }
    return {key: value for key, value in parameters.items() if value is not None}


def _refusal(text: str) -> str:
    """The reason that sbatch gives; a second line may repeat that it failed."""
    first = last_line(next(iter(text.strip().splitlines()), "no reason given"))
    return first.removeprefix("sbatch: ").removeprefix("Batch job submission failed: ").rstrip(".") + "."


def log_of(folder: Path, job: str) -> Path:
    """The log of a job, errors included; a restart appends to it."""
    from submitit.core.utils import JobPaths

    return JobPaths(folder / SLURM_FOLDER, job_id=job).stdout


def cancel(folder: Path, job: str) -> None:
    from submitit import SlurmJob

    SlurmJob(folder / SLURM_FOLDER, job).cancel(check=False)
