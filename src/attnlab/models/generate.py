"""Continuations of prompts of different lengths, decoded together, one token per step with a cache."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attnlab.attention import Cache
from attnlab.base.errors import UserError
from attnlab.data.sequences import common_start
from attnlab.models.gpt import GPT


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


@torch.no_grad()
def generate(
    model: GPT,
    prompts: Sequence[Sequence[int]],
    steps: int,
    stop: int | None = None,
    temperature: float = 0.0,
    top_k: int | None = None,
    generator: torch.Generator | None = None,
) -> list[Generated]:
    """At most `steps` tokens after each prompt, until `stop` or the end of the model's context.

    Temperature 0 takes the most probable token. Otherwise tokens are drawn from
    softmax(logits / temperature), among the `top_k` best if given. Log-probabilities are always
    the model's own, at temperature 1.
    """
    _check(model, prompts, steps, temperature, top_k)
    outputs = [Generated([], []) for _ in prompts]
    if not prompts or steps == 0:
        return outputs
    device = next(model.parameters()).device
    was_training = model.training
    model.eval()

    lengths = torch.tensor([len(prompt) for prompt in prompts], device=device)
    logits, cache = read(model, prompts)
    running = torch.arange(len(prompts), device=device)  # the prompts that are not finished
    limit = model.longest
    for step in range(steps):
        token = choose(logits, temperature, top_k, generator)
        log_probability = logits.log_softmax(-1).gather(1, token[:, None])[:, 0]
        unfinished = torch.ones_like(token, dtype=torch.bool)
        if stop is not None:
            unfinished &= token != stop
        if limit is not None:
            unfinished &= lengths[running] + step < limit  # the new token must fit into the context
        for index, new, log in zip(running.tolist(), token.tolist(), log_probability.tolist(), strict=True):
            outputs[index].log_probabilities.append(log)
            if new != stop:
                outputs[index].tokens.append(new)
        if step + 1 == steps or not unfinished.any():
            break
        if not unfinished.all():
            rows = unfinished.nonzero()[:, 0]
            running, token = running[rows], token[rows]
            for memory in cache:
                memory.select(rows)
        logits = model(token[:, None], None, cache)[:, -1]

    model.train(was_training)
    return outputs


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
    logits = model(tokens, padding, cache)  # (B, T, V)
    ends = padding.sum(1) - 1  # each row's last token
    return logits[torch.arange(len(prompts), device=device), ends], cache


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
