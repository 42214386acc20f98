"""A model as a folder of its own: whole, or not there."""

from __future__ import annotations

import shutil
from pathlib import Path

from attnlab.base import hub
from attnlab.base.errors import UserError
from attnlab.base.files import whole_folder
from attnlab.models.pretrained.folder import check_model
from attnlab.models.pretrained.source import SMALL, VARIABLE, download, find_here, repo_of
from attnlab.models.pretrained.weights import SAFE_INDEX, weight_files


def get_model(name: str, to: Path, overwrite: bool = False) -> None:
    """Copy a model that is on this machine, or download it, into the folder `to`, whole and checked."""
    refuse_taken(to, overwrite)
    place = find_here(name)
    try:
        with whole_folder(to) as partial:
            if place is not None and place.folder.resolve() != to.resolve():
                _copy(place.folder, partial)
            else:
                _download(name, partial)
    except OSError as error:
        raise UserError(f"cannot write {name} to {to}: {error.strerror or error}.") from None


def refuse_taken(to: Path, overwrite: bool) -> None:
    """A folder that holds something is replaced only if asked for, and only if it holds a model."""
    if to.exists() and not to.is_dir():
        raise UserError(f"{to} is a file: give a folder that is new or empty.")
    if not to.is_dir() or not any(to.iterdir()):
        return
    if not overwrite:
        raise UserError(f"{to} is not empty: give a folder that is new or empty, or --overwrite.")
    if not (to / "config.json").is_file():
        raise UserError(f"{to} holds something else than a model: --overwrite replaces models only.")


def _copy(folder: Path, partial: Path) -> None:
    check_model(folder)
    names = [*(path.name for path in weight_files(folder)), SAFE_INDEX, *SMALL]
    for name in names:
        if (folder / name).is_file():
            (partial / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(folder / name, partial / name)


def _download(name: str, partial: Path) -> None:
    repo = repo_of(name)
    try:
        download(repo, into=partial)
    except hub.NotOnHub as error:
        raise UserError(f"{name} cannot be had: {error}.") from None
    except hub.Unreachable as error:
        raise UserError(
            f"{name} cannot be had: {error}; try where the hub can be reached, copy the folder here, and give its "
            f"path or put it into the folder that {VARIABLE} names."
        ) from None
    shutil.rmtree(partial / ".cache", ignore_errors=True)  # the library's notes on the download
