"""`attnlab runs`: list, filter and sort runs, show or delete one, compare the configurations of two."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attnlab.base import console
from attnlab.base.errors import UserError
from attnlab.cli.help import example
from attnlab.runs.folder import ROOT

if TYPE_CHECKING:
    from rich.text import Text

    from attnlab.runs.listing import Summary

Root = Annotated[Path, typer.Option("--in", metavar="FOLDER", help="Where to look for runs.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Folder = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")]

app = typer.Typer(help="List, filter and sort runs, show one, delete some, compare the configurations of two.")
SCORES = ("test_accuracy", "dev_accuracy")
COLOURS = {
    "queued": "blue",
    "finished": "green",
    "running": "cyan",
    "failed": "red",
    "interrupted": "yellow",
    "damaged": "red",
}
# The columns of the table by the width they need; the default name of a run contains its kind and start.
COLUMNS = {
    0: ("run", "state", "done", "result"),
    90: ("run", "state", "done", "disk", "result"),
    110: ("run", "kind", "state", "step", "time", "disk", "result"),
    130: ("run", "kind", "data", "model", "method", "state", "time", "disk", "result"),
    180: ("run", "kind", "data", "model", "method", "state", "step", "time", "started", "disk", "result"),
}
LONGEST_REASON = 100  # characters; `attnlab runs show` prints it in full


@app.callback(invoke_without_command=True, epilog=example("attnlab runs --state finished"))
def runs(
    context: typer.Context,
    root: Root = ROOT,
    kind: Annotated[str | None, typer.Option(help="Only runs of this kind (pretrain, ...).")] = None,
    state: Annotated[
        str | None, typer.Option(help="Only queued, running, finished, failed, interrupted, damaged.")
    ] = None,
    contains: Annotated[str | None, typer.Option(help="Only runs whose path contains this.")] = None,
    data: Annotated[str | None, typer.Option(help="Only runs whose data contain this.")] = None,
    model: Annotated[str | None, typer.Option(help="Only runs whose model contains this.")] = None,
    method: Annotated[str | None, typer.Option(help="Only runs of this method (full, lora, ...).")] = None,
    sort: Annotated[str, typer.Option(help="Order: started, name, time, disk, dev, test.")] = "started",
    as_json: Json = False,
) -> None:
    if context.invoked_subcommand is not None:
        return
    from attnlab.api.listing import summaries

    chosen = summaries(root, kind, state, contains, data, model, method, sort)
    if as_json:
        console.json_result([run.__dict__ for run in chosen])
    elif chosen:
        console.result(_table(chosen, root, console.out.width))
    else:
        console.result(f"no runs in {root}.")


def _table(summaries: list[Summary], root: Path, width: int) -> Any:
    """As many columns as fit; paths relative to `root`, a run inside another indented below it."""
    from rich.table import Table
    from rich.text import Text

    from attnlab.base.console import clock, started_at

    titles = COLUMNS[max(least for least in COLUMNS if least <= width)]
    rows = [(run, "  " * depth + name) for run, name, depth in _nested(summaries, root)]
    run_width = min(width * 9 // 20, max(36, width // 3), max(len(name) for _, name in rows))
    run_title = f"run in {root}"
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in titles:
        table.add_column(
            run_title if title == "run" and len(run_title) <= run_width else title,
            justify="right" if title in ("done", "step", "time", "disk") else "left",
            overflow="fold",
            no_wrap=title not in ("run", "result", "data", "model"),
            max_width=20 if title in ("data", "model") else None,
            width=run_width if title == "run" else None,
        )
    for run, name in rows:
        cells: dict[str, str | Text] = {
            "run": console.cell(name),
            "kind": run.kind,
            "state": Text(run.state, style=COLOURS.get(run.state, "")),
            "done": f"{run.step / run.steps:.0%}" if run.steps else "",
            "step": f"{run.step:,}/{run.steps:,}",
            "time": clock(run.seconds),
            "started": started_at(run.started) if run.started else "",
            "data": console.cell(run.data),
            "model": console.cell(run.model),
            "method": console.cell(run.method),
            "disk": _size(run.bytes),
            "result": _result(run),
        }
        table.add_row(*(cells[title] for title in titles))
    return table


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:,.1f} MB"


def _nested(summaries: list[Summary], root: Path) -> Iterator[tuple[Summary, str, int]]:
    """Each run with its name below the run that contains it, and how deep it is; a run follows its container."""
    listed = {run.path for run in summaries}
    inside: dict[Path | None, list[Summary]] = {}
    for run in summaries:
        container = next((parent for parent in run.path.parents if parent in listed), None)
        inside.setdefault(container, []).append(run)

    def below(container: Path | None, depth: int) -> Iterator[tuple[Summary, str, int]]:
        for run in inside.get(container, ()):
            yield run, str(run.path.relative_to(container or root)), depth
            yield from below(run.path, depth + 1)

    return below(None, 0)


def _result(run: Summary) -> Text:
    from rich.text import Text

    numbers = {name: value for name in SCORES if isinstance(value := run.results.get(name), int | float)}
    scores = [f"{name.removesuffix('_accuracy')} {value:.1%}" for name, value in numbers.items()]
    reason = run.reason if len(run.reason) <= LONGEST_REASON else f"{run.reason[: LONGEST_REASON - 1]}…"
    result = console.cell(", ".join(scores) or reason)
    return Text.assemble(("collapsed", "bold red"), "; ", result) if run.results.get("collapsed") else result


@app.command(epilog=example("attnlab runs show runs/my-run"))
def show(run: Folder, as_json: Json = False) -> None:
    """Show one run: status, command, data, configuration, results, the last metrics."""
    import yaml

    from attnlab.runs import read_config, read_metrics, read_record, read_status

    record = read_record(run)
    first = {"status": read_status(run)} | ({"collapsed": record["collapsed"]} if "collapsed" in record else {})
    facts = {
        **first,
        **record,
        "config": read_config(run),
        "last_metrics": list(read_metrics(run / "metrics.jsonl"))[-2:],
    }
    if as_json:
        console.json_result(facts)
    else:
        console.result(yaml.safe_dump(facts, sort_keys=False, allow_unicode=True).rstrip())


@app.command(epilog=example("attnlab runs delete runs/my-run"))
def delete(
    chosen: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of runs.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete runs, with all that is in their folders, after asking."""
    import sys

    from attnlab.runs.folder import must_be_free
    from attnlab.runs.listing import delete_run, disk, find_runs
    from attnlab.runs.record import is_run

    for path in chosen:
        if not is_run(path) or path.is_symlink():
            raise UserError(f"{path} is not the folder of a run: nothing was deleted.")
        must_be_free(path)
        inner = sum(1 for _ in find_runs(path)) - 1
        within = f", with {inner} runs in it" if inner else ""
        console.result(f"{path}: {_size(disk(path))}{within}")
    if not yes:
        if not sys.stdin.isatty():
            raise UserError("nothing was deleted: there is no terminal to ask on; give --yes.")
        if not typer.confirm(f"delete {'it' if len(chosen) == 1 else f'these {len(chosen)} runs'}?"):
            console.result("nothing was deleted.")
            return
    for path in chosen:
        delete_run(path)
    console.result(f"deleted: {len(chosen)} {'run' if len(chosen) == 1 else 'runs'}.")


@app.command(epilog=example("attnlab runs compare runs/first runs/second"))
def compare(
    first: Folder,
    second: Annotated[Path, typer.Argument(metavar="OTHER", help="Folder of another run.")],
    as_json: Json = False,
) -> None:
    """Show the settings in which two runs differ and their results side by side; test two classifiers."""
    from rich.table import Table

    from attnlab.runs import read_record
    from attnlab.runs.listing import differences
    from attnlab.runs.paired import paired_test

    rows = dict(differences(first, second))
    results = [read_record(path).get("results", {}) for path in (first, second)]
    for name in dict.fromkeys([*results[0], *results[1]]):
        rows[f"results.{name}"] = (results[0].get(name), results[1].get(name))
    if as_json:
        console.json_result(rows)
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
