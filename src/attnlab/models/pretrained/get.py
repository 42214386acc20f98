"""A copy of a model in a folder of its own: complete, or not written at all."""

from __future__ import annotations

import shutil
from pathlib import Path

from attnlab.base import hub
from attnlab.base.errors import UserError
from attnlab.base.files import whole_folder
from attnlab.models.pretrained.folder import SAFE_INDEX, check_model, weight_files
from attnlab.models.pretrained.source import SMALL, VARIABLE, download, find_here, repo_of


def get_model(name: str, to: Path, overwrite: bool = False) -> None:
    """Copy a model that is on this machine, or download it, into the folder `to`, complete and checked."""
    refuse_taken(to, overwrite)
    location = find_here(name)
    try:
        with whole_folder(to) as partial:
            if location is not None and location.folder.resolve() != to.resolve():
                _copy(location.folder, partial)
            else:
                _download(name, partial)
    except OSError as error:
        raise UserError(f"cannot write {name} to {to}: {error.strerror or error}.") from None


def refuse_taken(to: Path, overwrite: bool) -> None:
    """A folder that is not empty is replaced only with `overwrite`, and only if it contains a model."""
    if to.exists() and not to.is_dir():
        raise UserError(f"{to} is a file: give a folder that is new or empty.")
    if not to.is_dir() or not any(to.iterdir()):
        return
    if not overwrite:
        raise UserError(f"{to} is not empty: give a folder that is new or empty, or --overwrite.")
    if not (to / "config.json").is_file():
        raise UserError(f"{to} contains something other than a model: --overwrite replaces models only.")


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
        raise UserError(f"{name} cannot be downloaded: {error}.") from None
    except hub.Unreachable as error:
        raise UserError(
            f"{name} cannot be downloaded: {error}: run this where the hub can be reached, copy the folder here, and "
            f"give its path or put it into the folder that {VARIABLE} names."
        ) from None
    shutil.rmtree(partial / ".cache", ignore_errors=True)  # written by the library during the download
