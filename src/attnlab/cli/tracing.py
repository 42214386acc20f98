"""`attnlab ablate`, `attnlab trace` and `attnlab lens`: change a model inside, or read it before its end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attnlab.base import console
from attnlab.base.errors import UserError
from attnlab.cli.help import example

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from attnlab.interpret.lens import QuestionLens, TextLens
    from attnlab.stats.intervals import Mean

FigureOption = Annotated[
    Path | None, typer.Option("--figure", metavar="FILE", help="Write the figure to this file (.png, .svg, .pdf).")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON, with all digits.")]
SeedOption = Annotated[int, typer.Option(min=0, help="Seed of everything that is drawn.")]
Most = Annotated[int | None, typer.Option("--most", metavar="N", min=1, help="Use at most N examples.")]
QuestionsFile = Annotated[
    Path | None,
    typer.Argument(
        metavar="[QUESTIONS]",
        help="Questions with answers, one per line with a tab between (default: the run's own, test or else dev).",
    ),
]


def ablate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run: a GPT or a classifier.")],
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            help="What to measure on, by the kind of run: questions with answers (default: the run's own), a text, "
            "or labelled texts.",
        ),
    ] = None,
    text: Annotated[str | None, typer.Option("--text", help="A text for the loss of a GPT, instead of a file.")] = None,
    part: Annotated[
        list[str] | None,
        typer.Option("--part", metavar="PART", help="Remove only 2.1 (a head), 2.attention or 2.mlp; may be repeated."),
    ] = None,
    what: Annotated[str, typer.Option(help="Remove all of these, one by one: head, attention or mlp.")] = "head",
    how: Annotated[str, typer.Option(help="Replace by zero, mean or resample (another example's values).")] = "mean",
    curve: Annotated[bool, typer.Option("--curve", help="Also remove more and more heads.")] = False,
    most: Most = None,
    seed: SeedOption = 0,
    figure: FigureOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove heads, mixers or MLPs, and rank them by what changes: loss, answers or classes.

    The curve removes heads in the order of their effects on one half of the examples and measures on the other.
    """
    _check_figure(figure)
    if curve and (part or what != "head"):
        raise UserError("--curve removes heads: leave out --part and --what.")
    from attnlab.api import interpret

    examples: dict[str, Any] = {"data": file, "text": text, "most": most, "seed": seed}
    with console.working("removing ..."):
        ablation = interpret.ablate(run, parts=part, what=what, how=how, **examples)
        line = interpret.removal_curve(run, ablation=ablation, **examples) if curve else None
    _draw(figure, lambda figures: figures.draw_ablation(ablation, line))
    _notes(ablation.notes)
    if as_json:
        return _print_json(ablation.as_dict() | ({"curve": line.as_dict()} if line else {}))
    measures = list(ablation.before)
    before = ", ".join(f"{name} {_plus_minus(mean)}" for name, mean in ablation.before.items())
    console.result(f"{ablation.source}: n = {ablation.examples:,}; nothing removed: {before}")
    rows = [
        [str(effect.part), *(_plus_minus(effect.changes[name], "+.4f") for name in measures)]
        for effect in ablation.effects
    ]
    _print_table(f"removed by {how}, the most harmful first", ["part", *(f"change of {n}" for n in measures)], rows)
    if line:
        rows = [[str(p.removed), _with_interval(p.value, p.interval), _plus_minus(p.random)] for p in line.points]
        title = f"{line.measure} of {line.measured_on} examples, heads ordered by {line.chosen_on} others"
        _print_table(title, ["heads removed", "by effect", f"{line.points[0].random.count} random orders"], rows)
    return None


def trace(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run that answers questions.")],
    questions: QuestionsFile = None,
    corruption: Annotated[str, typer.Option(help="noise on the name, or exchange for another person's.")] = "noise",
    noise: Annotated[float, typer.Option(help="Size of the noise, in standard deviations of the embeddings.")] = 3.0,
    draws: Annotated[int, typer.Option(min=1, help="Draws of the noise, or other names, per person.")] = 4,
    site: Annotated[
        list[str] | None,
        typer.Option("--site", help="stream, attention or mlp; may be repeated.", show_default="all three"),
    ] = None,
    window: Annotated[int, typer.Option(min=1, help="Layers restored together, for attention and mlp.")] = 1,
    measure: Annotated[str, typer.Option(help="probability of the answer, or logit: log p/(1-p).")] = "probability",
    target: Annotated[str, typer.Option(help="The right answer, or the model's own.")] = "right",
    only_right: Annotated[bool, typer.Option("--only-right", help="Only people whose answer is right.")] = False,
    most: Most = None,
    seed: SeedOption = 0,
    figure: FigureOption = None,
    as_json: JsonOption = False,
) -> None:
    """Causal tracing: make the name in a question unreadable, restore one vector at a time.

    Where restoring brings the answer back, that layer and part of the question carry it. (`ask --trace` is something
    else: it looks for the answer in the pretraining text.)
    """
    _check_figure(figure)
    from attnlab.api import interpret
    from attnlab.interpret.asked_people import PARTS
    from attnlab.interpret.tracing import layer_name

    with console.working("tracing ..."):
        result = interpret.trace(
            run,
            questions,
            corruption=corruption,
            noise=noise,
            draws=draws,
            sites=site,
            window=window,
            measure=measure,
            target=target,
            only_right=only_right,
            seed=seed,
            most=most,
        )
    _draw(figure, lambda figures: figures.draw_trace(result))
    _notes(result.notes)
    if as_json:
        return _print_json(result.as_dict())
    answer = "the right answer" if target == "right" else "the model's own answer"
    console.result(
        f"{result.people} people of {result.source}; "
        f"{result.right} of {result.asked} answered right (first token). "
        f"{measure} of {answer}: clean {_plus_minus(result.clean)}, corrupted {_plus_minus(result.corrupted)}"
    )
    for each in result.options.sites:
        layers = sorted({cell.layer for cell in result.cells if cell.site == each}, reverse=True)
        present = [part for part in PARTS if any(cell.part == part for cell in result.cells)]
        rows = [
            [layer_name(layer), *(_plus_minus(result.cell(each, layer, part).effect, "+.3f") for part in present)]
            for layer in layers
        ]
        _print_table(f"{measure} regained, {each} restored (mean over people, 95%)", ["layer", *present], rows)
        best = result.largest(each)
        console.result(f"largest: layer {layer_name(best.layer)}, {best.part}")
    return None


def lens(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a GPT run.")],
    questions: QuestionsFile = None,
    text: Annotated[str | None, typer.Option("--text", help="Look at one text instead.")] = None,
    answer: Annotated[str | None, typer.Option("--answer", help="What follows the text: the right answer.")] = None,
    most: Most = None,
    figure: FigureOption = None,
    as_json: JsonOption = False,
) -> None:
    """The logit lens: what the model would say if it stopped after each layer.

    Of a run that answers questions: after which layer and at which part of the question the right answer is readable.
    """
    _check_figure(figure)
    from attnlab.api import interpret
    from attnlab.interpret.lens import QuestionLens

    if answer is not None and not answer.strip():
        raise UserError("--answer is empty: give what follows the text, or leave it out.")
    with console.working("reading ..."):
        seen = interpret.lens(run, text, answer=answer, questions=questions, most=most)
    _notes(seen.notes)
    if isinstance(seen, QuestionLens):
        people = seen
        _draw(figure, lambda figures: figures.draw_question_lens(people))
        return _print_json(people.as_dict()) if as_json else _print_question_lens(people)
    words = seen
    _draw(figure, lambda figures: figures.draw_text_lens(words))
    return _print_json(words.as_dict()) if as_json else _print_text_lens(words)


def _print_question_lens(people: QuestionLens) -> None:
    from attnlab.interpret.asked_people import PARTS
    from attnlab.interpret.tracing import layer_name

    layers = sorted({cell.layer for cell in people.cells}, reverse=True)
    present = [part for part in PARTS if any(cell.part == part for cell in people.cells)]
    console.result(
        f"{people.people} people of {people.source}; {people.answers} different answers, "
        f"the most common is right for {people.chance:.1%}"
    )
    for title, form in (
        ("probability of the right answer's first token (mean over people, 95%)", lambda c: _plus_minus(c.probability)),
        ("most probable among all answers (share of people, 95%)", lambda c: str(c.first_answer)),
    ):
        rows = [[layer_name(layer), *(form(people.cell(layer, part)) for part in present)] for layer in layers]
        _print_table(title, ["after layer", *present], rows)
    for part, layer in people.readable():
        console.result(f"readable for more than half of the people at {part!r} after layer {layer_name(layer)}")
    if not people.readable():
        console.result("nowhere readable for more than half of the people")


def _print_text_lens(words: TextLens) -> None:
    from attnlab.interpret.lens import shown_token
    from attnlab.interpret.tracing import layer_name

    layers = sorted({view.layer for view in words.views})
    rows = []
    for position, token in enumerate(words.tokens):
        views = [words.view(layer, position) for layer in layers]
        cells = [f"{shown_token(v.best)} {v.best_probability:.2f}" + (f" ({v.rank})" if v.rank else "") for v in views]
        truth = views[0].truth
        rows.append([shown_token(token), "" if truth is None else shown_token(truth), *cells])
    heads = ["token", "next", *(layer_name(layer) for layer in layers)]
    _print_table("most probable after each layer, its probability, (rank of the true next token)", heads, rows)


def _plus_minus(mean: Mean, form: str = ".3f") -> str:
    from attnlab.stats.intervals import plus_minus

    text = plus_minus(mean, form)
    return "+" + text[1:] if text.startswith("-0.") and float(text.split()[0]) == 0 else text  # no minus before zero


def _with_interval(value: float, interval: tuple[float, float] | None) -> str:
    return f"{value:.3f}" + (f" ({interval[0]:.3f} to {interval[1]:.3f})" if interval else "")


def _check_figure(path: Path | None) -> None:
    if path is not None:
        from attnlab.explore.figures.canvas import check_path

        check_path(path)


def _draw(path: Path | None, draw: Callable[[Any], Figure]) -> None:
    if path is not None:
        from attnlab.explore.figures.canvas import save
        from attnlab.interpret import change_figures

        console.say(f"wrote {save(lambda: draw(change_figures), path)}")


def _notes(notes: Sequence[str]) -> None:
    for note in notes:
        console.warn(note)


def _print_json(values: dict[str, Any]) -> None:
    console.json_result(values, indent=None)


def _print_table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), title_justify="left", title_style="bold")
    for head in heads:
        table.add_column(Text(head))
    for row in rows:
        table.add_row(*map(console.cell, row))
    console.result(table)


def register(app: typer.Typer) -> None:
    app.command(epilog=example("attnlab ablate runs/my-finetuning --curve"))(ablate)
    app.command(epilog=example("attnlab trace runs/my-finetuning --figure trace.png"))(trace)
    app.command(epilog=example('attnlab lens runs/my-gpt --text "To be or not to be"'))(lens)
