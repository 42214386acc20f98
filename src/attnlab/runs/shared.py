"""One run of several processes: the first one writes to its folder, the others read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock

from attnlab.runs.folder import RunFolder
from attnlab.runs.status import LOCK


class ReadOnlyRun(RunFolder):
    """A run folder that this process does not change."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, FileLock(path / LOCK))

    def close(self) -> None: ...

    def clean(self) -> None: ...

    def set_status(self, state: str, reason: str = "") -> None: ...

    def note_change(self, text: str) -> None: ...

    def update_record(self, **values: Any) -> None: ...

    def write_config(self, config: Mapping[str, Any]) -> None: ...


def open_shared(open_run: Callable[[], RunFolder]) -> RunFolder:
    """The run that the first process opens; the others get it read-only."""
    from attnlab.distributed.team import current  # loads torch

    runs: list[RunFolder] = []

    def path() -> Path:
        runs.append(open_run())
        return runs[0].path

    shared_path = current().from_first(path)
    return runs[0] if runs else ReadOnlyRun(shared_path)
