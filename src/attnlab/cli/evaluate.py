"""`attnlab evaluate RUN FILE`: many questions, a text or labelled texts, depending on the kind of the run."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attnlab.base import console
from attnlab.base.errors import UserError
from attnlab.base.files import finite
from attnlab.cli.help import example
from attnlab.runs.folder import called_by_command

if TYPE_CHECKING:
    from attnlab.api.evaluate import Evaluation

OF_QUESTIONS, OF_TEXT, OF_LABELLED = "Questions", "A text", "Labelled texts"
OF_CONFIDENCE = "Questions and labelled texts"
SHOWN_CLASSES = 12


def abstain_below_option(panel: str | None = None) -> Any:
    text = 'Answer "I don\'t know" if the confidence is below P.'
    text += " Of labelled texts: what that gains and loses." if panel else ""
    return typer.Option("--abstain-below", metavar="P", help=text, rich_help_panel=panel)


def abstain_option(panel: str | None = None) -> Any:
    text = 'Answer "I don\'t know" about people whose names the model has not read, by the probability of the name.'
    return typer.Option("--abstain", help=text, rich_help_panel=panel)


def corpus_option(panel: str | None = None) -> Any:
    text = "The pretraining text (default: from the run's record)."
    return typer.Option("--corpus", metavar="FILE", help=text, rich_help_panel=panel)


def evaluate(
    context: typer.Context,
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run; of a classifier also an export.")],
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE", help="finetune, knowledge: questions; language, pretrain: a text; classify: labelled texts."
        ),
    ] = None,
    questions: Annotated[
        Path | None,
        typer.Option(
            "--questions",
            metavar="FILE",
            help="Questions, one per line, each optionally followed by a tab and the answer "
            "(default: the run's own, test if it has some, else dev).",
            rich_help_panel=OF_QUESTIONS,
        ),
    ] = None,
    corpus: Annotated[Path | None, corpus_option(OF_QUESTIONS)] = None,
    outputs: Annotated[
        Path | None,
        typer.Option(
            "--outputs", metavar="FILE", help="Write the predictions here, one line per question, text or token."
        ),
    ] = None,
    abstain: Annotated[bool, abstain_option(OF_QUESTIONS)] = False,
    abstain_below: Annotated[float | None, abstain_below_option(OF_CONFIDENCE)] = None,
    target_accuracy: Annotated[
        float,
        typer.Option(
            metavar="A", help="Accuracy that the threshold chosen on dev should reach.", rich_help_panel=OF_QUESTIONS
        ),
    ] = 0.8,
    unseen_names: Annotated[
        int,
        typer.Option(
            "--unseen-names",
            "--strangers",
            metavar="N",
            min=0,
            help="Number of invented names to ask about as well.",
            rich_help_panel=OF_QUESTIONS,
        ),
    ] = 200,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FOLDER", help="New folder for the results (default: one in RUN/evaluations)."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the invented names.", rich_help_panel=OF_QUESTIONS)] = 0,
    stride: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Tokens from one window to the next; 1: prefix by prefix (default: half the context).",
            rich_help_panel=OF_TEXT,
        ),
    ] = None,
    longest: Annotated[
        int | None,
        typer.Option(
            "--context",
            metavar="N",
            help="Most tokens to predict from (default: as many as in training).",
            rich_help_panel=OF_TEXT,
        ),
    ] = None,
    per_token: Annotated[
        bool,
        typer.Option("--per-token", help="Write the loss of every token to tokens.jsonl.", rich_help_panel=OF_TEXT),
    ] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.", rich_help_panel=OF_LABELLED)] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as one JSON object.")] = False,
) -> None:
    """Evaluate a run on a file: answers to questions, the loss of a text, or the classes of labelled texts."""
    from attnlab.api.evaluate import evaluate as measure
    from attnlab.evaluation import by_kind

    _must_suit(context, run, by_kind.file_kind(run, file is not None, questions is not None))
    with called_by_command():
        measured = measure(
            run,
            file,
            questions=questions,
            corpus=corpus,
            abstain=abstain,
            abstain_below=abstain_below,
            target_accuracy=target_accuracy,
            unseen_names=unseen_names,
            seed=seed,
            context=longest,
            stride=stride,
            per_token=per_token,
            device=device,
            outputs=outputs,
            out=out,
        )
    if as_json:
        shown = dict(measured) or {"predictions": str(measured.predictions)}
        sys.stdout.write(console.json_line(finite(shown)))
    elif measured.kind == by_kind.QUESTIONS:
        _print_answers(measured)
    else:
        _print_measured(measured)


def _print_measured(measured: Evaluation) -> None:
    """The results on a text or on labelled texts."""
    from attnlab.evaluation.by_kind import TEXT

    for line in _text_lines(measured) if measured.kind == TEXT else _class_lines(measured):
        console.result(line)
    if measured.kind != TEXT and len(measured["classes"]) <= SHOWN_CLASSES:
        console.result(_confusion(measured))
    if measured.predictions is not None:
        console.result(f"predictions: {measured.predictions} ({measured.count:,} lines)")
    console.result(f"results: {measured.folder}/results.json")
    if measured.kind != TEXT and measured.folder is not None:
        console.result(f"report: {measured.folder / 'report.html'}")


def _print_answers(measured: Evaluation) -> None:
    from attnlab.evaluation.page import (
        abstention_line,
        accuracy_lines,
        confidence_lines,
        dev_threshold_lines,
        name_lines,
    )

    if measured:
        abstention = [f"--abstain-below: {abstention_line(measured['abstention'])}"] if measured["abstention"] else []
        lines = [*accuracy_lines(measured), *confidence_lines(measured), *name_lines(measured), *abstention]
        for line in lines + dev_threshold_lines(measured):
            console.result(line)
    console.result(f"predictions: {measured.predictions} ({measured.count} lines)")
    if measured and measured.folder is not None:
        console.result(f"report: {measured.folder / 'report.html'}")


def _must_suit(context: typer.Context, run: Path, kind: str) -> None:
    """Refuse an option that is about another kind of file: it would be ignored silently."""
    from attnlab.evaluation.by_kind import LABELLED, QUESTIONS, TEXT

    panels = {OF_QUESTIONS: QUESTIONS, OF_TEXT: TEXT, OF_LABELLED: LABELLED}
    for parameter in context.command.params:
        name, panel = str(parameter.name), getattr(parameter, "rich_help_panel", None)
        source = context.get_parameter_source(name)
        if panels.get(str(panel), kind) != kind and source is not None and source.name == "COMMANDLINE":
            raise UserError(f"{parameter.opts[0]} is for {panels[str(panel)]}: {run} is evaluated on {kind}.")


def _text_lines(found: Mapping[str, Any]) -> list[str]:
    spread = f"; 95% over {found['units']:,} {found['unit']}" if found["units"] > 1 else ""
    return [
        f"loss: {found['loss']:.4f} nats per token{_between(found['loss_interval'], '.4f', spread)}",
        f"perplexity: {found['perplexity']:.4g}{_between(found['perplexity_interval'], '.4g')}",
        f"bits per character: {found['bits_per_character']:.4f}, per byte: {found['bits_per_byte']:.4f}",
        f"tokens: {found['tokens']:,} predicted in {found['documents']:,} "
        f"{'document' if found['documents'] == 1 else 'documents'}, {found['unknown_share']:.2%} unknown",
        f"context: at most {found['context']} tokens before each, {found['mean_context']:.1f} on average "
        f"(stride {found['stride']})",
    ]


def _class_lines(found: Mapping[str, Any]) -> list[str]:
    interval = _between(found["accuracy_interval"], ".1%")
    withheld = []
    if found.get("abstention"):
        from attnlab.evaluation.page import abstention_line

        withheld = [f"--abstain-below: {abstention_line(found['abstention'])}"]
    return [
        *withheld,
        f"accuracy: {found['accuracy']:.1%}{interval} of {found['examples']:,} texts",
        f"most common class: {found['most_common_class']:.1%}",
        f"macro F1: {found['macro_f1']:.3f}{_between(found['macro_f1_interval'], '.3f')}",
        f"loss: {found['loss']:.4f}",
    ]


def _between(ends: Sequence[float] | None, form: str, after: str = "") -> str:
    return f" ({ends[0]:{form}} to {ends[1]:{form}}{after})" if ends is not None else ""


def _confusion(found: Mapping[str, Any]) -> Any:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("label, predicted as:", *found["classes"]):
        table.add_column(console.cell(title), justify="right" if title in found["classes"] else "left")
    for name, counts in zip(found["classes"], found["confusion"], strict=True):
        table.add_row(console.cell(name), *map(str, counts))
    return table


def register(app: typer.Typer) -> None:
    app.command(epilog=example("attnlab evaluate runs/my-language held-out.txt --stride 1"))(evaluate)
