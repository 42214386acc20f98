"""`attnlab check FILE`: is this implementation of attention right, and if not, what is the likely mistake?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attnlab.base import console
from attnlab.check.results import ExerciseStage
from attnlab.cli.help import example


def register(app: typer.Typer) -> None:
    app.command("check", epilog=example("attnlab check my_attention.py --stage heads"))(check)


def check(
    file: Annotated[Path, typer.Argument(help="Your functions: a .py file, or a notebook as .py or .ipynb.")],
    stage: Annotated[ExerciseStage, typer.Option(help="Check up to this stage only.")] = ExerciseStage.HEADS,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    time_limit: Annotated[float, typer.Option(help="Time limit per function, in seconds.")] = 10.0,
    seed: Annotated[int | None, typer.Option(help="Repeat a check with its inputs: the seed of its report.")] = None,
    record: Annotated[
        Path | None, typer.Option(help="Append each result to this file, as a line of JSON, when it is known.")
    ] = None,
) -> None:
    """Check your own attention, function by function, and name the likely mistake.

    The functions are those of attnlab.attention.pieces, with the same names and signatures.
    Exit code 0: all checks pass; 1: a check fails; 2: the file cannot be read.
    """
    from attnlab.api import mixers
    from attnlab.check.terminal_report import render

    report = mixers.check(file, stage, time_limit, seed, record)
    if as_json:
        console.json_result(report.to_json())
    else:
        for part in render(report):
            console.result(part)
    if not report.passed:
        raise typer.Exit(1)
