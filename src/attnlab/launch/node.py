"""The launcher of one node of several: `python -m attnlab.launch.node N RUN COMMAND...` starts N processes.

srun's variables say which node this is and where the first one is. The command is that of the first node, which may
find that nothing is left to do; the first node reports a process that fails, before or after the processes connect.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from attnlab.base.interrupts import one_sentence
from attnlab.distributed.team import QUIET_TORCH, find_rank


def main(count: str, run: str, *command: str) -> None:
    os.environ.update({**QUIET_TORCH, **os.environ})  # before torch is imported
    from attnlab.launch.processes import run_processes
    from attnlab.launch.rendezvous import LauncherGroup

    with one_sentence():
        launchers = LauncherGroup(find_rank())
        agreed_command = launchers.from_first(command)
        if not agreed_command:
            return launchers.finish_without_command()
        sys.exit(run_processes(int(count), agreed_command, Path(run), launchers))


if __name__ == "__main__":
    main(*sys.argv[1:])
