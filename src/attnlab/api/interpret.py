"""Inside a model: `lab.inspect`, `lab.heads`, `lab.ablate`, `lab.trace`, `lab.lens`, for scripts and for the commands.

Each takes a run (`inspect` and `heads` also the name of a pretrained model) and returns numbers that show themselves in
a notebook. The methods of `Run` of the same names are the same functions.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from attnlab.api.arguments import checked
from attnlab.api.handed import as_file
from attnlab.base.errors import UserError

if TYPE_CHECKING:
    from attnlab.api.handed import Examples
    from attnlab.interpret.ablation import Ablation, Curve
    from attnlab.interpret.head_history import HeadHistory
    from attnlab.interpret.heads import HeadReport
    from attnlab.interpret.lens import QuestionLens, TextLens
    from attnlab.interpret.maps import AttentionMaps
    from attnlab.interpret.tracing import Trace

    Source = str | os.PathLike[str]


@checked
def inspect(
    source: Source,
    text: str,
    second: str | None = None,
    *,
    layer: int | str | None = None,
    influence: bool | None = None,
) -> AttentionMaps:
    """The attention weights of every layer and head of a run or a pretrained model on a text.

    `second` is the other text of a pair, or the answer a T5 has written. `influence` adds ‖∂y_t/∂x_s‖ for every
    attention; without it, only for those without weights, or where it is cheap.
    """
    from attnlab.interpret.maps import attention_maps
    from attnlab.interpret.subject import open_subject

    return attention_maps(open_subject(os.fspath(source)), text, second, layer=layer, influence=influence)


@checked
def heads(
    source: Source, text: str | None = None, *, draws: int | None = None, length: int | None = None, seed: int = 0
) -> HeadReport:
    """Scores of every head for six kinds, on random tokens written twice and, if one is given, on a text."""
    from attnlab.interpret.heads import DRAWS, score_heads
    from attnlab.interpret.subject import open_subject

    return score_heads(open_subject(os.fspath(source)), text, DRAWS if draws is None else draws, length, seed)


@checked
def head_history(
    run: Source, text: str | None = None, *, draws: int | None = None, length: int | None = None, seed: int = 0
) -> HeadHistory:
    """The same scores at every checkpoint that a run has kept, beside its loss."""
    from attnlab.interpret.head_history import score_checkpoints
    from attnlab.interpret.heads import DRAWS

    return score_checkpoints(Path(run), text, DRAWS if draws is None else draws, length, seed)


@checked
def ablate(
    run: Source,
    data: Examples | None = None,
    *,
    text: str | None = None,
    parts: Sequence[str] | None = None,
    what: str = "head",
    how: str = "mean",
    seed: int = 0,
    most: int | None = None,
) -> Ablation:
    """What removing each head changes, the most harmful first: `data` is a text, questions or labelled texts.

    `data` is a file, or a list, an array or a data frame of the texts or pairs themselves.
    `what` removes every head, attention or mlp, one by one; `parts` only some: "2.1" (a head), "2.attention", "2.mlp".
    `how` replaces by zero, mean or resample. At most `most` examples are used.
    """
    from attnlab.interpret.ablation import ablate as remove
    from attnlab.interpret.measured import open_measured
    from attnlab.interpret.removal import parts_of, read_part

    measured = open_measured(Path(run), as_file(Path(run), "data", data), text, most)
    chosen = [read_part(part) for part in _several(parts)] if parts else parts_of(measured.model, what)
    return remove(measured, chosen, how, seed)


@checked
def removal_curve(
    run: Source,
    data: Examples | None = None,
    *,
    text: str | None = None,
    how: str = "mean",
    seed: int = 0,
    most: int | None = None,
    ablation: Ablation | None = None,
) -> Curve:
    """The measure against the number of heads removed, in an order chosen on the other half of the examples.

    `ablation` is that of all heads on the same examples, where it is at hand; otherwise it is computed.
    """
    from attnlab.interpret.ablation import ablate as remove
    from attnlab.interpret.ablation import removal_curve as curve
    from attnlab.interpret.measured import open_measured

    measured = open_measured(Path(run), as_file(Path(run), "data", data), text, most)
    if ablation is None:
        ablation = remove(measured, how=how, seed=seed)
    elif (ablation.run, ablation.source, ablation.examples) != (measured.name, measured.source, measured.count):
        raise UserError(f"the ablation is of {ablation.run} on {ablation.source}: give that of the same examples.")
    return curve(measured, ablation, seed=seed)


@checked
def trace(
    run: Source,
    questions: Examples | None = None,
    *,
    corruption: str = "noise",
    noise: float = 3.0,
    draws: int = 4,
    sites: str | Sequence[str] | None = None,
    window: int = 1,
    measure: str = "probability",
    target: str = "right",
    only_right: bool = False,
    seed: int = 0,
    most: int | None = None,
) -> Trace:
    """Causal tracing of the questions of a run: make the name unreadable, restore one vector at a time.

    The settings are those of `attnlab trace --help`; `sites` are stream, attention and mlp, all of them by default.
    """
    from attnlab.interpret.asked_people import open_asked
    from attnlab.interpret.tracing import TraceOptions
    from attnlab.interpret.tracing import trace as follow

    options = TraceOptions(
        corruption, noise, draws, window=window, measure=measure, target=target, only_right=only_right, seed=seed
    )
    if sites:
        options = replace(options, sites=tuple(_several(sites)))
    return follow(open_asked(Path(run), as_file(Path(run), "questions", questions), most), options)


@checked
def lens(
    run: Source,
    text: str | None = None,
    *,
    answer: str | None = None,
    questions: Examples | None = None,
    most: int | None = None,
) -> TextLens | QuestionLens:
    """The logit lens on a text, or without one on the questions of a run; `answer` is what follows the text."""
    if text is not None and questions is not None:
        raise UserError("questions and a text are both given: give one of them.")
    if answer is not None and text is None:
        raise UserError("an answer needs a text: it is what follows the text.")
    from attnlab.interpret.asked_people import open_asked
    from attnlab.interpret.lens import lens_questions, lens_text
    from attnlab.models.loading import load_gpt
    from attnlab.models.run_questions import has_questions
    from attnlab.runs import is_run

    if text is None:
        if is_run(Path(run)) and not has_questions(Path(run)):
            raise UserError(f"{run} was not trained on questions: give a text with --text.")
        return lens_questions(open_asked(Path(run), as_file(Path(run), "questions", questions), most))
    trained = load_gpt(Path(run))
    return lens_text(trained.model, trained.vocabulary, text, answer, os.fspath(run), has_questions(Path(run)))


def _several(names: str | Sequence[str]) -> Sequence[str]:
    return [names] if isinstance(names, str) else names
