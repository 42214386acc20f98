"""`attnlab runs`: list and filter runs, show one, compare the configurations of two."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attnlab.base import console
from attnlab.base.errors import UserError, unknown
from attnlab.runs.folder import ROOT

if TYPE_CHECKING:
    from attnlab.runs.listing import Summary

Root = Annotated[Path, typer.Option("--in", metavar="FOLDER", help="Where to look for runs.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Folder = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")]

app = typer.Typer(help="List and filter runs, show one, compare the configurations of two.")
SCORES = ("test_accuracy", "dev_accuracy")
COLOURS = {"queued": "blue", "finished": "green", "running": "cyan", "failed": "red", "interrupted": "yellow"}


@app.callback(invoke_without_command=True)
def runs(
    context: typer.Context,
    root: Root = ROOT,
    kind: Annotated[str | None, typer.Option(help="Only runs of this kind (pretrain, ...).")] = None,
    state: Annotated[str | None, typer.Option(help="Only queued, running, finished, failed, interrupted.")] = None,
    contains: Annotated[str | None, typer.Option(help="Only runs whose path contains this.")] = None,
    as_json: Json = False,
) -> None:
    if context.invoked_subcommand is not None:
        return
    from attnlab.runs.folder import STATES
    from attnlab.runs.listing import find_runs, summarise

    if state is not None and state not in STATES:
        raise UserError(unknown("state", state, STATES))
    if not root.is_dir():
        raise UserError(f"{root}: there is no such folder; name the folder of the runs with --in.")
    found = [summarise(path) for path in find_runs(root) if contains is None or contains in str(path)]
    found = [run for run in found if kind in (None, run.kind) and state in (None, run.state)]
    if as_json:
        console.out.print_json(json.dumps([run.__dict__ for run in found], default=str))
    elif found:
        console.result(_table(found))
    else:
        console.result(f"no runs in {root}.")


def _table(found: list[Summary]) -> Any:
    from rich.table import Table
    from rich.text import Text

    from attnlab.base.formats import clock, started_at

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("run", "kind", "state", "step", "time", "started", "result"):
        table.add_column(column, no_wrap=column == "run", justify="right" if column in ("step", "time") else "left")
    for run in found:
        state = Text(run.state, style=COLOURS.get(run.state, ""))
        scores = [f"{name.replace('_', ' ')} {run.results[name]:.1%}" for name in SCORES if name in run.results]
        result = Text(", ".join(scores) or run.reason)
        if run.results.get("collapsed"):
            result = Text.assemble(("collapsed", "bold red"), "; ", result)
        steps = f"{run.step:,}/{run.steps:,}"
        table.add_row(str(run.path), run.kind, state, steps, clock(run.seconds), started_at(run.started), result)
    return table


@app.command()
def show(run: Folder, as_json: Json = False) -> None:
    """Show one run: status, command, data, configuration, results, the last metrics."""
    import yaml

    from attnlab.runs import read_config, read_metrics, read_record, read_status

    record = read_record(run)
    first = {"status": read_status(run)} | ({"collapsed": record["collapsed"]} if "collapsed" in record else {})
    found = {
        **first,
        **record,
        "config": read_config(run),
        "last_metrics": list(read_metrics(run / "metrics.jsonl"))[-2:],
    }
    if as_json:
        console.out.print_json(json.dumps(found))
    else:
        console.out.print(yaml.safe_dump(found, sort_keys=False, allow_unicode=True).rstrip(), markup=False)


@app.command()
def compare(
    first: Folder,
    second: Annotated[Path, typer.Argument(metavar="OTHER", help="Folder of another run.")],
    as_json: Json = False,
) -> None:
    """Show the settings in which two runs differ, and their results side by side; of classifiers, a test of both."""
    from rich.table import Table

    from attnlab.runs import read_record
    from attnlab.runs.listing import differences
    from attnlab.runs.paired import paired_test

    rows = dict(differences(first, second))
    results = [read_record(path).get("results", {}) for path in (first, second)]
    for name in dict.fromkeys([*results[0], *results[1]]):
        rows[f"results.{name}"] = (results[0].get(name), results[1].get(name))
    if as_json:
        console.out.print_json(json.dumps(rows))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("setting", str(first), str(second)):
        table.add_column(title)
    for name, (one, two) in rows.items():
        table.add_row(name, str(one), str(two))
    console.result(table if rows else "the two runs have the same configuration and no results yet.")
    if (tested := paired_test(first, second)) is not None:
        console.result(f"\n{tested}")


def register(lab: typer.Typer) -> None:
    lab.add_typer(app, name="runs")
