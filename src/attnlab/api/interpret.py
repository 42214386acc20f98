"""Inside a model from Python: `lab.inspect`, `lab.heads`, `lab.ablate`, `lab.trace`, `lab.lens`.

Each takes the folder of a run (`inspect` and `heads` also the name of a pretrained model) and returns numbers that show
themselves in a notebook. The methods of `Run` of the same names are the same functions.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attnlab.interpret.ablation import Ablation, Curve
    from attnlab.interpret.heads import HeadReport
    from attnlab.interpret.lens import QuestionLens, TextLens
    from attnlab.interpret.maps import AttentionMaps
    from attnlab.interpret.tracing import Trace

    Source = str | Path


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

    return attention_maps(open_subject(source), text, second, layer=layer, influence=influence)


def heads(
    source: Source, text: str | None = None, *, draws: int | None = None, length: int | None = None, seed: int = 0
) -> HeadReport:
    """Scores of every head for six kinds, on random tokens written twice and, if one is given, on a text."""
    from attnlab.interpret.heads import DRAWS, score_heads
    from attnlab.interpret.subject import open_subject

    return score_heads(open_subject(source), text, DRAWS if draws is None else draws, length, seed)


def ablate(
    run: Source,
    data: Source | None = None,
    *,
    text: str | None = None,
    how: str = "mean",
    seed: int = 0,
    most: int | None = None,
) -> Ablation:
    """What removing each head changes, the most harmful first: `data` is a text, questions or labelled texts."""
    from attnlab.interpret.ablation import ablate as remove
    from attnlab.interpret.measured import open_measured

    return remove(open_measured(Path(run), None if data is None else Path(data), text, most), how=how, seed=seed)


def removal_curve(run: Source, data: Source | None = None, *, how: str = "mean", most: int | None = None) -> Curve:
    """The measure against the number of heads removed, in an order chosen on the other half of the examples."""
    from attnlab.interpret.ablation import ablate as remove
    from attnlab.interpret.ablation import removal_curve as curve
    from attnlab.interpret.measured import open_measured

    measured = open_measured(Path(run), None if data is None else Path(data), None, most)
    return curve(measured, remove(measured, how=how))


def trace(run: Source, questions: Source | None = None, *, most: int | None = None, **options: Any) -> Trace:
    """Causal tracing of the questions of a run; `options` are those of `attnlab.interpret.tracing.TraceOptions`."""
    from attnlab.interpret.asked_people import open_asked
    from attnlab.interpret.tracing import TraceOptions
    from attnlab.interpret.tracing import trace as follow

    asked = open_asked(Path(run), None if questions is None else Path(questions), most)
    return follow(asked, TraceOptions(**options))


def lens(
    run: Source, text: str | None = None, *, answer: str | None = None, questions: Source | None = None
) -> TextLens | QuestionLens:
    """The logit lens on a text, or without one on the questions of a run."""
    from attnlab.interpret.asked_people import open_asked
    from attnlab.interpret.lens import lens_questions, lens_text
    from attnlab.models.loading import load_gpt
    from attnlab.models.run_questions import has_questions

    if text is None:
        return lens_questions(open_asked(Path(run), None if questions is None else Path(questions)))
    trained = load_gpt(Path(run))
    return lens_text(trained.model, trained.vocabulary, text, answer, str(run), has_questions(Path(run)))
