"""Text drawn from a language model: several samples together, or one while it is decoded.

A sample may be longer than the model's context: `decode` moves a window over it. Every sample has a random generator
of its own, made of the seed and its number, so the first sample is the same whether one is drawn or ten. (In a batch of
another size logits can differ in their last bits, which rarely changes a token.)
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np
import torch
from torch import Tensor

from attnlab.base.errors import UserError
from attnlab.data.tokenizers.vocabulary import MASK_CHAR, Vocabulary
from attnlab.models.generate import Draw, Step, check_drawing, choose, decode
from attnlab.models.gpt import GPT
from attnlab.models.loading import TrainedGPT
from attnlab.runs import read_config

LENGTH = 200  # tokens of a sample unless told otherwise
AT_ONCE = 64  # samples that are decoded together


@dataclass(frozen=True)
class Sample:
    prompt: str
    """As the model reads it: unknown tokens are shown as such."""
    text: str
    """What follows; prompt + text is the whole."""
    tokens: list[str]
    log_probabilities: list[float]
    """The model's own for each token, at temperature 1; with a stop token, also for it."""

    @property
    def log_probability(self) -> float:
        """Of the whole text after the prompt: the sum over its tokens."""
        return math.fsum(self.log_probabilities)


def sample(
    model: GPT,
    vocabulary: Vocabulary,
    prompt: str | Sequence[str],
    length: int = LENGTH,
    number: int = 1,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int = 0,
    *,
    context: int | None = None,
    stop: int | None = None,
) -> list[Sample]:
    """`number` samples of `length` tokens after the prompt, or one after each of several prompts.

    `context` is the most tokens the model reads at once (default: those it was built for), `stop` a token that ends a
    sample early and is not part of it.
    """
    check_sampling(length, temperature, top_k, top_p)
    window = window_of(model, context)
    prompts = [prompt] * number if isinstance(prompt, str) else list(prompt)
    samples: list[Sample] = []
    for first in range(0, len(prompts), AT_ONCE):
        ids = [prompt_tokens(vocabulary, text) for text in prompts[first : first + AT_ONCE]]
        draw = one_generator_each(range(first, first + len(ids)), seed, temperature, top_k, top_p)
        made: list[tuple[list[int], list[float]]] = [([], []) for _ in ids]
        with closing(decode(model, [row[-window:] for row in ids], draw, stop, window)) as steps:
            for step in islice(steps, length):
                for row, token, log_probability in zip(*step, strict=True):
                    made[row][1].append(log_probability)
                    if token != stop:
                        made[row][0].append(token)
        samples += [_sample(vocabulary, row, *new) for row, new in zip(ids, made, strict=True)]
    return samples


def stream(
    model: GPT,
    vocabulary: Vocabulary,
    prompt: str,
    length: int = LENGTH,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int = 0,
    *,
    context: int | None = None,
    stop: int | None = None,
) -> Iterator[str]:
    """The text of the first sample, token by token as it is decoded; without the prompt."""
    check_sampling(length, temperature, top_k, top_p)
    window, ids = window_of(model, context), prompt_tokens(vocabulary, prompt)
    draw = one_generator_each([0], seed, temperature, top_k, top_p)
    with closing(decode(model, [ids[-window:]], draw, stop, window)) as steps:
        yield from islice(vocabulary.pieces(chain(ids, _tokens(steps, length, stop))), len(ids), None)


def _tokens(steps: Generator[Step], length: int, stop: int | None) -> Iterator[int]:
    for step in islice(steps, length):
        if step.tokens[0] != stop:
            yield step.tokens[0]


def one_generator_each(
    numbers: Sequence[int], seed: int, temperature: float, top_k: int | None, top_p: float | None
) -> Draw:
    """Draws for the samples of these numbers, each with its own generator."""
    generators = [torch.Generator().manual_seed(int(seeded(seed, number).integers(2**63))) for number in numbers]

    def draw(logits: Tensor, rows: Sequence[int]) -> Tensor:
        scores = logits.float().cpu()
        chosen = [choose(scores[n : n + 1], temperature, top_k, top_p, generators[row]) for n, row in enumerate(rows)]
        return torch.cat(chosen).to(logits.device)

    return draw


def seeded(seed: int, number: int, purpose: str = "tokens") -> np.random.Generator:
    """The random numbers of one sample for one purpose."""
    return np.random.default_rng([seed, number, *purpose.encode()])


def prompt_tokens(vocabulary: Vocabulary, prompt: str) -> list[int]:
    """The prompt as the model reads it; the mark ⁇ in it is the token that ends a question or a document."""
    ids = [token for part in _around_marks(prompt, vocabulary) for token in part]
    if not ids:
        raise UserError("the prompt has no token: give at least one character or word.")
    return ids


def one_token(vocabulary: Vocabulary, text: str) -> int | None:
    """The token that a text names; none for an empty text."""
    if not text:
        return None
    tokens = prompt_tokens(vocabulary, text)
    if len(tokens) != 1 or tokens[0] == vocabulary.unknown:
        raise UserError(f"stop {text!r} is not one of the {vocabulary.level} the model knows.")
    return tokens[0]


def _around_marks(prompt: str, vocabulary: Vocabulary) -> Iterator[list[int]]:
    for number, part in enumerate(prompt.split(MASK_CHAR)):
        if number:
            yield [vocabulary.mask]
        yield vocabulary.encode(part)


def window_of(model: GPT, context: int | None = None) -> int:
    """The most tokens to read at once: `context`, or what the model was built for."""
    if context is None:
        return min(model.shape.context, model.longest or model.shape.context)
    if context < 1:
        raise UserError(f"context is {context}: the model must read at least 1 token.")
    if model.longest is not None and context > model.longest:
        raise UserError(f"context is {context}: the model can read at most {model.longest} tokens at once.")
    return context


def trained_context(trained: TrainedGPT) -> int:
    """Tokens per training sequence: the context, unless the run was trained on shorter blocks."""
    blocks = read_config(trained.run).get("data", {}).get("train_context")
    return min(blocks or trained.model.shape.context, window_of(trained.model))


def prompt_notes(vocabulary: Vocabulary, prompt: str, window: int) -> list[str]:
    """What the model does not get of a prompt, in sentences."""
    notes, missing = [], vocabulary.missing(prompt.split(MASK_CHAR))
    if missing:
        shown = ", ".join(map(repr, missing[:5])) + (", ..." if len(missing) > 5 else "")
        notes.append(f"{vocabulary.level} of the prompt that the model does not know are read as unknown: {shown}.")
    length = len(prompt_tokens(vocabulary, prompt))
    if length > window:
        notes.append(f"the prompt has {length} tokens: the model reads the last {window}, its context.")
    return notes


def check_sampling(length: int, temperature: float, top_k: int | None, top_p: float | None) -> None:
    if length < 1:
        raise UserError(f"length is {length}: give at least 1 token.")
    check_drawing(temperature, top_k, top_p)


def _sample(vocabulary: Vocabulary, prompt: list[int], new: list[int], log_probabilities: list[float]) -> Sample:
    pieces = list(vocabulary.pieces([*prompt, *new]))
    before, after = "".join(pieces[: len(prompt)]), "".join(pieces[len(prompt) :])
    return Sample(before, after, [vocabulary.tokens[token] for token in new], log_probabilities)
