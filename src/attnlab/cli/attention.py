"""`attnlab attention`, `attnlab audit`, `attnlab new attention`: list variants, examine one, start one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from attnlab.base import console
from attnlab.cli.help import example


def register(app: typer.Typer) -> None:
    app.command("attention", epilog=example("attnlab attention"))(list_variants)
    app.command("audit", epilog=example("attnlab audit linear --positions none"))(audit)
    new = typer.Typer(help="Write a commented file to start from.", no_args_is_help=True)
    new.command("attention", epilog=example("attnlab new attention my_attention"))(new_attention)
    app.add_typer(new, name="new")


AsJson = Annotated[bool, typer.Option("--json", help="Print as JSON.")]


def list_variants(as_json: AsJson = False) -> None:
    """List the kinds of attention with equation, paper and cost."""
    from attnlab.attention import VARIANTS

    variants = sorted(VARIANTS.values(), key=lambda v: (v.name != "vanilla", v.name))
    if as_json:
        rows = [
            {
                "name": v.name,
                "equation": v.equation,
                "paper": v.paper,
                "time": v.time,
                "memory": v.memory,
                "positions": sorted(v.positions),
                "causal": v.causal,
                "bidirectional": v.bidirectional,
            }
            for v in variants
        ]
        console.out.out(json.dumps(rows, indent=2, ensure_ascii=False), highlight=False)
        return
    table = Table(box=None, pad_edge=False)
    for title in ("name", "equation", "paper", "time", "memory"):
        table.add_column(title, no_wrap=title in ("name", "time", "memory"), overflow="fold")
    for v in variants:
        table.add_row(v.name, v.equation, v.paper, _power(v.time), _power(v.memory))
    console.result(table)
    console.say("Your own: `attnlab new attention NAME` writes a file, whose path is a name like these.")


def audit(
    name: Annotated[str, typer.Argument(help="A kind of attention, or the path of your own .py file.")],
    positions: Annotated[str, typer.Option(help="With these positions inside: none, rotary or alibi.")] = "none",
    width: Annotated[int, typer.Option(help="Numbers a token.")] = 16,
    heads: Annotated[int, typer.Option(help="Heads.")] = 4,
    context: Annotated[int, typer.Option(help="Tokens in the sequences of the checks.")] = 72,
    bidirectional: Annotated[
        bool, typer.Option("--bidirectional", help="Audit the form that reads both ways.")
    ] = False,
    cost: Annotated[bool, typer.Option(help="Measure time and memory.")] = True,
    half: Annotated[bool, typer.Option(help="Try 16 bits, in a process of their own.")] = True,
    as_json: AsJson = False,
) -> None:
    """Check that a kind of attention is what it says it is.

    Does it see the future, notice padding, reach all its parameters, decode as it trains, stay finite,
    and cost what it promises? Exit code 0: nothing fails; 1: something does; 2: it cannot be audited.
    """
    from attnlab.attention import MixerShape
    from attnlab.attention.audit.run import audit as run

    shape = MixerShape(width, heads, context, causal=not bidirectional, positions=positions)
    report = run(name, shape, cost=cost, half=half)
    if as_json:
        found = [vars(finding) for finding in report.findings]
        text = json.dumps({"name": name, "passed": report.passed, "findings": found}, indent=2, ensure_ascii=False)
        console.out.out(text, highlight=False)
    else:
        table = Table(box=None, pad_edge=False)
        table.add_column("check", no_wrap=True)
        table.add_column("", no_wrap=True)
        table.add_column("evidence", overflow="fold")
        words = {True: "[green]pass[/]", False: "[bold red]FAIL[/]", None: "[dim]–[/]"}
        for finding in report.findings:
            table.add_row(finding.check, words[finding.passed], finding.evidence)
        console.result(table)
    if not report.passed:
        raise typer.Exit(1)


def new_attention(
    name: Annotated[str, typer.Argument(help="What to call it; the file is NAME.py.")],
    folder: Annotated[Path, typer.Option(help="Where to write it.")] = Path(),
) -> None:
    """Write an attention of your own to start from, and a test next to it."""
    from attnlab.attention.starter import write_starter

    mixer, test = write_starter(name, folder)
    console.result(f"{mixer}\n{test}")
    console.say(f"Next: attnlab audit {mixer}")


RAISED = str.maketrans("0123456789.", "⁰¹²³⁴⁵⁶⁷⁸⁹·")


def _power(exponent: float | None) -> str:
    return "" if exponent is None else "O(T)" if exponent == 1 else f"O(T{str(exponent).translate(RAISED)})"
