"""`attnlab heads RUN`: which head does what."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnlab.base import console
from attnlab.cli.help import example

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

    from attnlab.interpret.head_history import HeadHistory
    from attnlab.interpret.heads import HeadReport
    from attnlab.stats.intervals import Mean

EXAMPLE = example("attnlab heads runs/my-run --text input.txt --figure heads.png")


def heads(
    source: Annotated[
        str, typer.Argument(metavar="RUN|MODEL", help="A run folder, or a pretrained model by name, folder or hub id.")
    ],
    text: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A text to score on as well; separator heads need one.")
    ] = None,
    draws: Annotated[int, typer.Option(min=1, help="Sequences of random tokens, and passages of the text.")] = 10,
    length: Annotated[
        int | None, typer.Option(help="Random tokens, written twice.", show_default="50, or what fits", min=4)
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random tokens.")] = 0,
    top: Annotated[int, typer.Option(min=1, help="Heads to list per kind.")] = 3,
    checkpoints: Annotated[
        bool, typer.Option("--checkpoints", help="At every checkpoint that the run has kept, beside its loss.")
    ] = False,
    figure: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the figure to this file (.png, .svg, .pdf).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores of all heads as JSON.")] = False,
) -> None:
    """Name the heads: previous-token, first-token, duplicate-token, induction, separator, local."""
    from attnlab.api import interpret
    from attnlab.base.files import read_text
    from attnlab.interpret.head_figures import head_curves, head_map

    content = read_text(text) if text is not None else None
    if checkpoints:
        history = interpret.head_history(source, content, draws=draws, length=length, seed=seed)
        notes, rows = history.reports[-1].notes, history.rows()
        _save(lambda: head_curves(history), figure)
    else:
        report = interpret.heads(source, content, draws=draws, length=length, seed=seed)
        notes, rows = report.notes, report.rows()
        _save(lambda: head_map(report), figure)
    for note in notes:
        console.say(note)
    if as_json:
        console.json_result(rows, indent=None)
    elif checkpoints:
        _print_history(history)
    else:
        _print_report(report, top)


def _save(draw: Callable[[], Figure], path: Path | None) -> None:
    from attnlab.explore.figures.canvas import save

    if path is not None:
        console.say(f"wrote {save(draw, path)}")


def _print_report(report: HeadReport, top: int) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(f"Heads of {report.name}"), title_justify="left", title_style="bold")
    for name in ("kind", "on", "layer.head", "score", "95% interval", "chance"):
        table.add_column(name, justify="right" if name in ("score", "chance") else "left")
    for scores in report.kinds:
        for number, ((layer, head), mean) in enumerate(scores.strongest(top)):
            kind, source = (scores.kind, scores.source) if number == 0 else ("", "")
            table.add_row(kind, source, f"{layer}.{head}", f"{mean.mean:.3f}", _interval(mean), f"{scores.chance:.3f}")
    console.result(table)
    for source, (count, length) in report.draws.items():
        console.result(f"{source}: {count} sequences of {length} tokens")


def _print_history(history: HeadHistory) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(f"The strongest heads of {history.name} by step"), title_justify="left")
    loss = dict(zip(*history.loss, strict=True))
    kinds = [(scores.kind, scores.source) for scores in history.reports[0].kinds]
    for name in ("step", "dev loss", *(f"{kind}\n{source}" for kind, source in kinds)):
        table.add_column(name, justify="right")
    for step, report in zip(history.steps, history.reports, strict=True):
        best = [report.scores(*key).strongest(1)[0] for key in kinds]
        shown = [f"{mean.mean:.3f} ({layer}.{head})" for (layer, head), mean in best]
        table.add_row(str(step), f"{loss[step]:.3f}" if step in loss else "", *shown)
    console.result(table)


def _interval(mean: Mean) -> str:
    return "one draw" if mean.interval is None else "{:.3f} to {:.3f}".format(*mean.interval)


def register(app: typer.Typer) -> None:
    app.command(epilog=EXAMPLE)(heads)
