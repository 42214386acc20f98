"""Which code files may be executed: those whose content the user has allowed, by SHA-256.

A run folder and a recipe can name a .py file, and both can come from somebody else. Such a file is executed only if
its content was allowed on this account: the user typed its path, handed its class in from Python, or ran
`attnlab trust FILE`. The list is in the user's own configuration folder, so that the processes of a run share it.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from pathlib import Path

from attnlab.base.errors import UserError
from attnlab.base.files import write_text

_this_process: set[str] = set()


def config_folder() -> Path:
    """ATTNLAB_CONFIG, else attnlab in XDG_CONFIG_HOME or in ~/.config."""
    if own := os.environ.get("ATTNLAB_CONFIG"):
        return Path(own)
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "attnlab"


def checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def allowed_files() -> dict[str, str]:
    """Every allowed checksum with the path it was allowed for."""
    file = _list_file()
    _must_be_own(file)
    try:
        return {str(key): str(path) for key, path in json.loads(file.read_text(encoding="utf-8"))["allowed"].items()}
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise UserError(f"{file} cannot be read as the list of allowed files: repair or delete it.") from None


def allow(file: Path) -> str:
    """Allow the present content of a file; returns its checksum."""
    content = file.read_bytes()
    key = checksum(content)
    _this_process.add(key)
    if key not in allowed_files():
        try:
            _change(add={key: str(file.absolute())})
        except OSError as error:
            from attnlab.base import console

            console.warn(
                f"{_list_file()} cannot be written ({error.strerror}): {file} is allowed in this process only."
            )
    return key


def allow_named(*names: object) -> None:
    """Allow the .py files among names that the user gave; what is no such file is left to whoever reads the name."""
    for name in names:
        if str(name).endswith(".py") and (file := Path(str(name)).expanduser()).is_file():
            allow(file)


def forget(key: str) -> None:
    """Remove a checksum from the list."""
    _this_process.discard(key)
    _change(remove=key)


def read_allowed(file: Path) -> bytes:
    """The content of a code file to be executed; raises unless the user has allowed exactly this content."""
    content = file.read_bytes()
    key = checksum(content)
    if key not in _this_process and key not in allowed_files():
        raise UserError(
            f"{file} is code that you have not allowed to run (SHA-256 {key}): read it, then run "
            f"'attnlab trust {file}', or name it yourself with --attention or lab.load(run, attention=...)."
        )
    return content


def _must_be_own(file: Path) -> None:
    """Raise for a list that other users can write, or have written."""
    try:
        status = file.stat()
    except OSError:
        return
    if status.st_uid not in (0, os.geteuid()) or status.st_mode & stat.S_IWOTH:
        raise UserError(
            f"{file} could have been written by another user, so nothing it allows is executed: check it, and make it "
            f"your own ('chown $USER', 'chmod 600')."
        )


def _list_file() -> Path:
    return config_folder() / "trusted.json"


def _change(add: dict[str, str] | None = None, remove: str = "") -> None:
    from filelock import FileLock

    file = _list_file()
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with FileLock(file.with_suffix(".lock")):  # several processes of a run may start at once
        kept = {key: path for key, path in allowed_files().items() if key != remove}
        write_text(file, json.dumps({"allowed": kept | (add or {})}, indent=1) + "\n")
        file.chmod(0o600)  # whoever can write it decides what is executed
