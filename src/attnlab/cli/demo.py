"""`attnlab demo`: the main job in miniature, on data that comes with the package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attnlab import console


def demo(
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FOLDER", help="Folder for the runs and the report.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the demo in --out.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
) -> None:
    """Pretrain, fine-tune and ask a small GPT; fine-tune a real encoder; write one report (minutes)."""
    import time

    from attnlab.errors import UserError
    from attnlab.jobs.demo import run_demo
    from attnlab.runs import fresh_path
    from attnlab.training.progress import clock

    root = out or fresh_path(Path("runs"), "demo")
    if not resume and root.exists() and any(root.iterdir()):
        raise UserError(f"{root} is not empty: choose another folder with --out, or go on there with --resume.")
    if resume and out is None:
        raise UserError("--resume needs --out: the folder of the demo to go on with.")
    start = time.monotonic()
    report = run_demo(root, seed)
    console.say(f"done in {clock(time.monotonic() - start)}")
    console.result(f"report: {report}")


def register(app: typer.Typer) -> None:
    app.command()(demo)
