"""`attnlab cluster`: the partitions and nodes of a Slurm cluster."""

from __future__ import annotations

from typing import Annotated

import typer

from attnlab.base import console
from attnlab.cli.help import example


def cluster(as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False) -> None:
    """Show a Slurm cluster's partitions and nodes: cores, memory, GPUs, time limit, state."""
    from attnlab.launch.queue import partitions

    groups = partitions()
    if as_json:
        console.json_result([nodes.__dict__ for nodes in groups])
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("partition", "nodes", "state", "cores", "memory", "gres", "time limit", "names"):
        table.add_column(column, justify="right" if column in ("nodes", "cores", "memory") else "left")
    for nodes in groups:
        memory = f"{int(nodes.memory_mib.rstrip('+')) / 1024:.0f} GiB"
        gres = "" if nodes.gres == "(null)" else nodes.gres
        state = nodes.state if nodes.available == "up" else f"{nodes.state}, partition {nodes.available}"
        table.add_row(nodes.partition, nodes.nodes, state, nodes.cpus, memory, gres, nodes.time_limit, nodes.names)
    console.result(table)


def register(app: typer.Typer) -> None:
    app.command(epilog=example("attnlab cluster"))(cluster)
