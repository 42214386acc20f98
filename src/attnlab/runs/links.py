"""Links in a run folder that lead out of it: a run of somebody else could so have the lab write to any file."""

from __future__ import annotations

import os
from pathlib import Path

from attnlab.base.errors import UserError

LOCKS = (
    "lock",
    "journal.log.lock",
)  # the first is refused where it is taken, the second is made as a link, never opened


def must_stay_inside(run: Path) -> None:
    """Raise if a file or folder in the run is a link to a place outside it. The run itself may be one."""
    root = run.resolve()
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            if name not in LOCKS:
                must_lead_inside(Path(folder, name), root)


def must_lead_inside(path: Path, root: Path) -> None:
    """Raise if this path in a run is a link to a place outside it."""
    if path.is_symlink() and not path.resolve().is_relative_to(root.resolve()):
        raise UserError(
            f"{path} is a link to {os.readlink(path)}, outside the run: replace it by what it names, "
            "or copy the run with 'cp -rL'."
        )
