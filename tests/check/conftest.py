"""A person's file: right, but written unlike the lab's own, with any function exchanged for another.

One judge checks the files of all tests, as it would those of a class.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import pytest

from attnlab.check.judge.inside.limits import Limits
from attnlab.check.results import CheckReport, ExerciseStage
from attnlab.check.runner import Judge

LIMITS = Limits(seconds=20, grace_seconds=40)  # generous: machines are busy

HEADER = """
import math
import torch
import torch.nn as nn
import torch.nn.functional as F
"""

RIGHT = {
    "init_qkv_proj": """
        def init_qkv_proj(n_embd):
            return tuple(nn.Linear(n_embd, n_embd) for _ in range(3))
    """,
    "pairwise_similarities": """
        def pairwise_similarities(Q, K):
            return torch.matmul(Q, torch.transpose(K, -1, -2))
    """,
    "attn_scaled": """
        def attn_scaled(A, n_embd, n_heads):
            return A * (n_embd / n_heads) ** -0.5
    """,
    "attn_softmax": """
        def attn_softmax(A):
            return F.softmax(A, dim=-1)
    """,
    "compute_outputs": """
        def compute_outputs(A, V):
            return torch.matmul(A, V)
    """,
    "make_causal_mask": """
        def make_causal_mask(n_tok):
            return torch.tril(torch.ones(n_tok, n_tok))
    """,
    "apply_causal_mask": """
        def apply_causal_mask(mask, A):
            return A.masked_fill(mask == 0, float("-inf"))
    """,
    "split_heads": """
        def split_heads(Q, n_heads):
            B, n_tok, n_embd = Q.size()
            return Q.view(B, n_tok, n_heads, n_embd // n_heads).transpose(1, 2)
    """,
    "split_heads_qkv": """
        def split_heads_qkv(Q, K, V, n_heads):
            return (split_heads(Q, n_heads), split_heads(K, n_heads), split_heads(V, n_heads))
    """,
    "merge_heads": """
        def merge_heads(y):
            B, n_heads, n_tok, size = y.size()
            return y.transpose(1, 2).contiguous().view(B, n_tok, n_heads * size)
    """,
    "self_attention": """
        def self_attention(Q, K, V, n_heads=1, causal=True):
            B, n_tok, n_embd = Q.size()
            if n_heads > 1:
                Q, K, V = split_heads_qkv(Q, K, V, n_heads)
            A = pairwise_similarities(Q, K)
            A = attn_scaled(A, n_embd, n_heads)
            if causal:
                mask = make_causal_mask(n_tok)
                A = apply_causal_mask(mask, A)
            A = attn_softmax(A)
            y = compute_outputs(A, V)
            if n_heads > 1:
                y = merge_heads(y)
            return y
    """,
}


def build(**exchanged: str) -> str:
    """The file's text; an empty string leaves the function out."""
    functions = {**RIGHT, **exchanged}
    return HEADER + "\n".join(textwrap.dedent(body) for body in functions.values())


class Checked(Protocol):
    def __call__(self, stage: ExerciseStage = ..., **exchanged: str) -> CheckReport: ...


class Examined(Protocol):
    def __call__(self, text: str, stage: ExerciseStage = ..., limits: Limits = ..., seed: int = ...) -> CheckReport: ...


@pytest.fixture(scope="session")
def judge() -> Iterator[Judge]:
    with Judge() as warm:
        yield warm


@pytest.fixture
def examined(judge: Judge, tmp_path: Path) -> Examined:
    """examined(text) → the report on a file with this text."""

    def examine(
        text: str, stage: ExerciseStage = ExerciseStage.HEADS, limits: Limits = LIMITS, seed: int = 1
    ) -> CheckReport:
        path = tmp_path / "mine.py"
        path.write_text(text, encoding="utf-8")
        return judge.check(path, stage, limits=limits, seed=seed)

    return examine


@pytest.fixture
def student() -> Callable[..., str]:
    return build


@pytest.fixture
def checked(examined: Examined) -> Checked:
    """checked(attn_softmax="def ...") → the report on a right file with that function exchanged."""
    return lambda stage=ExerciseStage.HEADS, **exchanged: examined(build(**exchanged), stage)


@pytest.fixture
def right_functions() -> dict[str, str]:
    return {name: textwrap.dedent(body) for name, body in RIGHT.items()}
