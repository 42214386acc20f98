"""The one function whose answer is not a tensor: W_Q, W_K, W_V are random, so only their kind is checked."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


def inspect_projections(answer: Any, n_embd: int) -> tuple[str, str] | None:
    """(what is wrong, what to do) about the answer of `init_qkv_proj`, or None when it is right."""
    if not isinstance(answer, tuple | list) or len(answer) != 3:
        return "this is not a tuple of three", "return W_Q, W_K, W_V."
    if not all(isinstance(part, nn.Module) for part in answer):
        return "these are not torch modules", "return three nn.Linear(n_embd, n_embd)."
    if len({id(part) for part in answer}) < 3:
        return "the same module is returned more than once", "make a new nn.Linear for each of Q, K and V."
    for name, part in zip(("W_Q", "W_K", "W_V"), answer, strict=True):
        try:
            shape = tuple(part(torch.zeros(2, 3, n_embd)).shape)
        except Exception as error:
            return f"{name} does not take (B, n_tok, n_embd): {error}", "use nn.Linear(n_embd, n_embd)."
        if shape != (2, 3, n_embd):
            return f"{name} maps (2, 3, {n_embd}) to {shape}", "use nn.Linear(n_embd, n_embd)."
        if isinstance(part, nn.Linear) and part.bias is None:
            return f"{name} has no bias", "leave the bias on."
    return None
