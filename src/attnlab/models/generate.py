"""Answers to prompts of different lengths, decoded together, one token a step with a cache."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attnlab.errors import UserError
from attnlab.models.gpt import GPT


@dataclass(frozen=True)
class Answer:
    tokens: list[int]
    """What was generated after the prompt, the stop token not included."""
    log_probability: float
    """Mean log-probability of the generated tokens, the stop token included; 0 when there are none."""

    @property
    def perplexity(self) -> float:
        return math.exp(-self.log_probability)


@torch.no_grad()
def generate(
    model: GPT,
    prompts: Sequence[Sequence[int]],
    steps: int,
    stop: int | None = None,
    temperature: float = 0.0,
    top_k: int | None = None,
    generator: torch.Generator | None = None,
) -> list[Answer]:
    """At most `steps` tokens after each prompt, until `stop` or the end of the model's context.

    Temperature 0 takes the most probable token. Otherwise tokens are drawn from
    softmax(logits / temperature), among the `top_k` best if given. Log-probabilities are always
    the model's own, at temperature 1.
    """
    _check(model, prompts, steps, temperature, top_k)
    if not prompts:
        return []
    device = next(model.parameters()).device
    was_training = model.training
    model.eval()

    lengths = torch.tensor([len(prompt) for prompt in prompts], device=device)
    tokens, padding = pad(prompts, device)
    cache = model.new_cache()
    logits = model(tokens, padding, cache)  # (B, T, V)
    logits = logits[torch.arange(len(prompts), device=device), lengths - 1]  # at each row's last token

    chosen: list[Tensor] = []  # a (B,) for each step
    gained: list[Tensor] = []
    running = torch.ones(len(prompts), dtype=torch.bool, device=device)
    limit = model.longest
    for step in range(steps):
        token = choose(logits, temperature, top_k, generator)
        gain = logits.log_softmax(-1).gather(1, token[:, None])[:, 0]
        chosen.append(torch.where(running, token, -1))
        gained.append(torch.where(running, gain, 0.0))
        if stop is not None:
            running = running & (token != stop)
        if limit is not None:
            running = running & (lengths + step < limit)  # there must be room to read the new token
        if step + 1 == steps or not running.any():
            break
        # Rows that are done read along at their last position and are not looked at again.
        if limit is not None:
            for memory in cache:
                assert memory.lengths is not None
                memory.lengths = memory.lengths.clamp(max=limit - 1)
        logits = model(token[:, None], None, cache)[:, -1]

    model.train(was_training)
    if not chosen:
        return [Answer([], 0.0) for _ in prompts]
    return _answers(torch.stack(chosen, 1), torch.stack(gained, 1), stop)


def choose(logits: Tensor, temperature: float, top_k: int | None, generator: torch.Generator | None) -> Tensor:
    """One token (B,) for logits (B, V)."""
    if temperature == 0.0:
        return logits.argmax(-1)
    if top_k is not None and top_k < logits.shape[-1]:
        least = logits.topk(top_k).values[:, -1:]
        logits = logits.masked_fill(logits < least, float("-inf"))
    return torch.multinomial((logits / temperature).softmax(-1), 1, generator=generator)[:, 0]


def pad(sequences: Sequence[Sequence[int]], device: torch.device | None = None) -> tuple[Tensor, Tensor]:
    """Tokens (B, T) with zeros after the shorter sequences, and padding (B, T), True for real tokens."""
    lengths = torch.tensor([len(sequence) for sequence in sequences])
    tokens = torch.zeros(len(sequences), int(lengths.max()), dtype=torch.long)
    for row, sequence in zip(tokens, sequences, strict=True):
        row[: len(sequence)] = torch.as_tensor(sequence)
    padding = torch.arange(tokens.shape[1]) < lengths[:, None]
    return tokens.to(device), padding.to(device)


def _answers(chosen: Tensor, gained: Tensor, stop: int | None) -> list[Answer]:
    answers = []
    for tokens, gains in zip(chosen.tolist(), gained.tolist(), strict=True):
        made = [token for token in tokens if token >= 0]
        mean = sum(gains) / len(made)
        if stop is not None and made[-1] == stop:
            made = made[:-1]
        answers.append(Answer(made, mean))
    return answers


def _check(model: GPT, prompts: Sequence[Sequence[int]], steps: int, temperature: float, top_k: int | None) -> None:
    limit = model.longest
    for number, prompt in enumerate(prompts, 1):
        if len(prompt) == 0:
            raise UserError(f"prompt {number} is empty: give at least one token.")
        if limit is not None and len(prompt) > limit:
            raise UserError(f"prompt {number} has {len(prompt)} tokens, more than the model's context of {limit}.")
    if steps < 0 or temperature < 0:
        raise UserError(f"steps is {steps} and temperature is {temperature}: neither can be negative.")
    if top_k is not None and top_k < 1:
        raise UserError(f"top_k is {top_k}: give at least 1, or leave it out.")
