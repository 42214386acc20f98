"""What `attnlab evaluate` does: a run and questions in; predictions, and for labelled questions a report, out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from attnlab.base.errors import UserError
from attnlab.base.files import write_json, write_text
from attnlab.data.questions import Questions, read_questions
from attnlab.evaluation import files
from attnlab.evaluation.abstaining import Abstaining, NameThreshold, choose_name_threshold, required_threshold
from attnlab.evaluation.answers import AnsweredQuestion, AskedModel, ask_questions
from attnlab.evaluation.name_probability import MEANING as NAME_MEANING
from attnlab.evaluation.page import write_evaluation_page
from attnlab.evaluation.results import evaluation_results
from attnlab.evaluation.sources import Sources, find_sources
from attnlab.evaluation.unseen_names import ask_unseen_names
from attnlab.models.asking import MEANING, check_lengths
from attnlab.models.loading import load_gpt
from attnlab.runs.folder import command


@dataclass(frozen=True)
class EvaluationOptions:
    questions: Path | None = None
    corpus: Path | None = None
    outputs: Path | None = None
    abstain_below: float | None = None
    """A confidence."""
    abstain: bool = False
    """Withhold answers about people whose names were never read."""
    target_accuracy: float = 0.8
    unseen_names: int = 200
    out: Path | None = None
    seed: int = 0


@dataclass(frozen=True)
class Evaluation:
    """What was written where, and the results if the questions have answers."""

    count: int
    predictions: Path
    folder: Path | None
    results: dict[str, Any] | None
    notes: list[str]


def evaluate_run(run: Path, options: EvaluationOptions) -> Evaluation:
    """Everything is read and checked before the first question is asked; files are written at the end."""
    trained = load_gpt(run)
    model, vocabulary = trained.model, trained.vocabulary
    files.check_places(run, options.outputs, options.out)
    sources = find_sources(run, options.corpus)
    questions, origin, label = _choose_questions(run, options.questions, sources)
    sources = replace(sources, asked=questions.questions)
    check_lengths(questions, vocabulary, model.shape.context, origin)

    asked = AskedModel(model, vocabulary)
    labelled = questions.answers is not None
    unseen = ask_unseen_names(asked, options.unseen_names, sources, options.seed) if labelled else []
    unseen_names = [each.name for each in unseen]
    abstaining = Abstaining(options.abstain_below, _name_threshold(asked, options, sources, unseen_names))
    answered = ask_questions(asked, questions.questions, questions.answers, sources)
    notes = [*sources.notes, *_notes(questions, sources)]
    results = None
    if labelled:
        dev = _answer_dev(asked, questions, sources)
        numbers = evaluation_results(answered, unseen, dev, sources, asked, abstaining, options.target_accuracy)
        results = {
            "run": str(run),
            "source": origin,
            "command": command(),
            "confidence_meaning": MEANING,
            "name_meaning": NAME_MEANING,
            "notes": notes,
            **numbers,
        }
    shown = Abstaining(abstaining.below, abstaining.names if options.abstain else None)
    return _write(run, options, label, shown, answered, results, notes)


def _name_threshold(
    asked: AskedModel, options: EvaluationOptions, sources: Sources, unseen: list[str]
) -> NameThreshold | None:
    """The threshold on names; required for --abstain, otherwise shown where the model has learned names."""
    if not options.abstain and not sources.names_learned:
        return None
    threshold = choose_name_threshold(asked.name_probabilities, sources, options.seed, without=unseen)
    return required_threshold(sources, threshold) if options.abstain else threshold


def _write(
    run: Path,
    options: EvaluationOptions,
    label: str,
    shown: Abstaining,
    answered: Sequence[AnsweredQuestion],
    results: dict[str, Any] | None,
    notes: list[str],
) -> Evaluation:
    text = files.predictions_text(answered, shown)
    folder = options.out
    if folder is None and (results is not None or options.outputs is None):
        folder = files.new_folder(run, label)

    def fill(partial: Path) -> None:
        write_text(partial / "predictions.txt", text)
        write_text(partial / "answers.tsv", files.answers_table(answered))
        if results is not None:
            write_json(partial / "results.json", results)
            write_evaluation_page(partial, results)

    if folder is not None:
        files.write_folder(folder, fill)
    if options.outputs is not None:
        files.write_file(options.outputs, text)
    path = options.outputs or (folder or run) / "predictions.txt"
    return Evaluation(len(answered), path, folder, results, notes)


def _choose_questions(run: Path, path: Path | None, sources: Sources) -> tuple[Questions, str, str]:
    """The questions of the file or the run's own (test if it has some, else dev), their origin, and a short label."""
    if path is not None:
        return read_questions(path), str(path), path.stem
    for split in ("test", "dev"):
        pairs = sources.questions.get(split)
        if pairs:
            texts, answers = (list(part) for part in zip(*pairs, strict=True))
            numbers = list(range(1, len(pairs) + 1))
            return Questions(texts, answers, numbers), f"the run's {split} questions", split
    raise UserError(f"{run} has no test or dev questions of its own: give a file with --questions.")


def _notes(questions: Questions, sources: Sources) -> list[str]:
    """What a reader must know about these questions."""
    notes, count = [], len(questions.questions)
    if questions.lines[-1] != len(questions.lines):
        notes.append("blank lines were skipped: predictions have one line per question, not per line of the file.")
    trained = {question for question, _ in sources.trained_on}
    repeated = sum(question in trained for question in questions.questions)
    if repeated:
        notes.append(f"{repeated} of the {count} questions were trained on.")
    if questions.answers is not None and _includes_dev(questions, sources):
        notes.append(
            "dev questions are among the evaluated ones: the weights were chosen on them, so no threshold is chosen."
        )
    nameless = sum(sources.template.name_in(question) is None for question in questions.questions)
    if nameless:
        notes.append(
            f"{nameless} of the {count} questions do not have the form of the training questions "
            f"({sources.template.question_about('…')}): they are answered but not traced."
        )
    return notes


def _includes_dev(questions: Questions, sources: Sources) -> bool:
    dev = {question for question, _ in sources.questions.get("dev", [])}
    return any(question in dev for question in questions.questions)


def _answer_dev(asked: AskedModel, questions: Questions, sources: Sources) -> list[AnsweredQuestion]:
    """The answered dev questions, to choose a threshold on; empty when dev questions are evaluated."""
    pairs = sources.questions.get("dev", [])
    if not pairs or _includes_dev(questions, sources):
        return []
    return ask_questions(asked, [question for question, _ in pairs], [place for _, place in pairs], sources)
