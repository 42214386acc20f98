"""`attnlab demo`: the main jobs in miniature, on data from the package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from attnlab.base import console
from attnlab.base.errors import UserError
from attnlab.cli.help import example
from attnlab.cli.launch_options import require_one_node, submit_command
from attnlab.config.flags import with_flags
from attnlab.config.recipe import Key
from attnlab.launch.commandline import typed_command
from attnlab.launch.config import LaunchConfig, launch_settings
from attnlab.runs.folder import KEPT, ROOT, fresh_path


@with_flags(LaunchConfig)
def demo(
    launching: dict[Key, Any],
    context: typer.Context,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FOLDER", help="Folder for the runs and the report.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume the demo in --out.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
) -> None:
    """Pretrain, fine-tune and ask a small GPT; fine-tune an encoder; write one report. Takes minutes."""
    import time

    launch = launch_settings(LaunchConfig, launching) if launching else None
    root = out or fresh_path(ROOT, "demo")
    if not resume and root.exists() and {entry.name for entry in root.iterdir()} - KEPT:
        raise UserError(f"{root} is not empty: choose another folder with --out, or resume it with --resume.")
    if resume and out is None:
        raise UserError("--resume needs --out: the folder of the demo to resume.")
    if launch is not None:
        require_one_node(launch, "the demo")
        command = [*typed_command(context, "out"), f"--out={root}", *([] if resume else ["--resume"])]
        submit_command(launch, "demo", root, command, command)
        return
    from attnlab.base.console import clock
    from attnlab.jobs.demo.demo import run_demo

    start = time.monotonic()
    report = run_demo(root, seed)
    console.say(f"done in {clock(time.monotonic() - start)}")
    console.result(f"report: {report}")


def register(app: typer.Typer) -> None:
    app.command(epilog=example("attnlab demo --out runs/demo"))(demo)
