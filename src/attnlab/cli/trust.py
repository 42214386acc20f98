"""`attnlab trust`: allow a code file that a run or a recipe names, list what is allowed, take it back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attnlab.base import console
from attnlab.base.errors import UserError
from attnlab.cli.help import example


def trust(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="A .py file; with --remove also a checksum.")
    ] = None,
    show: Annotated[bool, typer.Option("--list", help="List what is allowed.")] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Take the permission back.")] = False,
) -> None:
    """Allow a file with your own attention to be executed when a run or a recipe names it.

    Exactly its present content is allowed, by checksum. Typing a file, as in --attention mine.py, allows it as well.
    """
    from attnlab.base.files import sha256
    from attnlab.base.trust import allow, allowed_files, forget

    if show:
        for key, path in allowed_files().items():
            console.result(f"{key}  {path}")
        return
    if file is None:
        raise UserError("give the file to allow, or --list.")
    if remove:
        names = {str(file), sha256(file) if file.is_file() else ""}
        found = {key: path for key, path in allowed_files().items() if key in names or path == str(file.absolute())}
        if not found:
            raise UserError(f"{file} is not among the allowed files: 'attnlab trust --list' lists them.")
        for key, path in found.items():
            forget(key)
            console.result(f"{key}  {path}\nno longer allowed")
        return
    if file.suffix != ".py" or not file.is_file():
        raise UserError(f"{file}: expected an existing .py file.")
    console.result(f"{allow(file)}  {file.absolute()}\nallowed")


def register(app: typer.Typer) -> None:
    app.command(epilog=example("attnlab trust runs/my-run/attention.py"))(trust)
