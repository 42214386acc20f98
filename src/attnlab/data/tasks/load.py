"""One door to labelled texts: the name of a task, a file, a folder of train, dev and test, or a data set of the hub."""

from __future__ import annotations

from pathlib import Path

from attnlab.base.errors import UserError, nearest
from attnlab.data.tasks.columns import Request
from attnlab.data.tasks.hub_files import parse
from attnlab.data.tasks.hub_sets import load_hub
from attnlab.data.tasks.labelled import Labelled
from attnlab.data.tasks.named import ABOUT, load_task
from attnlab.data.tasks.own import find_files, read_own


def load_labelled(
    source: str | Path,
    request: Request | None = None,
    dev: Path | None = None,
    test: Path | None = None,
    seed: int = 0,
    data_folder: Path | None = None,
    hold_out: bool = True,
) -> Labelled:
    """What `source` names; columns, classes and further files are for files of one's own.

    `hold_out`: whether a test split is made where none is given.
    """
    request = request or Request()
    if str(source) in ABOUT:
        if request != Request() or dev or test:
            raise UserError(f"{source} is a task with files and columns of its own: say less, or name a file.")
        return load_task(str(source), data_folder, seed, hold_out)
    path = Path(source)
    if not path.exists() and (name := parse(str(source))):
        if dev or test:
            raise UserError(f"{source} is a data set of the hub with splits of its own: leave out --dev and --test.")
        return load_hub(name, request, seed, hold_out)
    if not path.exists():
        close = nearest(str(source), ABOUT)
        hint = f"did you mean {close!r}?" if close else f"tasks are {', '.join(sorted(ABOUT))}."
        raise UserError(f"{source} is neither a task nor a file: {hint}")
    files = find_files(path) if path.is_dir() else {"train": path}
    given = {split: file for split, file in (("dev", dev), ("test", test)) if file is not None}
    return read_own(files | given, request, seed, name=str(path), hold_out=hold_out)
