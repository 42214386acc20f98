"""Runs `attnlab WORDS...`, which sends itself a signal once it has written a step of a run: never too early and never
too late, however busy the machine is.

    python tests/stop_at.py SIGNAL STEP PART WORDS...

PART is a part of the run's path; it may be empty. If the first of WORDS is a script, that is run instead.
"""

from __future__ import annotations

import os
import runpy
import sys
from typing import Any

from attnlab.runs.metrics import MetricsWriter


def main() -> None:
    number, step, part = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    write, sent = MetricsWriter.write, []

    def write_and_stop(writer: MetricsWriter, **values: Any) -> None:
        write(writer, **values)
        if not sent and values.get("step", 0) >= step and part in str(writer._file.name):
            sent.append(step)
            os.kill(os.getpid(), number)

    MetricsWriter.write = write_and_stop  # type: ignore[method-assign]
    if sys.argv[4].endswith(".py"):
        sys.argv = sys.argv[4:]
        sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))
        runpy.run_path(sys.argv[0], run_name="__main__")
    else:
        sys.argv = ["attnlab", *sys.argv[4:]]
        runpy.run_module("attnlab", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
