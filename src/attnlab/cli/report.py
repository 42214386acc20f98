"""`attnlab report RUN`: the report of a run, a comparison or a sweep, written anew."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attnlab.base import console
from attnlab.cli.help import example


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run, a comparison or a sweep.")],
) -> None:
    """Write report.html anew from what is in the folder, also for a run that is not finished."""
    from attnlab.experiments.rewrite import rewrite_report

    console.result(f"report: {rewrite_report(run)}")


def register(app: typer.Typer) -> None:
    app.command(epilog=example("attnlab report runs/my-run"))(report)
