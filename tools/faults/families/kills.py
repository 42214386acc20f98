"""A training is killed before one of its file operations, resumed, killed again, and ends as if it never had been."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from pathlib import Path
from random import Random

from tools.faults.command import Done, run
from tools.faults.family import Family, Try
from tools.faults.operations import Kill
from tools.faults.runs import commands, difference

from attnlab.runs import is_run

MOST_KILLS = 3


def tries(random: Random, folder: Path) -> Generator[Try]:
    wholes: dict[str, Done] = {}
    starts = commands(folder)
    while True:
        kind, power_cut = random.choice(sorted(starts)), random.random() < 0.5
        if kind not in wholes:
            whole = folder / f"whole-{kind}"
            wholes[kind] = run([*starts[kind], "--run", str(whole)], folder / "whole.log", whole)
            if wholes[kind].code != 0:
                raise RuntimeError(f"the run that is never stopped failed: {wholes[kind]}")
        yield _killed(random, folder, kind, starts[kind], wholes[kind].operations, power_cut)


def _killed(random: Random, folder: Path, kind: str, start: list[str], operations: int, power_cut: bool) -> Try:
    path, log = folder / "run", folder / "run.log"
    shutil.rmtree(path, ignore_errors=True)
    points = sorted(random.randint(1, operations) for _ in range(random.randint(1, MOST_KILLS)))
    fault = f"{kind}: {'power cut' if power_cut else 'kill'} before a file operation"
    detail = f"before operations {', '.join(map(str, points))} of {operations}"
    begin = [*start, "--run", str(path)]
    for point in [*points, None]:
        kill = None if point is None else Kill(point, power_cut, random.randrange(2**32))
        words = ["resume", str(path)] if is_run(path) else begin
        done = run(words, log, path, kill)
        if done.code == 2 and "is finished" in done.output:
            break
        if done.code != (-9 if kill and done.code != 0 else 0):
            return Try(fault, detail, str(done))
        if done.code == 0:
            break
    return Try(fault, detail, difference(path, folder / f"whole-{kind}"))


FAMILY = Family("kills at file operations", 0.55, tries)
