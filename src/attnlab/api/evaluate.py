"""`lab.evaluate`: a run measured on a file, for scripts and for the command."""

from __future__ import annotations

import os
from collections.abc import Mapping
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnlab.api.arguments import checked
from attnlab.api.handed import as_file
from attnlab.base import console, html
from attnlab.base.errors import UserError
from attnlab.runs.folder import called_from_python

if TYPE_CHECKING:
    from attnlab.api.handed import Examples

    Source = str | os.PathLike[str]

QUESTIONS = ("questions", "corpus", "abstain", "abstain_below", "target_accuracy", "unseen_names", "seed")
TEXT = ("context", "stride", "per_token")
LABELLED = ("device",)
SHARED = ("abstain_below",)
"""For questions and for labelled texts."""


class Evaluation(dict[str, Any]):
    """The results by name, as in results.json. In a notebook it shows itself."""

    def __init__(
        self, kind: str, results: Mapping[str, Any], folder: Path | None, predictions: Path | None, count: int
    ) -> None:
        super().__init__(results)
        self.kind = kind
        """What the run was measured on: questions, a text, labelled texts."""
        self.folder = folder
        """Where the results are; None if there are only answers, written elsewhere."""
        self.predictions = predictions
        """The file with one line per question, text or token; None if none was asked for."""
        self.count = count
        """The number of its lines."""

    def __repr__(self) -> str:
        """Without the lists of numbers behind the results."""
        from attnlab.api.evaluation_html import short_facts

        return f"Evaluation({', '.join([repr(self.kind), *(f'{name}={v}' for name, v in short_facts(self).items())])})"

    def _repr_html_(self) -> str:
        from attnlab.api.evaluation_html import evaluation_html

        files = [path for path in (self.folder, self.predictions) if path is not None]
        return (evaluation_html(self.kind, self) if self else "") + "".join(html.paragraph(str(path)) for path in files)


@checked
def evaluate(
    run: Source,
    file: Examples | None = None,
    *,
    questions: Examples | None = None,
    corpus: Examples | None = None,
    abstain: bool = False,
    abstain_below: float | None = None,
    target_accuracy: float = 0.8,
    unseen_names: int = 200,
    seed: int = 0,
    context: int | None = None,
    stride: int | None = None,
    per_token: bool = False,
    device: str = "auto",
    outputs: Source | None = None,
    out: Source | None = None,
) -> Evaluation:
    """Measure a run on a file, by its kind: answers to questions, the loss of a text, or the classes of labelled texts.

    In place of a file, texts, (question, answer) pairs or (text, label) pairs are taken as well: a list, an array or a
    data frame. Without a file, a run that answers questions is measured on its own. The settings are those of `attnlab
    evaluate --help`; one that is about another kind of file is refused.
    """
    given = dict(locals())
    from attnlab.evaluation import by_kind

    kind = by_kind.file_kind(Path(run), file is not None, questions is not None)
    _must_suit(Path(run), kind, given)
    for name in ("file", "questions", "corpus"):
        given[name] = as_file(Path(run), name, given[name])
    with called_from_python(_call(given)):
        return _evaluate(Path(run), kind, **{name: value for name, value in given.items() if name != "run"})


def _evaluate(run: Path, kind: str, file: Path | None, questions: Path | None, **settings: Any) -> Evaluation:
    from attnlab.evaluation import by_kind
    from attnlab.evaluation.evaluate import EvaluationOptions, evaluate_run

    outputs, out = _path(settings["outputs"]), _path(settings["out"])
    if kind == by_kind.QUESTIONS:
        if file is not None and questions is not None:
            raise UserError("file and questions both name questions: give one of them.")
        of_questions = {name: settings[name] for name in QUESTIONS if name not in ("questions", "corpus")}
        options = EvaluationOptions(questions or file, settings["corpus"], outputs, out=out, **of_questions)
        asked = evaluate_run(run, options)
        _warn(asked.notes)
        return Evaluation(kind, asked.results or {}, asked.folder, asked.predictions, asked.count)
    if file is None:
        raise UserError(f"the file is missing: give {kind} to evaluate {run} on.")
    with console.working("evaluating ..."):
        if kind == by_kind.TEXT:
            of_text = {name: settings[name] for name in TEXT}
            measured = by_kind.evaluate_text_file(run, file, outputs=outputs, out=out, **of_text)
        else:
            below = settings["abstain_below"]
            measured = by_kind.evaluate_labelled_file(run, file, settings["device"], outputs, out, below)
    _warn(measured.notes)
    return Evaluation(kind, measured.results, measured.folder, measured.predictions, measured.count)


def _must_suit(run: Path, kind: str, settings: Mapping[str, Any]) -> None:
    """Refuse a setting that is about another kind of file, which would be ignored, and shares that are none."""
    from attnlab.evaluation import by_kind

    for other, names in ((by_kind.QUESTIONS, QUESTIONS), (by_kind.TEXT, TEXT), (by_kind.LABELLED, LABELLED)):
        for name in names:
            if kind == by_kind.LABELLED and name in SHARED:
                continue
            if kind != other and settings[name] != DEFAULTS[name]:
                raise UserError(f"{name} is for {other}: {run} is evaluated on {kind}.")
    for name in ("abstain_below", "target_accuracy"):
        share = settings[name]
        if share is not None and not 0.0 <= share <= 1.0:
            raise UserError(f"{name} must be between 0 and 1, got {share:g}.")


def _call(given: Mapping[str, Any]) -> str:
    """The call in short: what has its default is left out."""
    words = [repr(os.fspath(given[name])) for name in ("run", "file") if given[name] is not None]
    for name, default in DEFAULTS.items():
        if name != "file" and given[name] != default:
            value = given[name]
            words.append(f"{name}={os.fspath(value) if isinstance(value, os.PathLike) else value!r}")
    return f"lab.evaluate({', '.join(words)})"


def _warn(notes: list[str]) -> None:
    for note in notes:
        console.warn(note)


def _path(file: Source | None) -> Path | None:
    return None if file is None else Path(file)


DEFAULTS = {name: each.default for name, each in signature(evaluate).parameters.items() if name != "run"}
