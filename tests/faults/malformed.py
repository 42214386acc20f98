"""Malformed inputs: no traceback, no hang, bounded memory, nothing a terminal obeys, one short sentence.

    python -m tests.faults.malformed --cases 2000 --seed 0

Every case is one command in a forked child with limits on time, memory and file sizes.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import pkgutil
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from tests.faults.good_files import write_good_files
from tests.faults.malformed_cases import Case, Maker
from tests.faults.outcomes import SURVIVED, outcome

GIB = 2**30
MEMORY = 3 * GIB  # that a command may take beyond what it has imported
CPU_SECONDS = 120
WALL_SECONDS = 600  # far above anything seen: a loaded machine is no hang
ENVIRONMENT = {
    "NO_COLOR": "1",
    "COLUMNS": "200",
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "passive",
}


@dataclass(frozen=True)
class Result:
    """How the command of a case ended."""

    case: Case
    outcome: str
    message: str
    memory: int
    """At its largest, in bytes."""
    folder: Path


@dataclass
class Failure:
    number: int
    outcome: str
    command: list[str]
    message: str


@dataclass
class Tally:
    seed: int
    outcomes: Counter[str] = field(default_factory=Counter)
    families: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    largest: int = 0
    """Memory of the largest command, in bytes."""

    def add(self, number: int, result: Result) -> None:
        self.outcomes[result.outcome] += 1
        self.families[result.case.family] += 1
        self.largest = max(self.largest, result.memory)
        if result.outcome not in SURVIVED:
            self.failures.append(Failure(number, result.outcome, result.case.words, result.message))

    def to_json(self) -> dict[str, object]:
        return {
            "seed": self.seed,
            "cases": self.outcomes.total(),
            "outcomes": dict(self.outcomes),
            "families": dict(self.families),
            "largest_memory": self.largest,
            "failures": [vars(failure) for failure in self.failures],
        }


def run_cases(cases: int, seed: int, keep: Path | None = None, only: Iterable[int] | None = None) -> Tally:
    """Run cases 0, 1, ... of a seed (or `only` some); folders of failing ones are copied to `keep`."""
    numbers = range(cases) if only is None else only
    tally = Tally(seed)
    with tempfile.TemporaryDirectory(prefix="malformed-") as place:
        os.environ["ATTNLAB_CONFIG"] = os.environ["XDG_CACHE_HOME"] = place
        for number, result in zip(numbers, results(seed, Path(place), numbers), strict=True):
            tally.add(number, result)
            if keep is not None and result.outcome not in SURVIVED:
                _keep(keep / f"{seed}-{number}", result.folder, tally.failures[-1])
    return tally


def results(seed: int, place: Path, numbers: Iterable[int] | None = None) -> Iterator[Result]:
    """The cases of a seed, one after the other; without `numbers` as long as they are asked for."""
    os.environ.update(ENVIRONMENT)
    _import_all()
    good = place / "good"
    good.mkdir()

    def good_command(words: list[str]) -> None:
        result = _run(Case("good", words), good, place)
        if result.outcome != "accepted":
            raise RuntimeError(f"attnlab {' '.join(words)}: {result.outcome}\n{result.message}")

    write_good_files(good, good_command)
    maker = Maker(good, seed)
    for number in count() if numbers is None else numbers:
        folder = place / f"case-{number}"
        folder.mkdir()
        yield _run(maker.make(number, folder), folder, place)
        shutil.rmtree(folder)


def _keep(place: Path, folder: Path, failure: Failure) -> None:
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(folder, place)
    (place / "failure.json").write_text(json.dumps(vars(failure), indent=1), encoding="utf-8")


def _import_all() -> None:
    """So that no child has to."""
    import pyarrow.parquet  # noqa: F401
    import tests.cli_server  # noqa: F401
    import transformers.models.bert.modeling_bert  # noqa: F401

    import attnlab

    for module in pkgutil.walk_packages(attnlab.__path__, "attnlab."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    gc.freeze()  # the memory of these modules stays shared


def _run(case: Case, cwd: Path, place: Path) -> Result:
    """One command in a forked child."""
    out, err, given = place / "out", place / "err", place / "in"
    given.write_bytes(case.stdin)
    child = os.fork()
    if child == 0:
        _limit()
        code = 1
        from tests import cli_server

        try:
            cli_server.run_child(
                {"words": case.words, "cwd": str(cwd), "in": str(given), "out": str(out), "err": str(err)}
            )
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    code, memory, late = _wait(child)
    printed, message = (path.read_text(encoding="utf-8", errors="replace") for path in (out, err))
    return Result(case, outcome(code, late, printed, message), message[-3000:], memory, cwd)


def _limit() -> None:
    used = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()  # data and stack
    resource.setrlimit(resource.RLIMIT_DATA, (used + MEMORY, used + MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 10))
    resource.setrlimit(resource.RLIMIT_FSIZE, (GIB, GIB))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _wait(child: int) -> tuple[int, int, bool]:
    """The exit code, the memory in bytes, and whether it had to be ended."""
    end = time.monotonic() + WALL_SECONDS
    late = False
    while True:
        done, status, usage = os.wait4(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status), usage.ru_maxrss * 1024, late
        if not late and time.monotonic() > end:
            late = True
            os.killpg(child, signal.SIGKILL)
        time.sleep(0.002)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, nargs="+", help="run these cases alone")
    parser.add_argument("--keep", type=Path, help="copy the folders of failing cases here")
    options = parser.parse_args()
    tally = run_cases(options.cases, options.seed, options.keep, options.only)
    print(json.dumps(tally.to_json(), indent=1))
    sys.exit(bool(tally.failures))


if __name__ == "__main__":
    main()
