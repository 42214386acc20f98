"""How long the command line takes to answer, beside the start of Python and of other command lines.

    python benchmarks/startup.py
    python benchmarks/startup.py --repeats 21 --runs 200 --json startup.json

Each command is a new process. Commands alternate, so that a busy moment of the machine hits all; medians of the wall
time are printed, with their ratio to `python -c "import typer"`, the library every such command line has to import.
The limits: help and completion within 0.4 s, a list of 200 runs within 0.6 s.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PEER = 'python -c "import typer"'
LIMITS = {"attnlab --help": 0.4, "attnlab <TAB>": 0.4, "attnlab classify --<TAB>": 0.4, "attnlab runs": 0.6}
LINES = 500  # of metrics in each run


def write_runs(root: Path, count: int) -> None:
    """Finished and unfinished runs with a file of metrics each, as a training leaves them."""
    lines = [
        json.dumps({"step": 10 * n, "split": "train", "loss": 1.0, "lr": 1e-3, "seconds": n}) for n in range(LINES)
    ]
    for number in range(count):
        path = root / f"2026-01-01-{number:06d}-classify"
        path.mkdir(parents=True)
        record = {"kind": "classify", "started": "2026-01-01T00:00:00+00:00", "steps": 10 * LINES}
        if number % 2:
            record |= {"training": {"step": 10 * LINES, "seconds": 99.0}, "results": {"test_accuracy": 0.9}}
        (path / "run.json").write_text(json.dumps(record))
        (path / "status.json").write_text(json.dumps({"state": "finished" if number % 2 else "failed", "reason": ""}))
        (path / "metrics.jsonl").write_text("\n".join(lines) + "\n")


def commands(runs: Path) -> dict[str, tuple[list[str], dict[str, str]]]:
    """The command and additional environment of each name; peers that are not installed are left out."""
    lab = [sys.executable, "-c", "import sys; sys.argv[0] = 'attnlab'; from attnlab.cli import main; main()"]

    def completion(typed: str) -> dict[str, str]:
        position = str(len(typed.split(" ")) - 1)
        return {"_ATTNLAB_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": position}

    sides: dict[str, tuple[list[str], dict[str, str]]] = {
        "attnlab --help": ([*lab, "--help"], {}),
        "attnlab <TAB>": (lab, completion("attnlab ")),
        "attnlab classify --<TAB>": (lab, completion("attnlab classify --")),
        "attnlab classify --help": ([*lab, "classify", "--help"], {}),
        "attnlab runs": ([*lab, "runs", "--in", str(runs)], {}),
        "python -c pass": ([sys.executable, "-c", "pass"], {}),
        PEER: ([sys.executable, "-c", "import typer"], {}),
        "python -m pip --version": ([sys.executable, "-m", "pip", "--version"], {}),
    }
    if git := shutil.which("git"):
        sides["git --version"] = ([git, "--version"], {})
    return sides


def seconds(command: list[str], variables: dict[str, str]) -> float:
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", **variables}
    start = time.perf_counter()
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return time.perf_counter() - start


def measure(repeats: int, runs: int) -> dict[str, float]:
    """The median wall time of each command in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        write_runs(Path(folder), runs)
        sides = commands(Path(folder))
        times: dict[str, list[float]] = {name: [] for name in sides}
        for repeat in range(repeats + 1):
            for name, side in sides.items():
                taken = seconds(*side)
                if repeat:  # the first round fills the file cache
                    times[name].append(taken)
    return {name: statistics.median(values) for name, values in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=11)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    medians = measure(options.repeats, options.runs)
    print(f"median of {options.repeats} alternating runs; `attnlab runs` lists {options.runs} runs")
    for name, median in medians.items():
        limit = f"  (limit {LIMITS[name]:.1f} s)" if name in LIMITS else ""
        print(f"{name:<26} {median:6.3f} s  {median / medians[PEER]:5.2f} x {PEER}{limit}")
    if options.json:
        options.json.write_text(json.dumps({"seconds": medians, "peer": PEER, "limits": LIMITS}, indent=1) + "\n")


if __name__ == "__main__":
    main()
