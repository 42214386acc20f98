"""A run in several processes, started from Python: each carries out a command of the lab, for they share no objects."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from attnlab.base.children import MODULE
from attnlab.base.errors import RunFailed
from attnlab.config.sections import MachineSection
from attnlab.runs.folder import read_status


def run_command(words: Sequence[str], machine: MachineSection, run: Path) -> None:
    """`attnlab WORDS` in as many processes as the machine section states; the first of them writes the run."""
    from attnlab.launch.processes import run_processes
    from attnlab.training.setup import must_be_possible

    must_be_possible(machine)
    if run_processes(machine.processes, [*MODULE, "attnlab", *words], run) != 0:
        raise RunFailed(f"{run}: {read_status(run).get('reason') or 'the run failed'}.")
