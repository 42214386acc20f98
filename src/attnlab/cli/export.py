"""`attnlab export RUN --to FOLDER`: a tuned classifier as a folder for others."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attnlab.base import console
from attnlab.cli.help import example


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a classify run.")],
    to: Annotated[Path, typer.Option("--to", metavar="FOLDER", help="New folder to write.")],
    weights_only: Annotated[
        bool,
        typer.Option("--weights-only", help="Only the trained weights: 'attnlab predict' adds them to the base model."),
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier export.")] = False,
) -> None:
    """Export a classifier as a folder that needs no other, adapters merged, with a model card.

    It is a plain folder of transformers where that has such a classifier.
    """
    from attnlab.jobs.classify.export import export as write

    form = write(run, to, weights_only, overwrite)
    size = sum(path.stat().st_size for path in to.iterdir())
    what = {
        "transformers": f"load it with transformers.pipeline('text-classification', '{to}')",
        "words": "a text-to-text model: its README.md shows how to use it",
        "encoder": "an encoder of transformers and what is on top of it: its README.md shows how to use it",
        "linear": "a vocabulary and weights",
        "weights": "the trained weights alone",
    }[form]
    console.result(f"exported: {to} ({size / 1e6:,.1f} MB; {what})")
    console.say(f"try it: attnlab predict {to} --text …")


def register(app: typer.Typer) -> None:
    app.command(epilog=example("attnlab export runs/my-classifier --to my-classifier"))(export)
