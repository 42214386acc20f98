"""One of several runs that belong together: started, resumed, or skipped if finished."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attnlab.base.errors import RunFailed, UserError
from attnlab.base.files import write_text
from attnlab.base.interrupts import Interrupted
from attnlab.base.machine.facts import is_out_of_memory
from attnlab.config.sections import MachineSection, Section, machine_of
from attnlab.distributed.team import current
from attnlab.jobs.job import RunOptions
from attnlab.jobs.registry import KINDS, saved_config
from attnlab.runs import RunFolder, is_run, read_config, read_status
from attnlab.runs.checkpoints import Checkpoints
from attnlab.training.callbacks import Callback

PRECISION_FILE = "precision.txt"
PRECISIONS = ("fp32", "bf16", "fp16")


def run_subrun(
    kind: str,
    config: Section,
    path: Path,
    label: str,
    resume_command: str | None = None,
    callbacks: tuple[Callback, ...] = (),
    changes: tuple[str, ...] = (),
) -> None:
    """Start or resume the run in `path`, unless it is finished; a started run keeps its configuration."""
    state = current().from_first(lambda: _state(path))
    if state == "finished":
        return
    started = state is not None
    options = RunOptions(
        path, resume=started, label=label, resume_command=resume_command, callbacks=callbacks, changes=changes
    )
    KINDS[kind].job()(saved_config(path) if started else config).run(options)


def keep_only_weights(path: Path) -> None:
    """Delete the optimizer states of a finished run: it is never resumed, and many runs would fill the disk."""
    for folder in path.rglob("checkpoints"):
        Checkpoints(folder).keep_weights()


def _state(path: Path) -> str | None:
    if is_run(path):
        return str(read_status(path)["state"])
    if path.exists():
        shutil.rmtree(path)  # killed before there was anything to resume
    return None


@contextmanager
def ending_recorded(run: RunFolder) -> Iterator[None]:
    """Record an interruption or failure in the status of the outer run, and release its folder."""
    try:
        yield
    except Interrupted as interruption:
        run.set_status("interrupted", str(interruption))
        raise
    except BaseException as failure:
        run.set_status("failed", str(failure) or type(failure).__name__)
        raise
    finally:
        run.close()


def reason_of(failure: Exception) -> str:
    """Why a run failed, for its row in a table."""
    if is_out_of_memory(failure):
        return "it ran out of memory: use a smaller batch, shorter texts or a smaller model."
    return str(failure) if isinstance(failure, UserError | RunFailed) else f"{type(failure).__name__}: {failure}"


def with_precision(root: Path, config: Section) -> Section:
    """The precision that the first run measured to be faster is that of all: they must be comparable."""
    machine, file = machine_of(config), root / PRECISION_FILE
    if machine.precision == "auto" and file.is_file():
        precision = file.read_text(encoding="utf-8", errors="replace").strip()
        if precision not in PRECISIONS:
            raise UserError(
                f"{file}: expected {', '.join(PRECISIONS[:-1])} or {PRECISIONS[-1]}, got {precision[:40]!r}."
            )
        config = config.model_copy()
        set_machine(config, machine.model_copy(update={"precision": precision}))
    return config


def store_precision(root: Path, run: Path) -> None:
    """Of a run that consists of several, the first one's."""
    file, first = root / PRECISION_FILE, run / "pretrain"
    precision = read_config(first if is_run(first) else run).get("machine", {}).get("precision", "auto")
    if precision != "auto" and not file.exists():
        write_text(file, f"{precision}\n")


def set_machine(config: Section, machine: MachineSection) -> None:
    setattr(config, "machine", machine)  # noqa: B010  # every configuration of an experiment has one
