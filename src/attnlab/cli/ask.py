"""`attnlab ask RUN "Where was X born?"`: put a question to a trained model."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from attnlab import console


def ask(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a fine-tuned run.")],
    question: Annotated[
        str | None, typer.Argument(help="The question; without it, questions are read line by line.")
    ] = None,
) -> None:
    """Ask a fine-tuned model; it answers with the probability a token it gives to its answer."""
    from attnlab.jobs.knowledge import answer, load_gpt

    model, vocabulary, _ = load_gpt(run)

    def reply(text: str) -> None:
        said, likelihood = answer(model, vocabulary, [text])[0]
        unknown = vocabulary.unknown_share(text)
        console.result(f"{said}  (probability {math.exp(likelihood):.2f} a token)")
        if unknown:
            console.warn(f"{unknown:.0%} of the question is not in the model's vocabulary.")

    if question is not None:
        reply(question)
        return
    stream = typer.get_text_stream("stdin")
    console.say("one question a line; an empty line ends it.")
    while line := stream.readline().strip():
        reply(line)


def register(app: typer.Typer) -> None:
    app.command()(ask)
