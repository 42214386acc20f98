"""One run among several that belong together: begun, gone on with, or left alone when it is finished."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attnlab.base.interrupts import Interrupted
from attnlab.config import Section
from attnlab.distributed.team import current
from attnlab.jobs.engine import RunOptions, saved_config
from attnlab.jobs.registry import config_of, run_kind
from attnlab.runs import RunFolder, is_run, read_status
from attnlab.runs.checkpoints import Checkpoints
from attnlab.training.callbacks import Callback


def run_stage(
    kind: str, config: Section, path: Path, label: str, again: str | None = None, callbacks: tuple[Callback, ...] = ()
) -> None:
    """Train into `path` whatever is missing there; one that was begun keeps its configuration."""
    state = current().from_first(lambda: _state_of(path))
    if state == "finished":
        return
    begun = state is not None
    chosen = saved_config(path, config_of(kind)) if begun else config
    run_kind(kind, chosen, RunOptions(path, resume=begun, label=label, again=again, callbacks=callbacks))


def keep_weights(path: Path) -> None:
    """What a finished run would need to go on is let go: it never does, and of many runs it fills the disk."""
    for folder in path.rglob("checkpoints"):
        Checkpoints(folder).keep_weights()


def _state_of(path: Path) -> str | None:
    if is_run(path):
        return str(read_status(path)["state"])
    if path.exists():
        shutil.rmtree(path)  # killed before there was anything to go on with
    return None


@contextmanager
def ending_told(run: RunFolder) -> Iterator[None]:
    """Whatever goes wrong here is written to the status of the run that holds the others; the folder is let go."""
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
