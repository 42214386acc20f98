"""A model with examples to measure it on: what removing a part of it costs, example by example.

text        loss per token of each block                    the last tokens of a block have the most context
questions   probability of the right answer, and accuracy   "Where was X born?"
classes     probability of the right class, and accuracy    labelled texts
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlab.base.errors import UserError
from attnlab.base.files import read_text
from attnlab.data.text.stream import Blocks
from attnlab.data.tokenizers.vocabulary import Vocabulary
from attnlab.interpret.asked_people import AskedPerson, open_asked
from attnlab.models.generate import pad
from attnlab.models.gpt import GPT
from attnlab.models.loading import load_gpt
from attnlab.models.pretrained.tuned import TunedClassifier, is_export, load_encoder_classifier
from attnlab.models.run_questions import has_questions
from attnlab.runs import read_record

TOKENS_AT_ONCE = 8192


@dataclass(frozen=True)
class Batch:
    """Some examples of similar length."""

    inputs: dict[str, Tensor]
    real: Tensor  # (B, T), True where there is a token and no padding
    rows: list[int]
    """Their places among all examples."""
    truth: Tensor
    """What they are measured against: next tokens (B, T), or classes (B,)."""


Score = Callable[[Tensor, Batch], dict[str, Tensor]]
"""The model's output to numbers per example (B,), by measure."""


@dataclass(frozen=True)
class Measured:
    """`main` ranks, `shown` is drawn; `better` says whether more of `main` is good."""

    name: str
    source: str
    model: nn.Module
    batches: list[Batch]
    score: Score
    main: str
    shown: str
    better: str = "higher"
    notes: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        return sum(len(batch.rows) for batch in self.batches)

    @torch.no_grad()
    def scores(self, around: Callable[[int], AbstractContextManager[None]] | None = None) -> dict[str, Tensor]:
        """Every measure of every example, (N,); `around` opens a context for the pass over the batch of a number."""
        totals: dict[str, Tensor] = {}
        for number, batch in enumerate(self.batches):
            with around(number) if around is not None else nullcontext():
                output = self.model(**batch.inputs)
            for name, values in self.score(output, batch).items():
                totals.setdefault(name, torch.zeros(self.count))[batch.rows] = values.float()
        return totals


def open_measured(run: Path, file: Path | None = None, text: str | None = None, most: int | None = None) -> Measured:
    """The model of a run with examples: the run's kind decides what a file is (questions, a text, labelled texts)."""
    if text is not None and file is not None:
        raise UserError("a file and a text are both given: give one of them.")
    if is_export(run) or read_record(run)["kind"] == "classify":
        if file is None:
            raise UserError(f"{run} is a classifier: give a file of labelled texts.")
        return measure_classes(load_encoder_classifier(run, "cpu"), file, most)
    if text is None and has_questions(run):
        asked = open_asked(run, file, most)
        return measure_questions(asked.model, asked.vocabulary, asked.people, asked.name, asked.source, asked.notes)
    trained = load_gpt(run)
    if text is None and file is None:
        raise UserError(f"{run} is a language model: give a text file, or a text with --text.")
    written = text if file is None else read_text(file)
    assert written is not None
    return measure_text(trained.model, trained.vocabulary, written, str(run), str(file or "the given text"), most)


def measure_text(
    model: GPT, vocabulary: Vocabulary, text: str, name: str = "GPT", source: str = "a text", most: int | None = None
) -> Measured:
    """Blocks of the model's context; a shorter text is one block. Of more than `most`, an even sample is taken."""
    ids = torch.tensor(vocabulary.encode(text), dtype=torch.long)
    if len(ids) < 2:
        raise UserError(f"{source} is too short: give at least two tokens, one to read and one to predict.")
    blocks = Blocks.cut(ids, min(model.shape.context, len(ids) - 1))
    blocks = blocks.sample(most or len(blocks))
    notes = []
    if unknown := int((ids == vocabulary.unknown).sum()):
        notes.append(f"{unknown} of {len(ids)} tokens of {source} are not in the model's vocabulary.")
    if len(blocks) == 1:
        notes.append(f"{source} is one block of {blocks.tokens.shape[1]} tokens: there are no intervals.")
    batches = []
    for rows in _even(list(range(len(blocks))), TOKENS_AT_ONCE // blocks.tokens.shape[1]):
        tokens, targets = blocks.tokens[rows], blocks.targets[rows]
        batches.append(Batch({"tokens": tokens}, torch.ones_like(tokens, dtype=torch.bool), rows, targets))

    def score(logits: Tensor, batch: Batch) -> dict[str, Tensor]:
        return {"loss": F.cross_entropy(logits.transpose(1, 2), batch.truth, reduction="none").mean(1)}

    return Measured(name, source, model.eval(), batches, score, "loss", "loss", "lower", notes)


def measure_questions(
    model: GPT,
    vocabulary: Vocabulary,
    people: Sequence[AskedPerson],
    name: str = "GPT",
    source: str = "questions",
    notes: Sequence[str] = (),
) -> Measured:
    """The probability of the whole right answer and the stop after it, and whether greedy decoding gives it.

    It does exactly if each of its tokens is the most probable after those before, so one pass is enough.
    """
    prompts = [person.tokens for person in people]
    answers = [[*vocabulary.encode(person.answer), vocabulary.mask] for person in people]
    rows = [[*prompt, *answer[:-1]] for prompt, answer in zip(prompts, answers, strict=True)]
    batches = []
    for part in _by_length([len(row) for row in rows]):
        tokens, real = pad([rows[n] for n in part])
        truth = torch.full_like(tokens, -1)
        for line, n in zip(truth, part, strict=True):
            line[len(prompts[n]) - 1 : len(rows[n])] = torch.tensor(answers[n])
        batches.append(Batch({"tokens": tokens, "padding": real}, real, part, truth))

    def score(logits: Tensor, batch: Batch) -> dict[str, Tensor]:
        asked = batch.truth >= 0
        logs = logits.log_softmax(-1).gather(-1, batch.truth.clamp(min=0)[..., None])[..., 0]
        right = (logits.argmax(-1) == batch.truth) | ~asked
        return {"probability": logs.masked_fill(~asked, 0).sum(1).exp(), "accuracy": right.all(1)}

    return Measured(name, source, model.eval(), batches, score, "probability", "accuracy", notes=list(notes))


def measure_classes(classifier: TunedClassifier, file: Path, most: int | None = None) -> Measured:
    """The probability of the right class of labelled texts; of more than `most`, the first."""
    texts = classifier.read(file)
    if not texts.labelled:
        raise UserError(f"{file} has no labels: give labelled texts, with columns as in training.")
    examples = texts.examples[:most]
    encoded = classifier.encode(examples, f"{file}, ")
    notes = [f"{encoded.cut} of {len(examples)} texts are longer than {classifier.longest} tokens and were cut."]
    batches = []
    for part in _by_length(encoded.lengths):
        inputs = encoded.collate(part, 0)
        labels = inputs.pop("labels")
        batches.append(Batch(inputs, inputs["attention_mask"].bool(), part, labels))

    def score(logits: Tensor, batch: Batch) -> dict[str, Tensor]:
        right = logits.softmax(-1).gather(1, batch.truth[:, None])[:, 0]
        return {"probability": right, "accuracy": logits.argmax(-1) == batch.truth}

    model = classifier.model.eval()
    name = str(classifier.run)
    return Measured(
        name, str(file), model, batches, score, "probability", "accuracy", notes=notes if encoded.cut else []
    )


def _by_length(lengths: Sequence[int]) -> list[list[int]]:
    """Examples of similar length together, none alone, so that each can be given the values of another."""
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    return _even(order, TOKENS_AT_ONCE // max(lengths))


def _even(rows: list[int], most: int) -> list[list[int]]:
    """Parts of nearly equal size, at most `most` and at least two where there are two."""
    count = -(-len(rows) // max(3, most))
    return [rows[len(rows) * n // count : len(rows) * (n + 1) // count] for n in range(count)]
