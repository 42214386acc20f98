"""Commands of the lab in forked children of this process, which has imported the heavy libraries once."""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

import accelerate  # noqa: F401
import matplotlib.backends.backend_agg
import matplotlib.backends.backend_svg
import matplotlib.pyplot  # noqa: F401
import scipy.special  # noqa: F401
import torch
import torch._dynamo
import torch.distributed.fsdp
import torch.utils.tensorboard
from tools.faults.operations import Kill, Operations

import attnlab.experiments.rewrite
import attnlab.jobs.knowledge
import attnlab.jobs.language
import attnlab.models.loading
import attnlab.training.optimizers  # noqa: F401
from attnlab.cli import main

TIMEOUT = 300.0
HANG = -100  # the exit code of a command that did not end


@dataclass(frozen=True)
class Done:
    words: tuple[str, ...]
    code: int
    output: str
    operations: int = 0

    @property
    def is_sentence(self) -> bool:
        """Whether it succeeded or ended in a sentence, as every command must."""
        return self.code in (0, 1, 2) and "Traceback" not in self.output

    def __str__(self) -> str:
        last = self.output.strip().splitlines()[-1:] or [""]
        return f"attnlab {' '.join(self.words)}: exit code {self.code}: {last[0]}"


class Child:
    """A command that is running."""

    def __init__(
        self, words: list[str], log: Path, watched: Path | None = None, kill: Kill | None = None, text: str = ""
    ) -> None:
        self.words, self.log, self.count_file = tuple(words), log, log.with_suffix(".count")
        self.count_file.unlink(missing_ok=True)
        self.input = log.with_suffix(".in")
        self.input.write_text(text, encoding="utf-8")
        self.deadline = time.monotonic() + TIMEOUT
        self.hangs = False
        self.pid = os.fork()
        if self.pid == 0:
            self._run(watched, kill)

    def _run(self, watched: Path | None, kill: Kill | None) -> None:
        code = 1
        try:
            os.setsid()
            output = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            for number, descriptor in ((0, os.open(self.input, os.O_RDONLY)), (1, output), (2, output)):
                os.dup2(descriptor, number)
            sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
            sys.argv = ["attnlab", *self.words]
            torch.set_num_threads(1)
            operations = Operations(watched, kill, self.count_file) if watched is not None else None
            if operations is not None:
                operations.watch()
            code = self._code()
            if operations is not None:
                operations.end()
        except BaseException:
            traceback.print_exc()
        finally:
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            os._exit(code)

    def _code(self) -> int:
        try:
            main()
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else int(end.code is not None)
        return 0

    def wait(self) -> Done:
        while not self.ended():
            time.sleep(0.005)
        return self.finished()

    def ended(self) -> bool:
        """Whether it has ended; one that takes too long is killed."""
        if time.monotonic() > self.deadline and not self.hangs:
            os.killpg(self.pid, signal.SIGKILL)
            self.hangs = True
        done, self.status = os.waitpid(self.pid, os.WNOHANG)
        return done != 0

    def kill(self) -> None:
        os.killpg(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def finished(self) -> Done:
        """What an ended command left."""
        count = int(self.count_file.read_text()) if self.count_file.exists() else 0
        output = self.log.read_text(errors="replace")
        code = HANG if self.hangs else os.waitstatus_to_exitcode(self.status)
        return Done(self.words, code, output, count)


def run(words: list[str], log: Path, watched: Path | None = None, kill: Kill | None = None, text: str = "") -> Done:
    """A command, to its end, with a text on its standard input."""
    return Child(words, log, watched, kill, text).wait()
