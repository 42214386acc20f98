"""Where a model is: a name in, a folder with config.json, vocab.txt and weights out.

Searched in this order: a folder; that name, or its last part, in the folder that ATTNLAB_MODELS names; the cache of
the Hugging Face hub; the hub itself. A missing model is never replaced by another.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import urllib.error
import urllib.request
from pathlib import Path

from errors import UserError, note
from files import write_whole
from weights import CONFIG, PICKLED, SAFE

VARIABLE = "ATTNLAB_MODELS"
HUB_ID = re.compile(r"\w[\w.-]*/\w[\w.-]*")
SHAPE = re.compile(r"(\d+)L[_-](\d+)[DH]", re.IGNORECASE)  # 4L_312D
TIMEOUT = 10.0  # seconds without an answer


def find_model(name: str) -> Path:
    """The folder of a model; what is used is reported where the name alone does not say it."""
    path, root = Path(name).expanduser(), os.environ.get(VARIABLE)
    if path.is_dir():
        return path / "model" if (path / "run.json").is_file() else path  # of a run of `attnlab pretrain`
    for folder in (Path(root) / name, Path(root) / name.rsplit("/", 1)[-1]) if root else ():
        if folder.is_dir():
            note(f"model: {name} is {folder.resolve()}.")
            return folder
    if HUB_ID.fullmatch(name) is None or ".." in name:
        raise UserError(f"the model {name!r} is neither a folder nor in {VARIABLE}: give a folder{_same_shape(name)}.")
    return _cached(name) or _download(name)


def _same_shape(name: str) -> str:
    """Folders of the shape that the name contains: other weights, so they are listed and not used."""
    match, root, folders = SHAPE.search(name), os.environ.get(VARIABLE), []
    for file in sorted(Path(root).glob(f"*/{CONFIG}")) if match and root else ():
        try:
            config = json.loads(file.read_text(encoding="utf-8"))
            shape = config["num_hidden_layers"], config["hidden_size"]
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if match and shape == (int(match[1]), int(match[2])):
            folders.append(str(file.parent))
    return f" (of the same shape, but other weights: {', '.join(folders)})" if folders else ""


def _storage(repo: str) -> Path:
    """The repository's folder in the cache, as huggingface_hub has it."""
    home = os.environ.get("HF_HOME") or os.path.join(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "huggingface")
    cache = os.environ.get("HF_HUB_CACHE") or os.path.join(home, "hub")
    return Path(cache).expanduser() / f"models--{repo.replace('/', '--')}"


def _cached(repo: str) -> Path | None:
    try:
        commit = (_storage(repo) / "refs" / "main").read_text().strip()
    except OSError:
        return None
    folder = _storage(repo) / "snapshots" / commit
    complete = (folder / CONFIG).is_file() and any((folder / name).is_file() for name in (SAFE, PICKLED))
    return folder if complete else None


def _download(repo: str) -> Path:
    """Configuration, vocabulary and weights into the cache; the weights last, so a folder with weights is complete."""
    hub = (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")
    try:
        if os.environ.get("HF_HUB_OFFLINE", "0").upper() not in ("0", "", "OFF", "NO", "FALSE"):
            raise OSError("HF_HUB_OFFLINE is set")
        with urllib.request.urlopen(f"{hub}/api/models/{repo}/revision/main", timeout=TIMEOUT) as answer:
            listing = json.load(answer)
        commit, files = str(listing["sha"]), {file["rfilename"] for file in listing["siblings"]}
        if re.fullmatch("[0-9a-f]{40}", commit) is None:
            raise ValueError("its answer has no commit")
        folder = _storage(repo) / "snapshots" / commit
        folder.mkdir(parents=True, exist_ok=True)
        weights = SAFE if SAFE in files else PICKLED
        for file in (CONFIG, "vocab.txt", "tokenizer_config.json", weights):
            if file in files:
                note(f"downloading {repo}/{file} from {hub}.")
                with urllib.request.urlopen(f"{hub}/{repo}/resolve/{commit}/{file}", timeout=TIMEOUT) as answer:
                    content = answer.read()
                    if len(content) != int(answer.headers.get("Content-Length", len(content))):
                        raise OSError(f"{file} broke off")
                write_whole(folder / file, [content])
        (_storage(repo) / "refs").mkdir(exist_ok=True)
        write_whole(_storage(repo) / "refs" / "main", [commit.encode()])
        return folder
    except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise UserError(
            f"the model {repo!r} is not here, and {hub} does not give it ({reason}): put its folder into the one that "
            f"{VARIABLE} names, or give another folder{_same_shape(repo)}."
        ) from None
