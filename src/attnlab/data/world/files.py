"""A world as files, in the formats that pretraining and fine-tuning read."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterable
from pathlib import Path

from attnlab.base.errors import UserError
from attnlab.base.files import check_new_folder, whole_folder
from attnlab.data.world.world import SPLITS, World


def write_world(world: World, folder: Path) -> None:
    """Write corpus.txt, train.tsv, dev.tsv, test.tsv and world.json (the spec) into `folder`.

    The folder gets its name when all files are in it, so an interrupted command leaves nothing that looks like a
    world.
    """
    check_new_folder(folder)
    try:
        with whole_folder(folder) as partial:
            _write_lines(partial / "corpus.txt", world.documents())
            for split in SPLITS:
                _write_lines(partial / f"{split}.tsv", ("\t".join(pair) for pair in world.iter_questions(split)))
            _write_lines(partial / "world.json", [json.dumps(dataclasses.asdict(world.spec), indent=2)])
    except OSError as error:
        raise UserError(f"cannot write the world to {folder}: {error.strerror or error}.") from error


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)
        file.flush()
        os.fsync(file.fileno())
