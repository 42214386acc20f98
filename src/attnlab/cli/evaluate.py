"""`attnlab evaluate RUN`: answers to many questions, how sure the model is of them, and what it made up."""

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
    typer.Option("--abstain-below", metavar="P", help='Answer "I don\'t know" where the confidence is below P.'),
]
Corpus = Annotated[
    Path | None,
    typer.Option("--corpus", metavar="FILE", help="The text of pretraining (default: found from the run's record)."),
]


def evaluate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a fine-tuned run.")],
    questions: Annotated[
        Path | None,
        typer.Option(
            "--questions",
            metavar="FILE",
            help="Questions, a line each, with a tab and the answer or "
            "without (default: the run's own, test if it has some, else dev).",
        ),
    ] = None,
    corpus: Corpus = None,
    outputs: Annotated[
        Path | None, typer.Option("--outputs", metavar="FILE", help="Write the answers here, one line a question.")
    ] = None,
    abstain_below: AbstainBelow = None,
    target_accuracy: Annotated[
        float, typer.Option(metavar="A", help="Share of right answers the threshold chosen on dev aims at.")
    ] = 0.8,
    strangers: Annotated[int, typer.Option(metavar="N", min=0, help="Invented names to ask about as well.")] = 200,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FOLDER", help="New folder for the report (default: one in RUN/evaluations)."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the invented names.")] = 0,
) -> None:
    """Ask many questions at once: accuracy, how far the confidence can be trusted, what was made up."""
    check_share("--abstain-below", abstain_below)
    check_share("--target-accuracy", target_accuracy)
    from attnlab.evaluation.evaluate import Options, evaluate_run
    from attnlab.evaluation.page import abstaining, chosen, outcome, separation

    options = Options(questions, corpus, outputs, abstain_below, target_accuracy, strangers, out, seed)
    done = evaluate_run(run, options)
    for note in done.notes:
        console.warn(note)
    found = done.results
    if found is not None:
        asked_for = [f"asked for: {abstaining(found['abstention'])}"] if found["abstention"] else []
        for line in outcome(found) + separation(found) + asked_for + chosen(found):
            console.result(escape(line))
    console.result(f"predictions: {done.predictions} ({done.count} lines)")
    if found is not None and done.folder is not None:
        console.result(f"report: {done.folder / 'report.html'}")


def check_share(flag: str, value: float | None) -> None:
    if value is not None and not 0.0 <= value <= 1.0:
        raise UserError(f"{flag} is {value:g}: give a number from 0 to 1.")


def register(app: typer.Typer) -> None:
    app.command(epilog=example("attnlab evaluate runs/my-finetuning --questions test.tsv"))(evaluate)
