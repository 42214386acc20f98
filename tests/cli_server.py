"""Runs commands of the lab in forked children of a process that has imported the heavy libraries once.

One line of JSON per request on standard input, {"words": [...], "cwd": ..., "out": PATH, "err": PATH, "timeout": s},
and optionally "in": PATH;
one line with the exit code per answer. Nothing of the libraries is run before the fork, so a child is what
`python -m attnlab WORDS...` is, two seconds sooner. The lab itself is imported in the child.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import sys
import time

import accelerate  # noqa: F401
import matplotlib.pyplot  # noqa: F401
import pydantic  # noqa: F401
import rich.console  # noqa: F401
import scipy.special  # noqa: F401
import torch  # noqa: F401
import transformers  # noqa: F401
import typer  # noqa: F401
import yaml  # noqa: F401


def run_child(request: dict[str, object]) -> None:
    """Ends by SystemExit: the child shuts down as any interpreter does."""
    os.setsid()
    os.chdir(str(request["cwd"]))
    streams = (
        (str(request.get("in", os.devnull)), os.O_RDONLY, 0),
        (str(request["out"]), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 1),
        (str(request["err"]), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 2),
    )
    for path, flags, number in streams:
        os.dup2(os.open(path, flags, 0o600), number)
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
    words = request["words"]
    assert isinstance(words, list)
    sys.argv = ["attnlab", *words]
    code = 0
    try:
        runpy.run_module("attnlab", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        import traceback

        traceback.print_exc()
        code = 1
    raise SystemExit(code)


def wait(child: int, timeout: float) -> int:
    """The exit code, as subprocess gives it; -9 after the time is up."""
    deadline = time.monotonic() + timeout
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            os.killpg(child, signal.SIGKILL)
        time.sleep(0.005)


def main() -> None:
    print("ready", flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            run_child(request)
        print(wait(child, float(request["timeout"])), flush=True)


if __name__ == "__main__":
    main()
