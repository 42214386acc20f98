"""The Hugging Face hub: what a repository holds, its files in the hub's cache, and why they cannot be had.

Files are fetched, never run. HF_ENDPOINT, HF_HUB_OFFLINE and the cache's folder (HF_HUB_CACHE, HF_HOME) are read
when they are needed; `huggingface_hub` reads them once, when it is imported.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import yaml

from attnlab.base import console
from attnlab.base.errors import UserError
from attnlab.base.files import sha256

Kind = Literal["model", "dataset"]
MAIN = "main"
PATIENCE = 10.0  # seconds for the first answer: without a network nothing hangs
_ID = re.compile(r"\w[\w.-]*/\w[\w.-]*")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_Answer = TypeVar("_Answer")


class Unreachable(UserError):
    """The hub gives no answer, or none that can be used; the message is half a sentence that says why."""


class NotThere(UserError):
    """The hub answers that it has no such thing, or not for everybody; half a sentence as well."""


class RemoteFile(NamedTuple):
    size: int | None
    sha256: str | None
    """Known for large files only."""


def is_id(name: str) -> bool:
    """Whether a name has the form owner/name."""
    return _ID.fullmatch(name) is not None and ".." not in name and "--" not in name


def endpoint() -> str:
    return (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")


def offline() -> bool:
    return any(
        os.environ.get(name, "").upper() in ("1", "ON", "YES", "TRUE")
        for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    )


def cache_folder() -> Path:
    if named := os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE"):
        return Path(named).expanduser()
    home = os.environ.get("HF_HOME") or os.path.join(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "huggingface")
    return Path(home).expanduser() / "hub"


def cached(repo: str, kind: Kind = "model", revision: str = MAIN) -> Path | None:
    """The snapshot of a repository in the cache; it may lack files."""
    storage = cache_folder() / f"{kind}s--{repo.replace('/', '--')}"
    try:
        commit = (storage / "refs" / revision).read_text().strip()
    except OSError:
        return None
    folder = storage / "snapshots" / commit
    return folder if _COMMIT.fullmatch(commit) and folder.is_dir() else None


def listing(repo: str, kind: Kind = "model", revision: str = MAIN) -> dict[str, RemoteFile]:
    """All files of a repository, as the hub says now."""
    api = _library().HfApi(endpoint=endpoint())
    info = _ask(
        lambda: api.repo_info(repo, repo_type=kind, revision=revision, files_metadata=True, timeout=PATIENCE),
        f"{kind} {repo}",
    )
    return {
        file.rfilename: RemoteFile(file.size, file.lfs.sha256 if file.lfs else None) for file in info.siblings or []
    }


def cached_listing(repo: str, kind: Kind = "model", revision: str = MAIN) -> list[str]:
    """All files of a repository, as they stood when it was last downloaded from; none, if it never was."""
    library = _library()
    try:
        found = library.get_cached_repo_tree(repo, repo_type=kind, revision=revision, cache_dir=cache_folder())
    except (OSError, library.errors.CachedRepoTreeNotFoundError):
        return []
    return [file.path for file in found]


def fetch(
    repo: str,
    files: Mapping[str, RemoteFile] | Iterable[str],
    kind: Kind = "model",
    revision: str = MAIN,
    into: Path | None = None,
    local: bool = False,
) -> Path:
    """The folder in the cache, or `into`, with these files whole in it; `local`: from the cache, or not at all.

    The library compares sizes; a large file's checksum is compared here, and what differs is removed.
    """
    folder = Path(
        _ask(
            lambda: _library().snapshot_download(
                repo,
                repo_type=kind,
                revision=revision,
                allow_patterns=[glob.escape(name) for name in files],
                cache_dir=cache_folder(),
                local_dir=into,
                endpoint=endpoint(),
                etag_timeout=PATIENCE,
                local_files_only=local,
            ),
            f"{kind} {repo}",
            ask=not local,
        )
    )
    for name, remote in files.items() if isinstance(files, Mapping) else ():
        if remote.sha256 is not None and sha256(folder / name) != remote.sha256:
            (folder / name).resolve().unlink()
            (folder / name).unlink(missing_ok=True)
            raise Unreachable(f"{name} of {repo} arrived with another checksum than {endpoint()} names and was removed")
    return folder


def card(folder: Path) -> dict[str, Any]:
    """What the README of a repository says in the YAML at its head; nothing, if there is none or it is broken."""
    try:
        text = (folder / "README.md").read_text("utf-8")
        found = yaml.safe_load(text[3:].split("\n---", 1)[0]) if text.startswith("---") else None
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return {}
    return found if isinstance(found, dict) else {}


def _ask(call: Callable[[], _Answer], what: str, ask: bool = True) -> _Answer:
    """The answer, or half a sentence on why there is none."""
    if ask and offline():
        raise Unreachable("HF_HUB_OFFLINE forbids to ask the hub")
    errors = _library().errors
    try:
        with _quietly():
            return call()
    except errors.GatedRepoError:
        raise NotThere(f"{endpoint()} gives {what} only to who accepted its terms there and set HF_TOKEN") from None
    except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError):
        raise NotThere(f"{endpoint()} has no {what}, or not for everybody") from None
    except errors.HFValidationError:
        raise NotThere(f"{what} is no name the hub allows") from None
    except Exception as error:  # the library's own HTTP library was requests, then httpx, then httpx2
        cause = error.__cause__ or error
        status = getattr(getattr(cause, "response", None), "status_code", None)
        first = str(cause).strip().split("\n")[0].rstrip(".:")[:160] or type(cause).__name__
        lost = any(word in type(cause).__name__ for word in ("Connect", "Timeout", "Network", "Proxy"))
        why = "cannot be reached" if lost else "did not deliver"
        why = f"answers with error {status}" if status else f"{why} ({first})"
        raise Unreachable(f"{endpoint()} {why}") from None


@contextmanager
def _quietly() -> Iterator[None]:
    """No warnings of the library's own; its bars on a terminal only."""
    from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars, logging

    level, disabled = logging.get_verbosity(), are_progress_bars_disabled()
    logging.set_verbosity_error()
    if not console.err.is_terminal or console.verbosity() == console.Verbosity.QUIET:
        disable_progress_bars()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if not disabled:
            enable_progress_bars()


def _library():  # type: ignore[no-untyped-def]  # the module itself
    try:
        import huggingface_hub
        import huggingface_hub.errors
    except ImportError:
        raise UserError("the hub needs a package: pip install 'attnlab[hub]'.") from None
    return huggingface_hub
