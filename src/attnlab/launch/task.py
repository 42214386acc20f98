"""What a job does on its node: run a command of the lab in a child, save when told to, go on after a restart.

Slurm's signals reach every process of a job. What they mean here:

SIGUSR2  time is nearly up. submitit's handler calls `checkpoint`: the child is asked to stop and saves, then the job
         is put back in the queue.
SIGTERM  the child saves by itself and ends. If Slurm still calls the job running, it was pre-empted and has its time
         of grace: a job that ends by itself would be taken for done, so it is put back in the queue as above.
         If not, Slurm has decided already, cancelled or back in the queue, and it is not for the job to say which.

A job of several nodes has a task on each, and the first decides: `node` is what they run. The others end without a
fuss whatever happens, so that Slurm lets the first finish.

A job can also be killed outright and started again by Slurm; whether there is a run to go on with is looked up in the
folder each time, never remembered.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from submitit.core.job_environment import JobEnvironment
from submitit.core.utils import DelayedSubmission, UncompletedJobError

from attnlab.base import console
from attnlab.base.errors import UserError
from attnlab.base.files import write_text
from attnlab.launch.queue import state_of
from attnlab.runs.folder import is_run, read_status

WARNING = signal.Signals[f"SIG{JobEnvironment.USR_SIG}"]  # the one submitit asks Slurm for: SIGUSR2 unless told
STOPPED = (128 + signal.SIGTERM, -signal.SIGTERM)  # told to stop: after saving, or before it could


@dataclass
class Task:
    """A command with the folder it writes to; `again` goes on with what `begin` has begun there."""

    begin: list[str]
    again: list[str]
    folder: Path | None  # of the run; None for what is done whenever it is asked
    cwd: Path
    exits: Path  # where the exit code is left for those who wait
    on_each: int | None = None  # processes on each of several nodes; None: one node, and the command starts its own
    _child: int | None = field(default=None, repr=False)

    def __call__(self) -> None:
        environment = JobEnvironment()
        if environment.global_rank:
            code = self._run()
            sys.exit(0 if code in STOPPED else code)  # what it means is for the first to say
        job = environment.job_id
        said = self.exits / f"{job}_exit"
        said.unlink(missing_ok=True)
        try:
            code = self._run()
            if code in STOPPED:
                if _still_running(job):
                    signal.raise_signal(WARNING)  # submitit's handler: checkpoint, back in the queue, exit
                sys.exit(STOPPED[0])
        except UncompletedJobError as reason:  # from that handler, wherever it came in
            console.fail(f"{reason} The run has saved; give it more --time or --restarts and go on with --resume.")
            code = STOPPED[0]
        code = 128 - code if code < 0 else code
        write_text(said, f"{code}\n")
        sys.exit(code)

    def checkpoint(self) -> DelayedSubmission:
        """Called by submitit, in a signal handler: let the child save and end, and hand over what goes on."""
        if self._child is not None:
            try:
                os.kill(self._child, signal.SIGTERM)
                os.waitid(os.P_PID, self._child, os.WEXITED | os.WNOWAIT)
            except (ProcessLookupError, ChildProcessError):
                pass  # it had ended already
        return DelayedSubmission(replace(self, _child=None))

    def _command(self) -> list[str]:
        """What is left to do; empty if nothing is."""
        if self.folder is None or not is_run(self.folder):
            return self.begin
        return [] if read_status(self.folder)["state"] == "finished" else self.again

    def _run(self) -> int:
        command = self._command()
        if self.on_each is not None:
            command = [sys.executable, "-m", "attnlab.launch.node", str(self.on_each), str(self.folder), *command]
        if not command:
            return 0
        signal.pthread_sigmask(signal.SIG_BLOCK, {WARNING})  # for the child and its children: they would die of it
        child = subprocess.Popen(command, cwd=self.cwd)
        self._child = child.pid
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {WARNING})
        while child.poll() is None:
            time.sleep(0.1)
        self._child = None
        return child.returncode


def _still_running(job: str) -> bool:
    try:
        return state_of(job) == "RUNNING"
    except UserError:
        return False  # nobody to ask: end, the run has saved
