"""`attnlab attention`, `attnlab audit`, `attnlab new attention`: list variants, audit one, start a new one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

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
    """List the attention variants with equation, paper and cost."""
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
        console.json_result(rows)
        return
    table = Table(box=None, pad_edge=False)
    for title in ("name", "equation", "paper", "time", "memory"):
        table.add_column(title, no_wrap=title in ("name", "time", "memory"), overflow="fold")
    for v in variants:
        table.add_row(v.name, v.equation, v.paper, _power(v.time), _power(v.memory))
    console.result(table)
    console.say("Your own: `attnlab new attention NAME` writes a file; use its path like the names above.")


def audit(
    name: Annotated[str, typer.Argument(help="An attention variant, or the path of your own .py file.")],
    positions: Annotated[str, typer.Option(help="Positions inside attention: none, rotary or alibi.")] = "none",
    width: Annotated[int, typer.Option(help="Features per token.")] = 16,
    heads: Annotated[int, typer.Option(help="Number of heads.")] = 4,
    context: Annotated[int, typer.Option(help="Number of tokens in the longest of the checked sequences.")] = 136,
    bidirectional: Annotated[bool, typer.Option("--bidirectional", help="Audit the bidirectional form.")] = False,
    cost: Annotated[bool, typer.Option(help="Measure time and memory.")] = True,
    half: Annotated[bool, typer.Option(help="Check 16-bit precision, in a separate process.")] = True,
    as_json: AsJson = False,
) -> None:
    """Check that an attention variant has the properties it declares.

    Does it see the future, ignore padding, give all its parameters a gradient, decode as it trains, stay finite,
    and have the declared cost? Exit code 0: all checks pass; 1: a check fails; 2: it cannot be audited.
    """
    from attnlab.api import mixers

    report = mixers.audit(
        name,
        width=width,
        heads=heads,
        context=context,
        causal=not bidirectional,
        positions=positions,
        cost=cost,
        half=half,
    )
    if as_json:
        findings = [vars(finding) for finding in report.findings]
        console.json_result({"name": name, "passed": report.passed, "findings": findings})
    else:
        table = Table(box=None, pad_edge=False)
        table.add_column("check", no_wrap=True)
        table.add_column("", no_wrap=True)
        table.add_column("evidence", overflow="fold")
        labels = {True: Text("pass", "green"), False: Text("FAIL", "bold red"), None: Text("–", "dim")}
        for finding in report.findings:
            table.add_row(finding.check, labels[finding.passed], finding.evidence)
        console.result(table)
    if not report.passed:
        raise typer.Exit(1)


def new_attention(
    name: Annotated[str, typer.Argument(help="Its name; the file is NAME.py.")],
    folder: Annotated[Path, typer.Option(help="The folder to write to.")] = Path(),
) -> None:
    """Write a file with an attention variant to start from, and a test next to it."""
    from attnlab.attention.starter import write_starter

    mixer, test = write_starter(name, folder)
    console.result(f"{mixer}\n{test}")
    console.say(f"Next: attnlab audit {mixer}")


RAISED = str.maketrans("0123456789.", "⁰¹²³⁴⁵⁶⁷⁸⁹·")


def _power(exponent: float | None) -> str:
    return "" if exponent is None else "O(T)" if exponent == 1 else f"O(T{str(exponent).translate(RAISED)})"
