"""`attnlab evaluate RUN`: answers to many questions, their confidence, and which of them were made up."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from attnlab.base import console
from attnlab.base.errors import UserError
from attnlab.cli.help import example

AbstainBelow = Annotated[
    float | None,
    typer.Option("--abstain-below", metavar="P", help='Answer "I don\'t know" if the confidence is below P.'),
]
Abstain = Annotated[
    bool,
    typer.Option(
        "--abstain",
        help='Answer "I don\'t know" about people whose names the model has not read, by the probability of the name.',
    ),
]
Corpus = Annotated[
    Path | None, typer.Option("--corpus", metavar="FILE", help="The pretraining text (default: from the run's record).")
]


def evaluate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a fine-tuned run.")],
    questions: Annotated[
        Path | None,
        typer.Option(
            "--questions",
            metavar="FILE",
            help="Questions, one per line, each optionally followed by a tab and the answer "
            "(default: the run's own, test if it has some, else dev).",
        ),
    ] = None,
    corpus: Corpus = None,
    outputs: Annotated[
        Path | None, typer.Option("--outputs", metavar="FILE", help="Write the answers here, one line per question.")
    ] = None,
    abstain: Abstain = False,
    abstain_below: AbstainBelow = None,
    target_accuracy: Annotated[
        float, typer.Option(metavar="A", help="Accuracy that the threshold chosen on dev should reach.")
    ] = 0.8,
    unseen_names: Annotated[
        int,
        typer.Option(
            "--unseen-names", "--strangers", metavar="N", min=0, help="Number of invented names to ask about as well."
        ),
    ] = 200,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FOLDER", help="New folder for the report (default: one in RUN/evaluations)."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the invented names.")] = 0,
) -> None:
    """Ask many questions at once: accuracy, reliability of the confidence, made-up answers."""
    check_share("--abstain-below", abstain_below)
    check_share("--target-accuracy", target_accuracy)
    from attnlab.evaluation.evaluate import EvaluationOptions, evaluate_run
    from attnlab.evaluation.page import (
        abstention_line,
        accuracy_lines,
        confidence_lines,
        dev_threshold_lines,
        name_lines,
    )

    options = EvaluationOptions(
        questions, corpus, outputs, abstain_below, abstain, target_accuracy, unseen_names, out, seed
    )
    evaluation = evaluate_run(run, options)
    for note in evaluation.notes:
        console.warn(note)
    results = evaluation.results
    if results is not None:
        abstention = [f"--abstain-below: {abstention_line(results['abstention'])}"] if results["abstention"] else []
        lines = [*accuracy_lines(results), *confidence_lines(results), *name_lines(results), *abstention]
        for line in lines + dev_threshold_lines(results):
            console.result(escape(line))
    console.result(f"predictions: {evaluation.predictions} ({evaluation.count} lines)")
    if results is not None and evaluation.folder is not None:
        console.result(f"report: {evaluation.folder / 'report.html'}")


def check_share(flag: str, value: float | None) -> None:
    if value is not None and not 0.0 <= value <= 1.0:
        raise UserError(f"{flag} must be between 0 and 1, got {value:g}.")


def register(app: typer.Typer) -> None:
    app.command(epilog=example("attnlab evaluate runs/my-finetuning --questions test.tsv"))(evaluate)
