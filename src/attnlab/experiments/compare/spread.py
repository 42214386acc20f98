"""A comparison whose cells are run by many processes, one each, on machines that share its folder.

One process writes down what is asked (`queue_comparison`), many run a cell (`run_cell`), one makes the report
(`gather_comparison`). None of them needs another to be alive.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from attnlab.base.errors import RunFailed, UserError
from attnlab.experiments.compare.cells import Cell, cells
from attnlab.experiments.compare.plan import Plan, report
from attnlab.experiments.compare.run import KIND, saved_comparison
from attnlab.experiments.compare.subjects import subject_of
from attnlab.jobs.stages import ending_told
from attnlab.runs import RunFolder, is_run, read_status
from attnlab.training import setup

QUEUED = "a cluster runs its cells"


def queue_comparison(path: Path, config: Any) -> None:
    """A new comparison whose cells others will run. What 'auto' means is left to their machine."""
    subject_of(config).check(config)
    run = RunFolder.create(path, KIND, config.model_dump(mode="json"), 0)
    run.set_status("queued", QUEUED)
    run.close()


def requeue_comparison(path: Path, config: Any) -> None:
    """The same for one that was begun; `config` is the saved one, or has more seeds."""
    subject_of(config).check(config)
    run = RunFolder.join(path)
    with run.locked():
        run.write_config(config.model_dump(mode="json"))
        run.set_status("queued", QUEUED)


def forget_comparison(path: Path, begun: bool) -> None:
    """Nobody will run the cells after all: a new comparison leaves nothing, one that was begun stays."""
    if begun:
        RunFolder.join(path).set_status("interrupted", "its runs could not be handed over")
    else:
        shutil.rmtree(path)


def missing_cells(path: Path, config: Any) -> list[tuple[int, Cell]]:
    """The cells without a finished run, with their numbers."""
    return [(number, cell) for number, cell in enumerate(cells(config)) if _state(cell, path) != "finished"]


def run_cell(path: Path, number: int) -> None:
    """One cell of a comparison, beside others that run the other ones."""
    run = RunFolder.join(path)
    config = _settled(run)
    wanted = list(cells(config))
    if not 0 <= number < len(wanted):
        raise UserError(f"--cell {number}: {path} has the cells 0 to {len(wanted) - 1}.")
    plan = Plan(config, run)
    plan.run(wanted[number], f"{wanted[number].variant.label}, seed {wanted[number].seed}")
    if plan.last_reason:
        raise RunFailed(plan.last_reason)


def gather_comparison(path: Path) -> Path:
    """Results and report of what is finished; cells that never got so far are named."""
    config, run = saved_comparison(path), RunFolder.join(path)
    plan = Plan(config, run)
    with ending_told(run):
        missing = [cell for _, cell in missing_cells(path, config)]
        lost = [cell for cell in missing if plan.note_missing(cell, _state(cell, path))]
        report(config, run)
        if lost:
            raise RunFailed(
                f"{len(lost)} of {len(list(cells(config)))} runs are missing: "
                f"go on with 'attnlab compare --run {path} --resume'."
            )
    return path


def _state(cell: Cell, root: Path) -> str:
    path = cell.path(root)
    return str(read_status(path)["state"]) if is_run(path) else "not begun"


def _settled(run: RunFolder) -> Any:
    """The configuration with every 'auto' of the machine resolved: by the first who asks, for all."""
    with run.locked():
        config = saved_comparison(run.path)
        machine = setup.resolve(config.machine)
        if machine != config.machine:
            config.machine = machine
            run.write_config(config.model_dump(mode="json"))
    return config
