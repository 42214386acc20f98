"""`attnlab check FILE`: is this implementation of attention right, and if not, what is the likely mistake?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from attnlab.base import console
from attnlab.base.errors import UserError
from attnlab.check.results import Stage
from attnlab.cli.help import example


def register(app: typer.Typer) -> None:
    app.command("check", epilog=example("attnlab check my_attention.py --stage heads"))(check)


def check(
    file: Annotated[Path, typer.Argument(help="Your functions: a .py file, or a notebook as .py or .ipynb.")],
    stage: Annotated[Stage, typer.Option(help="Check up to this stage only.")] = Stage.HEADS,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    time_limit: Annotated[float, typer.Option(help="Seconds that one function may take.")] = 10.0,
) -> None:
    """Check your own attention, function by function, and name the likely mistake.

    The functions are those of attnlab.attention.pieces, with the same names and signatures.
    Exit code 0: all pass; 1: something fails; 2: the file cannot be read.
    """
    from attnlab.check.report import render
    from attnlab.check.runner import check_file

    if time_limit <= 0:
        raise UserError(f"--time-limit {time_limit:g} leaves no time: give a number of seconds above zero.")
    report = check_file(file, stage, time_limit)
    if as_json:
        console.out.out(json.dumps(report.to_json(), indent=2, ensure_ascii=False), highlight=False)
    else:
        for part in render(report):
            console.result(part)
    if not report.passed:
        raise typer.Exit(1)
