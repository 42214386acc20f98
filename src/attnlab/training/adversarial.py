"""Adversarial training on moved word vectors (Goodfellow et al. 2015; for text Miyato et al. 2017).

With word vectors x (T, C) of a text and its loss L, the move is r = ε·‖x‖·g/‖g‖, g = ∂L/∂x, for each text; the
loss is (L(x) + L(x + r))/2. With few labels it keeps a model from relying on single words.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from attnlab.data.batching import Batch
from attnlab.training.objectives import Objective


class Adversarial:
    """An objective on the texts and on the moved texts; `words` is the model's table of word vectors."""

    def __init__(self, main: Objective, words: nn.Module, size: float) -> None:
        self.main, self.words, self.size = main, words, size

    def weight(self, batch: Batch) -> float:
        return self.main.weight(batch)

    def __call__(self, model: nn.Module, batch: Batch) -> Tensor:
        seen: list[Tensor] = []
        with _replaced(self.words, seen, None):
            loss = self.main(model, batch)
        vectors, moved = seen  # (B, T, C) each; the second is zero and exists only for its gradient
        (gradient,) = torch.autograd.grad(loss, moved, retain_graph=True)
        with _replaced(self.words, [], self.move(vectors.detach(), gradient, batch.inputs.get("attention_mask"))):
            return (loss + self.main(model, batch)) / 2

    def move(self, vectors: Tensor, gradient: Tensor, mask: Tensor | None) -> Tensor:
        """r, (B, T, C): of norm ε·‖x‖ for each text, without padding; zero where the gradient is zero."""
        if mask is not None:
            real = mask[:, :, None].to(vectors.dtype)
            vectors, gradient = vectors * real, gradient * real
        length, slope = (tensor.flatten(1).norm(dim=1)[:, None, None] for tensor in (vectors, gradient))
        return self.size * length * gradient / slope.clamp_min(torch.finfo(slope.dtype).tiny)


@contextmanager
def _replaced(words: nn.Module, seen: list[Tensor], move: Tensor | None) -> Iterator[None]:
    """Inside, `move` is added to the word vectors; without it, zeros with a gradient, appended to `seen`."""

    def hook(module: nn.Module, inputs: tuple[Tensor, ...], vectors: Tensor) -> Tensor:
        added = torch.zeros_like(vectors, requires_grad=True) if move is None else move
        seen.extend((vectors, added))
        return vectors + added

    handle = words.register_forward_hook(hook)
    try:
        yield
    finally:
        handle.remove()
