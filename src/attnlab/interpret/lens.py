"""The logit lens: what a GPT would say if it stopped after a block. nostalgebraist 2020.

    logits_l = head(norm(x_l)),  x_l the residual stream after block l

After the last block these are the model's own logits. Before the first block (the embeddings) only the token itself is
known. A token that is probable after block l is readable there; one that is not may still be there in another form.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attnlab.data.tokenizers.vocabulary import MASK_CHAR, PAD_CHAR, UNKNOWN_CHAR, Vocabulary
from attnlab.interpret.asked_people import PARTS, AskedRun, by_length, mean_by_part, without_nan
from attnlab.interpret.recorder import record
from attnlab.interpret.subject import gpt_subject
from attnlab.interpret.tracing import EMBEDDINGS, layer_name, plain_mean
from attnlab.models.gpt import GPT
from attnlab.stats.intervals import Mean, Proportion

TOKENS_AT_ONCE = 4096


@torch.no_grad()
def lens(model: GPT, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Logits (L + 1, B, T, V): of the embeddings, then after each block; and the model's own output (B, T, V)."""
    outputs = [f"blocks.{layer}.output" for layer in range(len(model.blocks))]
    recording = record(model, tokens, names=["blocks.0.input", *outputs])
    streams = [recording[name] for name in ("blocks.0.input", *outputs)]
    assert isinstance(recording.output, Tensor)
    return torch.stack([model.head(model.norm(stream)) for stream in streams]), recording.output


@dataclass(frozen=True)
class TokenView:
    """One position after one layer: the most probable token, and the true next one with its probability and rank."""

    layer: int
    position: int
    best: str
    best_probability: float
    truth: str | None
    """The next token of the text; None at its end."""
    probability: float | None
    rank: int | None
    """1: the most probable."""


SHOWN = {MASK_CHAR: "MASK", UNKNOWN_CHAR: "UNKNOWN", PAD_CHAR: "PAD", " ": "␣", "\n": "↵", "\t": "⇥"}


def shown_token(token: str) -> str:
    """A token for a table or figure: nothing invisible, no control characters."""
    return SHOWN.get(token, token if token.isprintable() else repr(token)[1:-1])


@dataclass(frozen=True)
class TextLens:
    run: str
    tokens: list[str]
    views: list[TokenView]
    notes: list[str]

    def view(self, layer: int, position: int) -> TokenView:
        return next(view for view in self.views if (view.layer, view.position) == (layer, position))

    def as_dict(self) -> dict[str, Any]:
        views = [vars(view) | {"layer": layer_name(view.layer)} for view in self.views]
        return {"run": self.run, "tokens": self.tokens, "views": views, "notes": self.notes}

    def __repr__(self) -> str:
        return f"TextLens({self.run!r}, {len(self.tokens)} tokens)"

    def _repr_html_(self) -> str:
        from attnlab.interpret.notebook import text_lens_html

        return text_lens_html(self)


def lens_text(
    model: GPT, vocabulary: Vocabulary, text: str, answer: str | None = None, name: str = "GPT", questions: bool = False
) -> TextLens:
    """The true next token of a text at every layer and position; `answer` is what follows its end.

    `questions`: the model was fine-tuned on questions, so that MASK follows a question, as there.
    """
    reading = gpt_subject(model, vocabulary, name, questions).read(text)
    ids = reading.inputs["tokens"][0]
    logits, _ = lens(model, ids[None])
    after = vocabulary.encode(answer)[:1] if answer is not None else []
    following: list[int | None] = [*ids[1:].tolist(), after[0] if after else None]
    views = []
    for layer, rows in enumerate(logits[:, 0].softmax(-1), start=EMBEDDINGS):  # (T, V)
        for position, (row, truth) in enumerate(zip(rows, following, strict=True)):
            best = int(row.argmax())
            shown = vocabulary.tokens[best], float(row[best])
            if truth is None:
                views.append(TokenView(layer, position, *shown, None, None, None))
            else:
                rank = int((row > row[truth]).sum()) + 1
                views.append(TokenView(layer, position, *shown, vocabulary.tokens[truth], float(row[truth]), rank))
    return TextLens(name, reading.tokens, views, reading.notes)


@dataclass(frozen=True)
class LensCell:
    """The right answer's first token after one layer at one part of the question, over the people who have it.

    Where a part has several tokens, a person counts with the mean over them.
    """

    layer: int
    part: str
    probability: Mean
    first: Proportion
    """People for whom it is the most probable of all tokens."""
    first_answer: Proportion
    """People for whom it is the most probable among the first tokens of all answers asked for."""


@dataclass(frozen=True)
class QuestionLens:
    run: str
    source: str
    people: int
    answers: int
    """Different first tokens among the right answers."""
    chance: float
    """The share of people with the most common of them."""
    cells: list[LensCell]
    notes: list[str]

    def cell(self, layer: int, part: str) -> LensCell:
        return next(c for c in self.cells if (c.layer, c.part) == (layer, part))

    def readable(self, share: float = 0.5) -> list[tuple[str, int]]:
        """The parts at which surely more than `share` of the answers are first among all answers, each with the first
        such layer."""
        found: dict[str, int] = {}
        for cell in self.cells:
            if cell.first_answer.interval[0] > share:
                found[cell.part] = min(cell.layer, found.get(cell.part, cell.layer))
        return sorted(found.items(), key=lambda item: (item[1], PARTS.index(item[0])))

    def as_dict(self) -> dict[str, Any]:
        return {
            "run": self.run,
            "source": self.source,
            "people": self.people,
            "answers": self.answers,
            "chance": self.chance,
            "cells": [
                {"layer": layer_name(cell.layer), "part": cell.part, "probability": plain_mean(cell.probability)}
                | {name: _plain_share(getattr(cell, name)) for name in ("first", "first_answer")}
                for cell in self.cells
            ],
            "readable": [{"part": part, "layer": layer_name(layer)} for part, layer in self.readable()],
            "notes": self.notes,
        }

    def __repr__(self) -> str:
        return f"QuestionLens({self.run!r}, {self.people} people)"

    def _repr_html_(self) -> str:
        from attnlab.interpret.notebook import question_lens_html

        return question_lens_html(self)


def _plain_share(share: Proportion) -> dict[str, Any]:
    return {"share": share.share, "interval": share.interval, "people": share.count}


def lens_questions(asked: AskedRun) -> QuestionLens:
    """At which layer and part of the question the right answer becomes readable, over people."""
    people = asked.people
    candidates = torch.tensor(sorted({person.target for person in people}))
    layers = len(asked.model.blocks) + 1
    values = [torch.zeros(0)] * len(people)  # of each person (3·L, T): probability, is first, is first of the answers
    for batch in by_length(people, TOKENS_AT_ONCE):
        logits, _ = lens(asked.model, batch.tokens)  # (L, B, T, V)
        chosen = logits.gather(-1, batch.targets[None, :, None, None].expand(*logits.shape[:3], 1))[..., 0]  # (L, B, T)
        probability = (chosen - logits.logsumexp(-1)).exp()
        measures = (probability, _is_first(chosen, logits), _is_first(chosen, logits[..., candidates]))
        for row, of_person in zip(batch.rows, torch.cat(measures).transpose(0, 1), strict=True):
            values[row] = of_person
    means = mean_by_part(people, values).unflatten(1, (3, layers))  # (N, 3, L, parts)
    cells = []
    for layer in range(layers):
        for part, name in enumerate(PARTS):
            of_cell, *firsts = (without_nan(means[:, measure, layer, part]) for measure in range(3))
            if of_cell:
                shares = (Proportion(round(sum(each)), len(each)) for each in firsts)
                cells.append(LensCell(layer + EMBEDDINGS, name, Mean(of_cell), *shares))
    chance = float(torch.bincount(torch.tensor([person.target for person in people])).max()) / len(people)
    return QuestionLens(asked.name, asked.source, len(people), len(candidates), chance, cells, list(asked.notes))


def _is_first(chosen: Tensor, logits: Tensor) -> Tensor:
    """1 where the chosen logit (L, B, T) is the largest of (L, B, T, V) alone: a tie says nothing."""
    return ((logits >= chosen[..., None]).sum(-1) == 1).float()
