"""Questions about people as a model reads them, with the place of the name among the tokens.

    Where was   Ada    …   Lovelace   born ?   MASK
    before      first  mid last       after    MASK

Names have different lengths, so positions are compared by part of the question. A name of one token is its last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from attnlab.base.errors import UserError
from attnlab.data.question_template import QuestionTemplate
from attnlab.data.questions import Pair, Questions, read_questions
from attnlab.data.tokenizers.vocabulary import Vocabulary
from attnlab.models.asking import check_lengths, prompt_of
from attnlab.models.gpt import GPT
from attnlab.models.loading import load_gpt
from attnlab.models.run_questions import has_questions, run_questions

BEFORE, FIRST, MIDDLE, LAST, AFTER, MASK = range(6)
PARTS = ("before name", "first of name", "middle of name", "last of name", "after name", "MASK")


@dataclass(frozen=True)
class AskedPerson:
    """One question, and the first token of its right answer."""

    question: str
    name: str
    answer: str
    tokens: list[int]
    """The question and MASK, after which the answer begins."""
    start: int
    end: int
    """The tokens of the name: start ≤ t < end."""
    target: int

    def part(self, position: int) -> int:
        """The part of the question at a position, as an index of PARTS."""
        if position == len(self.tokens) - 1:
            return MASK
        if not self.start <= position < self.end:
            return BEFORE if position < self.start else AFTER
        if position == self.end - 1:
            return LAST
        return FIRST if position == self.start else MIDDLE

    def parts(self) -> list[int]:
        return [self.part(position) for position in range(len(self.tokens))]


@dataclass(frozen=True)
class AskedRun:
    """A model that answers questions, and people to ask about."""

    name: str
    model: GPT
    vocabulary: Vocabulary
    people: list[AskedPerson]
    source: str
    """Where the questions are from."""
    notes: list[str] = field(default_factory=list)


def open_asked(run: Path, file: Path | None = None, most: int | None = None) -> AskedRun:
    """The model of a run with the questions of a file, or its own: test if it has some, else dev."""
    trained = load_gpt(run)
    if not has_questions(run):
        raise UserError(f"{run} was not trained on questions: give a run of 'attnlab finetune' or 'attnlab knowledge'.")
    notes: list[str] = []
    own = run_questions(run, notes)
    questions, source = _chosen(run, file, own)
    check_lengths(questions, trained.vocabulary, trained.model.shape.context, source)
    everything = [pair.question for pairs in own.values() for pair in pairs]
    template = QuestionTemplate.of(everything or questions.questions)
    people = find_people(trained.vocabulary, questions, template, source, notes)
    return AskedRun(str(run), trained.model.eval(), trained.vocabulary, people[:most], source, notes)


def _chosen(run: Path, file: Path | None, own: dict[str, list[Pair]]) -> tuple[Questions, str]:
    if file is not None:
        questions = read_questions(file)
        if questions.answers is None:
            raise UserError(f"{file} has no answers: write each question, a tab and the answer.")
        return questions, str(file)
    for split in ("test", "dev"):
        if own.get(split):
            texts, answers = (list(part) for part in zip(*own[split], strict=True))
            return Questions(texts, answers, list(range(1, len(texts) + 1))), f"the run's {split} questions"
    raise UserError(f"{run} has no test or dev questions of its own: give a file of questions and answers.")


def find_people(
    vocabulary: Vocabulary, questions: Questions, template: QuestionTemplate, source: str, notes: list[str]
) -> list[AskedPerson]:
    """The person each question is about; one whose answer the vocabulary does not have is left out, with a note."""
    people, left_out = [], 0
    assert questions.answers is not None
    for question, answer, line in zip(questions.questions, questions.answers, questions.lines, strict=True):
        name = template.name_in(question)
        if name is None:
            form = template.question_about("…")
            raise UserError(f"{source}, line {line} names no one: {question!r} does not have the form {form!r}.")
        before = question[: question.index(name, len(template.before))]
        start, end = (len(vocabulary.encode(text)) for text in (before, before + name))
        target = vocabulary.encode(answer)[0]
        if target == vocabulary.unknown or end == start:
            left_out += 1
            continue
        people.append(AskedPerson(question, name, answer, prompt_of(vocabulary, question), start, end, target))
    if left_out:
        notes.append(f"{left_out} questions were left out: the first token of their answer is not in the vocabulary.")
    if not people:
        raise UserError(f"{source}: there is no question whose answer is in the model's vocabulary.")
    return people


@dataclass(frozen=True)
class PeopleBatch:
    """People whose questions have the same length, so that nothing is padded."""

    people: list[AskedPerson]
    rows: list[int]
    """Their places in the whole list."""

    @property
    def tokens(self) -> Tensor:
        """(B, T)"""
        return torch.tensor([person.tokens for person in self.people])

    @property
    def targets(self) -> Tensor:
        """(B,)"""
        return torch.tensor([person.target for person in self.people])

    @property
    def in_name(self) -> Tensor:
        """(B, T), True for the tokens of the name."""
        at = torch.arange(len(self.people[0].tokens))
        starts, ends = (torch.tensor([[getattr(p, side)] for p in self.people]) for side in ("start", "end"))
        return (at >= starts) & (at < ends)


def by_length(people: Sequence[AskedPerson], tokens_at_once: int) -> Iterator[PeopleBatch]:
    """All people in batches of equal length, each of about `tokens_at_once` tokens."""
    rows: dict[int, list[int]] = {}
    for row, person in enumerate(people):
        rows.setdefault(len(person.tokens), []).append(row)
    for length, group in sorted(rows.items()):
        size = max(1, tokens_at_once // length)
        for start in range(0, len(group), size):
            part = group[start : start + size]
            yield PeopleBatch([people[row] for row in part], part)


def mean_by_part(people: Sequence[AskedPerson], values: Sequence[Tensor]) -> Tensor:
    """(N, K, parts) of values (K, T) per person: the mean over the positions of each part; NaN where there is none."""
    means = []
    for person, rows in zip(people, values, strict=True):
        in_part = F.one_hot(torch.tensor(person.parts()), len(PARTS)).to(rows.dtype)  # (T, parts)
        means.append(rows @ in_part / in_part.sum(0))
    return torch.stack(means)


def without_nan(values: Tensor) -> tuple[float, ...]:
    return tuple(values[~values.isnan()].tolist())
