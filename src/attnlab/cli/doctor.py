"""`attnlab doctor`: what this machine can do."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated, Any

import typer

from attnlab.base import console
from attnlab.cli.help import example


def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False) -> None:
    """Show what this machine can do: cores, memory, devices, precisions and their speed, versions, hub."""
    facts = _examine()
    if as_json:
        console.json_result(facts)
        return
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for name, value in _rows(facts):
        table.add_row(name, value)
    console.result(table)


def _examine() -> dict[str, Any]:
    from attnlab.base.machine import facts, precision
    from attnlab.base.machine.facts import resolve_device

    _, free = facts.memory()
    device = resolve_device("auto")
    console.say("trying precisions in child processes ...")
    trials = precision.trials(device, fresh=True)
    return {
        **facts.describe(),
        "memory_free_gib": round(free / facts.GIB, 1),
        "disk_free_gib": round(shutil.disk_usage(Path.cwd()).free / facts.GIB, 1),
        "device": device,
        "precisions": {t.precision: t.gflops if t.gflops is not None else t.reason for t in trials},
        "auto": {"device": device, "precision": precision.choose(device), "threads": facts.threads()},
        "versions": facts.versions(),
        "hub": facts.hub_status(),
    }


def _rows(facts: dict[str, Any]) -> list[tuple[str, str]]:
    speeds = [
        f"{name}: {value:,.0f} GFLOP/s" if isinstance(value, float) else f"{name}: does not work, {value}"
        for name, value in facts["precisions"].items()
    ]
    auto = facts["auto"]
    depends = auto["device"] == "cpu" and auto["precision"] != "fp32"
    measured = " if a step of the model is faster in it" if depends else ""
    return [
        ("processor", f"{facts['cpu']}, {facts['cores']} cores for this process"),
        ("memory", f"{facts['memory_gib']} GiB, {facts['memory_free_gib']} GiB free"),
        ("disk", f"{facts['disk_free_gib']} GiB free here"),
        ("accelerators", ", ".join(facts["devices"]) or "none"),
        (f"precisions on {facts['device']}", "\n".join(speeds)),
        ("auto means", f"device {auto['device']}, precision {auto['precision']}{measured}, {auto['threads']} threads"),
        ("hub", facts["hub"]),
        ("versions", ", ".join(f"{name} {version}" for name, version in facts["versions"].items())),
        ("system", facts["system"]),
    ]


def register(app: typer.Typer) -> None:
    app.command(epilog=example("attnlab doctor"))(doctor)
