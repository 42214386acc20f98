"""What `attnlab evaluate` does: a run and questions in; predictions, and for labelled questions a report, out."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from attnlab.base.errors import UserError
from attnlab.base.files import write_text
from attnlab.data.questions import Questions, read_questions
from attnlab.data.world.files import check_folder
from attnlab.evaluation import files as report
from attnlab.evaluation.page import write_evaluation_page
from attnlab.evaluation.results import Answered, Ask, meet_strangers, put, results
from attnlab.evaluation.sources import Background, background
from attnlab.models.asking import MEANING, Said, answer, check_lengths
from attnlab.models.loading import load_gpt
from attnlab.runs import fresh_path


@dataclass(frozen=True)
class Options:
    questions: Path | None = None
    corpus: Path | None = None
    outputs: Path | None = None
    abstain_below: float | None = None
    target_accuracy: float = 0.8
    strangers: int = 200
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


def evaluate_run(run: Path, options: Options) -> Evaluation:
    """Everything is read and checked before the first question is asked; files appear when all is done."""
    trained = load_gpt(run)
    model, vocabulary = trained.model, trained.vocabulary
    if options.outputs is not None:
        report.writable(options.outputs)
    if options.out is not None:
        check_folder(options.out)
    known = background(run, options.corpus)
    asked, source, label = _choose(run, options.questions, known)
    known = replace(known, asked=asked.questions)
    check_lengths(asked, vocabulary, model.shape.context, source)

    def ask(texts: Sequence[str]) -> list[Said]:
        return answer(model, vocabulary, texts)

    def readable(text: str) -> bool:
        return vocabulary.unknown_share(text) == 0

    answered = put(ask, asked.questions, asked.answers, known)
    notes = [*known.notes, *_remarks(asked, known)]
    found = None
    if asked.answers is not None:
        strangers = meet_strangers(ask, readable, options.strangers, known, options.seed)
        dev = _dev(ask, asked, known)
        found = {
            "run": str(run),
            "source": source,
            "command": shlex.join(["attnlab", *sys.argv[1:]]),
            "confidence_meaning": MEANING,
            "notes": notes,
            **results(answered, strangers, dev, known, readable, options.abstain_below, options.target_accuracy),
        }
    return _write(run, options, label, answered, found, notes)


def _write(
    run: Path,
    options: Options,
    label: str,
    answered: Sequence[Answered],
    found: dict[str, Any] | None,
    notes: list[str],
) -> Evaluation:
    text = report.predictions(answered, options.abstain_below)
    folder = options.out
    if folder is None and (found is not None or options.outputs is None):
        folder = fresh_path(run / "evaluations", label)

    def fill(partial: Path) -> None:
        write_text(partial / "predictions.txt", text)
        write_text(partial / "answers.tsv", report.table(answered))
        if found is not None:
            report.write_results(partial, found)
            write_evaluation_page(partial, found)

    if folder is not None:
        report.write_folder(folder, fill)
    if options.outputs is not None:
        report.write_file(options.outputs, text)
    place = options.outputs or (folder or run) / "predictions.txt"
    return Evaluation(len(answered), place, folder, found, notes)


def _choose(run: Path, path: Path | None, known: Background) -> tuple[Questions, str, str]:
    """The questions of the file, or the run's own (test if there is one, else dev); in words, and as a label."""
    if path is not None:
        return read_questions(path), str(path), path.stem
    for split in ("test", "dev"):
        pairs = known.questions.get(split)
        if pairs:
            texts, answers = (list(part) for part in zip(*pairs, strict=True))
            numbers = list(range(1, len(pairs) + 1))
            return Questions(texts, answers, numbers), f"the run's {split} questions", split
    raise UserError(f"{run} has no test or dev questions of its own: give some with --questions.")


def _remarks(asked: Questions, known: Background) -> list[str]:
    """What a reader must know about these questions."""
    notes = []
    if asked.lines[-1] != len(asked.lines):
        notes.append("blank lines are no questions: predictions have a line for each question, not for each line.")
    trained = {question for question, _ in known.trained_on}
    repeated = sum(question in trained for question in asked.questions)
    if repeated:
        notes.append(f"{repeated} of the {len(asked.questions)} questions were trained on.")
    if asked.answers is not None and _is_dev(asked, known):
        notes.append("dev questions are among the reported ones: weights were chosen on them, and no threshold is.")
    nameless = sum(known.template.name(question) is None for question in asked.questions)
    if nameless:
        notes.append(
            f"{nameless} of the {len(asked.questions)} questions are not of the form of the training questions "
            f"({known.template.ask('…')}): they are answered and not traced."
        )
    return notes


def _is_dev(asked: Questions, known: Background) -> bool:
    dev = {question for question, _ in known.questions.get("dev", [])}
    return any(question in dev for question in asked.questions)


def _dev(ask: Ask, asked: Questions, known: Background) -> list[Answered]:
    """The dev questions, answered, to choose a threshold on; none when they are what is reported."""
    pairs = known.questions.get("dev", [])
    if not pairs or _is_dev(asked, known):
        return []
    return put(ask, [question for question, _ in pairs], [place for _, place in pairs], known)
