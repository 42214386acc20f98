"""Continuations of prompts of different lengths, decoded together, one token per step with a cache."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import count, islice
from typing import NamedTuple

import torch
from torch import Tensor

from attnlab.attention import Cache
from attnlab.base.errors import UserError
from attnlab.data.sequences import common_start
from attnlab.models.gpt import GPT

LEAST_TEMPERATURE = 1e-4  # logits divided by less can be infinite


@dataclass(frozen=True)
class Generated:
    tokens: list[int]
    """The tokens after the prompt, without the stop token."""
    log_probabilities: list[float]
    """Of each generated token, the stop token included."""

    @property
    def log_probability(self) -> float:
        """Mean over the generated tokens, the stop token included; 0 when there are none."""
        return sum(self.log_probabilities) / max(1, len(self.log_probabilities))

    @property
    def probability(self) -> float:
        """Of all tokens and of stopping after them: the product over the tokens."""
        return math.exp(sum(self.log_probabilities))

    @property
    def perplexity(self) -> float:
        return math.exp(-self.log_probability)


class Step(NamedTuple):
    """One more token of each sequence that is not finished."""

    rows: list[int]
    """Which of the prompts these are."""
    tokens: list[int]
    log_probabilities: list[float]
    """The model's own, at temperature 1."""


Draw = Callable[[Tensor, Sequence[int]], Tensor]
"""One token (B,) for logits (B, V); the rows are those of a Step."""


def generate(
    model: GPT,
    prompts: Sequence[Sequence[int]],
    steps: int,
    stop: int | None = None,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
) -> list[Generated]:
    """At most `steps` tokens after each prompt, until `stop` or the end of the model's context.

    Temperature 0 takes the most probable token. Otherwise tokens are drawn from
    softmax(logits / temperature), see `distribution`. Log-probabilities are always the model's own, at temperature 1.
    """
    _check_prompts(model, prompts, steps)
    check_drawing(temperature, top_k, top_p)
    outputs = [Generated([], []) for _ in prompts]
    if not prompts or steps == 0:
        return outputs
    decoding = decode(model, prompts, lambda logits, _: choose(logits, temperature, top_k, top_p, generator), stop)
    with closing(decoding):
        for step in islice(decoding, steps):
            for row, token, log_probability in zip(*step, strict=True):
                outputs[row].log_probabilities.append(log_probability)
                if token != stop:
                    outputs[row].tokens.append(token)
    return outputs


@torch.no_grad()
def decode(
    model: GPT, prompts: Sequence[Sequence[int]], draw: Draw, stop: int | None = None, window: int | None = None
) -> Generator[Step]:
    """One token per step and prompt, until `stop` or the end of the model's context.

    With a window of W tokens there is no end: each time the cache holds W tokens, the last W/2 of the text are read
    again into a new one, from position 0. A token then has between W/2 and W tokens before it, at the price of reading
    every token twice.
    """
    device = next(model.parameters()).device
    was_training = model.training
    model.eval()
    try:
        lengths = torch.tensor([len(prompt) for prompt in prompts], device=device)
        texts = [list(prompt) for prompt in prompts]
        held = max(map(len, prompts))  # tokens in the cache
        logits, cache = read(model, prompts)
        running = torch.arange(len(prompts), device=device)  # the prompts that are not finished
        limit = model.longest if window is None else None
        for step in count():
            token = draw(logits, running.tolist())
            log_probability = logits.log_softmax(-1).gather(1, token[:, None])[:, 0]
            unfinished = torch.ones_like(token, dtype=torch.bool)
            if stop is not None:
                unfinished &= token != stop
            if limit is not None:
                unfinished &= lengths[running] + step < limit  # the new token must fit into the context
            made = Step(running.tolist(), token.tolist(), log_probability.tolist())
            for row, new in zip(made.rows, made.tokens, strict=True):
                texts[row].append(new)
            yield made
            if not unfinished.any():
                return
            if not unfinished.all():
                rows = unfinished.nonzero()[:, 0]
                running, token = running[rows], token[rows]
                for memory in cache:
                    memory.select(rows)
            if window is not None and held >= window:
                held = max(1, window // 2)
                logits, cache = read(model, [texts[row][-held:] for row in running.tolist()])
            else:
                held += 1
                logits = model(token[:, None], None, cache)[:, -1]
    finally:
        model.train(was_training)


def read(model: GPT, prompts: Sequence[Sequence[int]]) -> tuple[Tensor, list[Cache]]:
    """Logits (B, V) after each prompt, and the caches with what was read.

    The common start of all prompts ("Where was ") is read once, for all of them.
    """
    device = next(model.parameters()).device
    cache = model.new_cache()
    shared = min(common_start(prompts), min(map(len, prompts)) - 1) if len(prompts) > 1 else 0
    if shared:
        model(torch.tensor([list(prompts[0][:shared])], device=device), None, cache)
        for memory in cache:
            memory.select(torch.zeros(len(prompts), dtype=torch.long, device=device))
    tokens, padding = pad([prompt[shared:] for prompt in prompts], device)
    if bool(padding.all()):
        return model(tokens, None, cache)[:, -1], cache
    logits = model(tokens, padding, cache)  # (B, T, V)
    ends = padding.sum(1) - 1  # each row's last token
    return logits[torch.arange(len(prompts), device=device), ends], cache


def choose(
    logits: Tensor,
    temperature: float,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """One token (B,) for logits (B, V)."""
    if temperature == 0.0:
        return logits.argmax(-1)
    return torch.multinomial(distribution(logits, temperature, top_k, top_p), 1, generator=generator)[:, 0]


def distribution(logits: Tensor, temperature: float, top_k: int | None = None, top_p: float | None = None) -> Tensor:
    """softmax(logits / temperature), (B, V), on the `top_k` best tokens, and of these on the fewest that together have
    at least the probability `top_p` (the nucleus, Holtzman et al. 2020)."""
    if top_k is not None and top_k < logits.shape[-1]:
        least = logits.topk(top_k).values[:, -1:]
        logits = logits.masked_fill(logits < least, float("-inf"))
    probabilities = (logits / temperature).softmax(-1)
    if top_p is None or top_p >= 1.0:
        return probabilities
    ordered, tokens = probabilities.sort(-1, descending=True)
    before = ordered.cumsum(-1) - ordered  # the probability of all better tokens
    kept = torch.zeros_like(ordered).scatter(1, tokens, ordered.masked_fill(before >= top_p, 0.0))
    return kept / kept.sum(-1, keepdim=True)


def pad(sequences: Sequence[Sequence[int]], device: torch.device | None = None) -> tuple[Tensor, Tensor]:
    """Tokens (B, T) with zeros after the shorter sequences, and padding (B, T), True for real tokens."""
    lengths = torch.tensor([len(sequence) for sequence in sequences])
    tokens = torch.zeros(len(sequences), int(lengths.max()), dtype=torch.long)
    for row, sequence in zip(tokens, sequences, strict=True):
        row[: len(sequence)] = torch.as_tensor(sequence)
    padding = torch.arange(tokens.shape[1]) < lengths[:, None]
    return tokens.to(device), padding.to(device)


def check_drawing(temperature: float, top_k: int | None, top_p: float | None) -> None:
    """Raise for settings that leave no token to draw."""
    if temperature != 0.0 and not LEAST_TEMPERATURE <= temperature < math.inf:
        raise UserError(
            f"temperature is {temperature}: give 0, for the most probable token, or {LEAST_TEMPERATURE} and more."
        )
    if top_k is not None and top_k < 1:
        raise UserError(f"top_k is {top_k}: give at least 1, or leave it out.")
    if top_p is not None and not 0.0 < top_p <= 1.0:
        raise UserError(f"top_p is {top_p}: give a probability above 0, at most 1, or leave it out.")


def _check_prompts(model: GPT, prompts: Sequence[Sequence[int]], steps: int) -> None:
    limit = model.longest
    for number, prompt in enumerate(prompts, 1):
        if len(prompt) == 0:
            raise UserError(f"prompt {number} is empty: give at least one token.")
        if limit is not None and len(prompt) > limit:
            raise UserError(f"prompt {number} has {len(prompt)} tokens, more than the model's context of {limit}.")
    if steps < 0:
        raise UserError(f"steps is {steps}: it cannot be negative.")
