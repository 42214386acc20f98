"""`attnlab ask RUN "Where was X born?"`: ask a trained model a question."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnlab.base import console
from attnlab.cli.evaluate import abstain_below_option, abstain_option, corpus_option
from attnlab.cli.help import example

if TYPE_CHECKING:
    from attnlab.evaluation.sources import Sources


def ask(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a fine-tuned run.")],
    question: Annotated[
        str | None, typer.Argument(help="The question; without it, questions are read from standard input.")
    ] = None,
    abstain: Annotated[bool, abstain_option()] = False,
    abstain_below: Annotated[float | None, abstain_below_option()] = None,
    trace: Annotated[
        bool, typer.Option("--trace", help="Print the lines of the pretraining text that name the person.")
    ] = False,
    corpus: Annotated[Path | None, corpus_option()] = None,
) -> None:
    """Ask a fine-tuned model; prints the answer and its confidence, the model's probability of the answer."""
    from attnlab.base.errors import UserError
    from attnlab.evaluation.abstaining import Abstaining, choose_name_threshold, required_threshold
    from attnlab.evaluation.answers import AskedModel
    from attnlab.evaluation.sources import find_sources
    from attnlab.models.asking import check_length
    from attnlab.models.loading import load_gpt

    if abstain_below is not None and not 0.0 <= abstain_below <= 1.0:
        raise UserError(f"--abstain-below must be between 0 and 1, got {abstain_below:g}.")
    if corpus is not None and not (trace or abstain):
        raise UserError("--corpus is only used with --trace and --abstain: give one of them as well.")
    trained = load_gpt(run)
    model, vocabulary = trained.model, trained.vocabulary
    asked = AskedModel(model, vocabulary)
    sources = find_sources(run, corpus) if trace or abstain else None
    for note in sources.notes if sources else []:
        console.warn(note)
    threshold = None
    if sources is not None and abstain:
        threshold = required_threshold(sources, choose_name_threshold(asked.name_probabilities, sources, seed=0))
    abstaining = Abstaining(abstain_below, threshold)

    def reply(text: str) -> None:
        check_length(text, vocabulary, model.shape.context, "the question")
        (given,) = asked.answers([text])
        name = sources.template.name_in(text) if sources is not None else None
        (probability,) = asked.name_probabilities([name or ""])
        about = ""
        if threshold is not None and probability is not None:
            compared = "at least" if threshold.knows(probability) else "below"
            about = f", name {probability:.2g}, {compared} {threshold.value:.2g}"
        elif threshold is not None:
            console.warn("the question names no one by two or more words: --abstain cannot judge it.")
        shown = abstaining.text(given, probability)
        console.result(f"{shown}  (confidence {given.confidence:.2f}{about})")
        unknown = vocabulary.unknown_share(text)
        if unknown:
            console.warn(f"{unknown:.0%} of the question is not in the model's vocabulary.")
        if sources is not None and trace:
            _print_trace(sources, text, given.text)

    if question is not None:
        reply(question)
        return
    stream = typer.get_text_stream("stdin")
    console.say("one question per line; an empty line ends the input.")
    while line := stream.readline().strip():
        try:
            reply(line)
        except UserError as error:
            console.fail(str(error))


def _print_trace(sources: Sources, question: str, answer: str) -> None:
    """The lines that name the person, those with the answer marked."""
    from attnlab.evaluation.answer_trace import MADE_UP, NEVER_NAMED, RETRIEVED

    if sources.pretraining is None:
        return  # a note has given the reason
    name = sources.template.name_in(question)
    if name is None:
        form = sources.template.question_about("…")
        console.warn(f"the question names no one to trace: training questions have the form {form!r}.")
        return
    trace = sources.pretraining.trace(name, answer)
    meaning = {
        RETRIEVED: f"a line that names {name} contains {answer!r}",
        MADE_UP: f"no line that names {name} contains {answer!r}",
        NEVER_NAMED: f"no line names {name}",
    }
    console.result(f"{trace.kind}: {meaning[trace.kind]}.")
    for line in trace.lines:
        mark = "*" if line.number in trace.with_answer else " "
        console.result(f"{mark} line {line.number}: {line.text}")


def register(app: typer.Typer) -> None:
    app.command(epilog=example('attnlab ask runs/my-finetuning "Where was Ada Lovelace born?"'))(ask)
