"""The Hugging Face hub: the files of a repository, downloads into the hub's cache, and why they fail.

Files are downloaded, never run. HF_ENDPOINT, HF_HUB_OFFLINE and the cache's folder (HF_HUB_CACHE, HF_HOME) are read
at each use; `huggingface_hub` reads them once, when it is imported.
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
TIMEOUT = 10.0  # seconds for the first answer, so nothing hangs without a network
_ID = re.compile(r"\w[\w.-]*/\w[\w.-]*")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_Answer = TypeVar("_Answer")


class Unreachable(UserError):
    """The hub gives no usable answer; the message is a clause with the reason."""


class NotOnHub(UserError):
    """The hub has no such repository, or not for this user; the message is a clause with the reason."""


class RemoteFile(NamedTuple):
    size: int | None
    sha256: str | None
    """Given for large files only."""


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
    """The snapshot of a repository in the cache, which may be incomplete."""
    storage = cache_folder() / f"{kind}s--{repo.replace('/', '--')}"
    try:
        commit = (storage / "refs" / revision).read_text().strip()
    except OSError:
        return None
    folder = storage / "snapshots" / commit
    return folder if _COMMIT.fullmatch(commit) and folder.is_dir() else None


def listing(repo: str, kind: Kind = "model", revision: str = MAIN) -> dict[str, RemoteFile]:
    """All files of a repository, as the hub lists them now."""
    api = _library().HfApi(endpoint=endpoint())
    info = _ask(
        lambda: api.repo_info(repo, repo_type=kind, revision=revision, files_metadata=True, timeout=TIMEOUT),
        f"{kind} {repo}",
    )
    return {
        file.rfilename: RemoteFile(file.size, file.lfs.sha256 if file.lfs else None) for file in info.siblings or []
    }


def cached_listing(repo: str, kind: Kind = "model", revision: str = MAIN) -> list[str]:
    """All files of a repository at its last download; empty if there was none."""
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
    """The folder in the cache, or `into`, with these files complete; with `local`, from the cache only.

    The library compares sizes; the checksums of large files are compared here, and a file that differs is removed.
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
                etag_timeout=TIMEOUT,
                local_files_only=local,
            ),
            f"{kind} {repo}",
            online=not local,
        )
    )
    for name, remote in files.items() if isinstance(files, Mapping) else ():
        if remote.sha256 is not None and sha256(folder / name) != remote.sha256:
            (folder / name).resolve().unlink()
            (folder / name).unlink(missing_ok=True)
            raise Unreachable(f"{name} of {repo} had another checksum than {endpoint()} lists and was removed")
    return folder


def card(folder: Path) -> dict[str, Any]:
    """The YAML at the head of a repository's README; empty if it is missing or broken."""
    try:
        text = (folder / "README.md").read_text("utf-8")
        found = yaml.safe_load(text[3:].split("\n---", 1)[0]) if text.startswith("---") else None
    except (OSError, ValueError, RecursionError, yaml.YAMLError):
        return {}
    return found if isinstance(found, dict) else {}


def _ask(call: Callable[[], _Answer], what: str, online: bool = True) -> _Answer:
    """The hub's answer; raises with the reason if there is none."""
    if online and offline():
        raise Unreachable("HF_HUB_OFFLINE is set")
    errors = _library().errors
    try:
        with _quietly():
            return call()
    except errors.GatedRepoError:
        raise NotOnHub(
            f"{endpoint()} offers {what} only to users who accepted its terms there and set HF_TOKEN"
        ) from None
    except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError):
        raise NotOnHub(f"{endpoint()} has no public {what}") from None
    except errors.HFValidationError:
        raise NotOnHub(f"{what} is not a valid name on the hub") from None
    except Exception as error:  # the library's HTTP library has changed between versions
        cause = error.__cause__ or error
        status = getattr(getattr(cause, "response", None), "status_code", None)
        first = str(cause).strip().split("\n")[0].rstrip(".:")[:160] or type(cause).__name__
        lost = any(word in type(cause).__name__ for word in ("Connect", "Timeout", "Network", "Proxy"))
        why = "cannot be reached" if lost else "did not deliver"
        why = f"answers with error {status}" if status else f"{why} ({first})"
        raise Unreachable(f"{endpoint()} {why}") from None


@contextmanager
def _quietly() -> Iterator[None]:
    """Without the library's warnings; its progress bars on a terminal only."""
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
        raise UserError("the hub needs huggingface_hub: pip install 'attnlab[hub]'.") from None
    return huggingface_hub
