"""A student's file: right, but written unlike the lab's own, with any function exchanged for another."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from attnlab.check.child_process import run_checks
from attnlab.check.results import CheckReport, CheckRequest, CheckResult, ExerciseStage, Remark, point_to_causes

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


def run(text: str, stage: ExerciseStage = ExerciseStage.HEADS, time_limit: float = 10.0) -> CheckReport:
    """The child's work, in this process: for files that do no harm."""
    events: list[dict[str, Any]] = []
    run_checks(CheckRequest("mine.py", text, stage, time_limit), events.append)
    results = [CheckResult.from_event(event) for event in events if event["event"] == "result"]
    remarks = [Remark(event["text"], event["line"]) for event in events if event["event"] == "remark"]
    return point_to_causes(CheckReport("mine.py", stage, results, remarks))


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """As in the child: many tiny products are slower on several threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def student() -> Callable[..., str]:
    return build


@pytest.fixture
def checked() -> Callable[..., CheckReport]:
    """checked(attn_softmax="def ...") → the report on a right file with that function exchanged."""
    return lambda **exchanged: run(build(**exchanged))


@pytest.fixture
def right_functions() -> dict[str, str]:
    return {name: textwrap.dedent(body) for name, body in RIGHT.items()}
