"""A world as files, in the formats that pretraining and fine-tuning read."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from attnlab.base.errors import UserError
from attnlab.data.world.world import SPLITS, World


def write_world(world: World, folder: Path) -> None:
    """Write corpus.txt, train.tsv, dev.tsv, test.tsv and world.json (the spec) into `folder`.

    The files are made in a folder beside it that takes its name when all are there, so an
    interrupted command leaves nothing that looks like a world.
    """
    check_folder(folder)
    partial = folder.parent / f".{folder.name}.partial-{os.getpid()}"
    try:
        partial.mkdir(parents=True)
        _write_lines(partial / "corpus.txt", world.documents())
        for split in SPLITS:
            rows = (f"{q.question}\t{q.answer}" for q in world.asked(split))
            _write_lines(partial / f"{split}.tsv", rows)
        _write_lines(partial / "world.json", [json.dumps(dataclasses.asdict(world.spec), indent=2)])
        partial.replace(folder)
    except OSError as error:
        raise UserError(f"cannot write the world to {folder}: {error.strerror or error}.") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def check_folder(folder: Path) -> None:
    """Refuse a folder that holds something already, before any work is done."""
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file: give a folder that is new or empty.")
    if folder.is_dir() and any(folder.iterdir()):
        raise UserError(f"{folder} is not empty: give a folder that is new or empty.")


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)
        file.flush()
        os.fsync(file.fileno())
