"""Files as a stranger would write them: no code in them is executed, and nothing outside the stranger's folder changes.

The cases are those of tests/security: what a stranger wrote, the commands that open it, and what must hold.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator
from pathlib import Path
from random import Random

from tests.security.cases import CASES, Outcome, make_runs, stage, survives
from tools.faults.command import run
from tools.faults.family import Family, Try


def tries(random: Random, folder: Path) -> Generator[Try]:
    def attnlab(words: list[str], text: str) -> Outcome:
        done = run(words, folder / "command.log", text=text)
        return Outcome(done.code, done.output)

    made, place, mine = folder / "made", folder / "scene", os.environ["ATTNLAB_CONFIG"]
    made.mkdir()
    os.environ["ATTNLAB_CONFIG"] = str(folder / "the-stranger-s")  # who makes the runs allows their code
    os.environ.pop("MARKER", None)
    make_runs(made, attnlab)
    os.environ["ATTNLAB_CONFIG"] = mine
    while True:
        for case in random.sample(CASES, len(CASES)):
            shutil.rmtree(place, ignore_errors=True)
            failure = survives(case, stage(case, made, place, attnlab))
            yield Try("a stranger's file", case.name, failure)


FAMILY = Family("hostile files", 0.6, tries)
