"""`attnlab cluster`: the partitions and nodes one can ask for."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from attnlab.base import console


def cluster(as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False) -> None:
    """Show a Slurm cluster's partitions and nodes: cores, memory, GPUs, time limit, state."""
    from attnlab.launch.queue import partitions

    found = partitions()
    if as_json:
        console.out.print_json(json.dumps([nodes.__dict__ for nodes in found]))
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("partition", "nodes", "state", "cores", "memory", "gres", "time limit", "names"):
        table.add_column(column, justify="right" if column in ("nodes", "cores", "memory") else "left")
    for each in found:
        memory = f"{int(each.memory_mib.rstrip('+')) / 1024:.0f} GiB"
        gres = "" if each.gres == "(null)" else each.gres
        state = each.state if each.available == "up" else f"{each.state}, partition {each.available}"
        table.add_row(each.partition, each.nodes, state, each.cpus, memory, gres, each.time_limit, each.names)
    console.result(table)


def register(app: typer.Typer) -> None:
    app.command()(cluster)
