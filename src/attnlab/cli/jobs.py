"""`attnlab jobs`: runs submitted to a cluster: their status, their logs, and how to cancel them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnlab.base import console
from attnlab.cli.help import example
from attnlab.runs.folder import ROOT

if TYPE_CHECKING:
    from rich.table import Table

    from attnlab.launch.status import JobStatus

Root = Annotated[Path, typer.Option("--in", metavar="FOLDER", help="Folder of the runs, which contains their index.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Target = Annotated[str, typer.Argument(metavar="JOB|RUN", help="Number of a job, or folder of a run.")]

COLUMNS = ("job", "state", "run", "step", "metric", "submitted", "remark")
WIDE = 110  # columns of a terminal that fits all of COLUMNS

app = typer.Typer(help="Runs submitted to a cluster: list them, print their logs, cancel one.")


@app.callback(invoke_without_command=True, epilog=example("attnlab jobs --json"))
def jobs(context: typer.Context, root: Root = ROOT, as_json: Json = False) -> None:
    if context.invoked_subcommand is not None:
        return
    from attnlab.launch.status import job_statuses

    statuses = job_statuses(root)
    if as_json:
        console.json_result([status.__dict__ for status in statuses])
    elif statuses:
        console.result(_table(statuses))
    else:
        console.result(f"no jobs in {root}: 'attnlab COMMAND --launch slurm' submits one.")


def _table(statuses: list[JobStatus]) -> Table:
    from rich.table import Table
    from rich.text import Text

    from attnlab.cli.runs import COLOURS

    titles = [title for title in COLUMNS if console.out.width >= WIDE or title not in ("metric", "submitted")]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in titles:
        table.add_column(
            title,
            justify="right" if title == "step" else "left",
            overflow="fold",
            no_wrap=title not in ("run", "remark"),
        )
    for job in statuses:
        state = Text(job.state, style=COLOURS.get(job.state, ""))
        cells: dict[str, str | Text] = {
            "job": job.job,
            "state": state,
            "run": Text(str(job.run)),
            "step": f"{job.step:,}/{job.steps:,}" if job.steps else "",
            "metric": f"{job.metric} {job.value:.4g}" if job.value is not None else "",
            "submitted": job.submitted[:16].replace("T", " "),
            "remark": Text(job.remark if len(job.remark) < 60 else f"{job.remark[:59]}…"),
        }
        table.add_row(*(cells[title] for title in titles))
    return table


@app.command(epilog=example("attnlab jobs log runs/my-run"))
def log(target: Target, root: Root = ROOT) -> None:
    """Print the log of a job so far; of an array, the logs of all its jobs."""
    from attnlab.launch.records import find_jobs
    from attnlab.launch.slurm import log_of

    folder, jobs = find_jobs(target, root)
    for job in jobs:
        path = log_of(folder, job)
        if len(jobs) > 1:
            console.result(f"== {job}")
        if path.is_file():
            sys.stdout.write(path.read_text(encoding="utf-8", errors="replace"))
        else:
            console.say(f"job {job} has printed nothing yet")


@app.command(epilog=example("attnlab jobs cancel runs/my-run"))
def cancel(target: Target, root: Root = ROOT) -> None:
    """Remove a job from the queue, or stop it: its run saves and can be resumed."""
    from attnlab.launch.records import find_jobs, submissions_of
    from attnlab.launch.slurm import cancel as cancel_job
    from attnlab.launch.status import active_jobs
    from attnlab.runs import RunFolder, read_status

    folder, jobs = find_jobs(target, root)
    active = active_jobs(folder, jobs)
    for job in active:
        cancel_job(folder, job)
    if submissions_of(folder)[-1].gather in active and read_status(folder)["state"] == "queued":
        RunFolder.join(folder).set_status("interrupted", "cancelled")  # the job that would is cancelled
    console.result(f"cancelled: {', '.join(active)}" if active else f"{target}: its jobs have ended already.")


def register(lab: typer.Typer) -> None:
    lab.add_typer(app, name="jobs")
