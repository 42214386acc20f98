"""Commands that read a run while it is trained: they answer or end in a sentence, and the training does not notice."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from pathlib import Path
from random import Random

from tools.faults.command import Child, run
from tools.faults.family import Family, Try
from tools.faults.runs import commands, difference


def readers(path: Path) -> list[list[str]]:
    return [
        ["ask", str(path), "Where was Ann born?"],
        ["runs", "--in", str(path.parent), "--json"],
        ["runs", "show", str(path)],
        ["sample", str(path), "--length", "5"],
        ["evaluate", str(path)],
    ]


def tries(random: Random, folder: Path) -> Generator[Try]:
    """One checkpoint is kept and each step saved, so what is being read is deleted all the time."""
    words = commands(folder)["pretrain"]
    for name, value in (("--keep", "1"), ("--save-every", "1"), ("--steps", "40"), ("--dev-share", "0")):
        words[words.index(name) + 1] = value
    whole, path = folder / "whole", folder / "run"
    done = run([*words, "--run", str(whole)], folder / "whole.log")
    if done.code != 0:
        raise RuntimeError(f"the run that nobody reads failed: {done}")
    while True:
        shutil.rmtree(path, ignore_errors=True)
        training = Child([*words, "--run", str(path)], folder / "run.log")
        try:
            while not training.ended():
                reader = run(random.choice(readers(path)), folder / "reader.log")
                failure = "" if reader.is_sentence else reader.output[-2000:]
                yield Try("a reader beside a training", str(reader), failure)
        except GeneratorExit:
            training.kill()
            raise
        end = training.finished()
        failure = difference(path, whole) if end.code == 0 else str(end)
        yield Try("a training beside readers", "one checkpoint kept, saved at every step", failure)


FAMILY = Family("readers beside writers", 0.15, tries)
