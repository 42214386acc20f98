"""What a job does on its node: run a command of the lab in a child, save when asked, resume after a restart.

Slurm's signals reach every process of a job. Their meaning here:

SIGUSR2  the time limit is near. submitit's handler calls `checkpoint`: the child is asked to stop and saves, then the
         job is requeued.
SIGTERM  the child saves by itself and ends. If Slurm still reports the job as running, it was pre-empted with a grace
         time: a job that ends by itself would count as completed, so it is requeued as above. If not, Slurm has
         already cancelled or requeued it, and the job has nothing to decide.

A job of several nodes has a task on each, which runs `attnlab.launch.node`, and the first decides. The others end with
exit code 0 after a stop, so that Slurm lets the first finish.

Slurm can also kill a job outright and start it again; whether there is a run to resume is read from the folder at each
start.
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
from attnlab.base.children import MODULE
from attnlab.base.errors import UserError
from attnlab.base.files import write_text
from attnlab.launch.queue import state_of
from attnlab.runs.folder import is_run, read_status

WARNING = signal.Signals[f"SIG{JobEnvironment.USR_SIG}"]  # the signal submitit asks Slurm for: SIGUSR2 by default
STOPPED = (128 + signal.SIGTERM, -signal.SIGTERM)  # asked to stop: after saving, or before it could save


@dataclass
class SlurmTask:
    """A command with the folder it writes to: `begin` starts a run there, `again` resumes it."""

    begin: list[str]
    again: list[str]
    folder: Path | None  # of the run; None: a command that is simply run again
    cwd: Path
    exits: Path  # folder of the file with the exit code
    on_each: int | None = None  # processes on each of several nodes; None: one node, and the command starts its own
    _child: int | None = field(default=None, repr=False)

    def __call__(self) -> None:
        environment = JobEnvironment()
        if environment.global_rank:
            code = self._run()
            sys.exit(0 if code in STOPPED else code)  # the first task decides about the job
        job = environment.job_id
        exit_file = self.exits / f"{job}_exit"
        exit_file.unlink(missing_ok=True)
        try:
            code = self._run()
            if code in STOPPED:
                if _still_running(job):
                    signal.raise_signal(WARNING)  # submitit's handler: checkpoint, requeue, exit
                sys.exit(STOPPED[0])
        except UncompletedJobError as reason:  # raised by that handler, wherever it interrupted
            console.fail(f"{reason} The run has saved; resume it with --resume and more --time or --restarts.")
            code = STOPPED[0]
        code = 128 - code if code < 0 else code
        write_text(exit_file, f"{code}\n")
        sys.exit(code)

    def checkpoint(self) -> DelayedSubmission:
        """Called by submitit in a signal handler: let the child save and end, and return the task to requeue."""
        if self._child is not None:
            try:
                os.kill(self._child, signal.SIGTERM)
                os.waitid(os.P_PID, self._child, os.WEXITED | os.WNOWAIT)
            except (ProcessLookupError, ChildProcessError):
                pass  # it had ended already
        return DelayedSubmission(replace(self, _child=None))

    def _command(self) -> list[str]:
        """The command that is left to run; empty if the run is finished."""
        if self.folder is None or not is_run(self.folder):
            return self.begin
        return [] if read_status(self.folder)["state"] == "finished" else self.again

    def _run(self) -> int:
        command = self._command()
        if self.on_each is not None:
            command = [*MODULE, "attnlab.launch.node", str(self.on_each), str(self.folder), *command]
        if not command:
            return 0
        signal.pthread_sigmask(
            signal.SIG_BLOCK, {WARNING}
        )  # inherited by the child and its children, which it would kill
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
        return False  # Slurm cannot be asked: end, the run has saved


Task = SlurmTask  # jobs that wait in a queue may have been pickled under this name
