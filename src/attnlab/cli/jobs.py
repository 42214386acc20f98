"""`attnlab jobs`: the runs that were handed to a cluster, how they stand, what they print; and to cancel them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from attnlab.base import console
from attnlab.runs.folder import ROOT

Root = Annotated[Path, typer.Option("--in", metavar="FOLDER", help="The folder of the runs, with their index.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Target = Annotated[str, typer.Argument(metavar="JOB|RUN", help="Number of a job, or folder of a run.")]

app = typer.Typer(help="Runs handed to a cluster: queued, running and finished ones; their logs; cancel one.")


@app.callback(invoke_without_command=True)
def jobs(context: typer.Context, root: Root = ROOT, as_json: Json = False) -> None:
    if context.invoked_subcommand is not None:
        return
    from attnlab.launch.status import standings

    found = standings(root)
    if as_json:
        console.out.print_json(json.dumps([standing.__dict__ for standing in found], default=str))
    elif found:
        console.result(_table(found))
    else:
        console.result(f"no jobs in {root}: 'attnlab COMMAND --launch slurm' hands one in.")


def _table(found: list[Any]) -> Any:
    from rich.table import Table
    from rich.text import Text

    from attnlab.cli.runs import COLOURS

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("job", "state", "run", "step", "metric", "submitted", "remark"):
        table.add_column(column, no_wrap=column in ("job", "run"), justify="right" if column == "step" else "left")
    for job in found:
        state = Text(job.state, style=COLOURS.get(job.state, ""))
        step = f"{job.step:,}/{job.steps:,}" if job.steps else ""
        metric = f"{job.metric} {job.value:.4g}" if job.metric else ""
        remark = job.remark if len(job.remark) < 60 else f"{job.remark[:57]}..."
        table.add_row(job.job, state, str(job.run), step, metric, job.submitted[:16].replace("T", " "), remark)
    return table


@app.command()
def log(target: Target, root: Root = ROOT) -> None:
    """Print what a job has printed so far; of an array, each of its jobs."""
    from attnlab.launch.records import find
    from attnlab.launch.slurm import log_of

    folder, found = find(target, root)
    for job in found:
        path = log_of(folder, job)
        if len(found) > 1:
            console.result(f"== {job}")
        if path.is_file():
            sys.stdout.write(path.read_text(encoding="utf-8", errors="replace"))
        else:
            console.say(f"job {job} has printed nothing yet")


@app.command()
def cancel(target: Target, root: Root = ROOT) -> None:
    """Take a job out of the queue, or stop it: its run saves and can be resumed."""
    from attnlab.launch.records import find, submissions_of
    from attnlab.launch.slurm import cancel as cancel_job
    from attnlab.launch.status import at_work
    from attnlab.runs import RunFolder, read_status

    folder, found = find(target, root)
    going = at_work(folder, found)
    for job in going:
        cancel_job(folder, job)
    if submissions_of(folder)[-1].gather in going and read_status(folder)["state"] == "queued":
        RunFolder.join(folder).set_status("interrupted", "cancelled")  # nobody else will say so
    console.result(f"cancelled: {', '.join(going)}" if going else f"{target}: its jobs have ended already.")


def register(lab: typer.Typer) -> None:
    lab.add_typer(app, name="jobs")
