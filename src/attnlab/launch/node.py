"""What a task of several does on its node, as `python -m attnlab.launch.node N RUN COMMAND...`: start N processes.

srun's variables say which node this is and where the first one is. The command is taken from the first, which may find
that there is nothing left to do; if a process fails that is told there, before or after the processes have met.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from attnlab.base.exit_codes import one_sentence
from attnlab.distributed.rank import QUIET, find_place


def main(count: str, run: str, *command: str) -> None:
    os.environ.update({**QUIET, **os.environ})  # before torch is there
    from attnlab.launch.processes import run_several
    from attnlab.launch.rendezvous import Machines

    with one_sentence():
        machines = Machines(find_place())
        agreed = machines.from_first(command)
        if not agreed:
            return machines.say_there_is_nothing_to_do()
        sys.exit(run_several(int(count), agreed, Path(run), machines))


if __name__ == "__main__":
    main(*sys.argv[1:])
