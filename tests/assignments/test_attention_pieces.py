"""The functions in A2S2 are attention: equal to PyTorch's own and to the lab's, forward and backward."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tests.assignments.attention_folder import FOLDER
from torch import Tensor, nn
from torch.nn import functional as F

from attnlab.attention import pieces

FUNCTIONS = (
    "init_qkv_proj",
    "pairwise_similarities",
    "attn_scaled",
    "attn_softmax",
    "compute_outputs",
    "make_causal_mask",
    "apply_causal_mask",
    "split_heads_qkv",
    "split_heads",
    "merge_heads",
    "self_attention",
    "apply_naive_causal_mask",
    "naive_self_attention",
)
B, T, C, H = 3, 7, 12, 4


@pytest.fixture(scope="module")
def mine() -> SimpleNamespace:
    """The functions of A2S2.py with nothing but torch: no import of the lab can stand in for a body."""
    tree = ast.parse((FOLDER / "A2S2.py").read_text(encoding="utf-8"))
    tree.body = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in FUNCTIONS]
    names: dict[str, Any] = {"math": math, "torch": torch, "F": F, "nn": nn, "Tensor": Tensor, "Callable": Callable}
    exec(compile(tree, "A2S2.py", "exec"), names)
    return SimpleNamespace(**{name: names[name] for name in FUNCTIONS})


@pytest.fixture
def qkv() -> Iterator[list[Tensor]]:
    torch.manual_seed(0)
    yield [torch.randn(B, T, C, dtype=torch.float64, requires_grad=True) for _ in "qkv"]


def close(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and torch.allclose(one, other, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("heads", [1, 2, H])
@pytest.mark.parametrize("causal", [False, True])
def test_self_attention_is_torch_s(mine: SimpleNamespace, qkv: list[Tensor], heads: int, causal: bool) -> None:
    Q, K, V = qkv
    split = [x.reshape(B, T, heads, C // heads).transpose(1, 2) for x in qkv]  # (B, H, T, D)
    theirs = F.scaled_dot_product_attention(*split, is_causal=causal).transpose(1, 2).reshape(B, T, C)
    ours = mine.self_attention(Q, K, V, heads, causal)
    assert close(ours, theirs)
    assert close(ours, pieces.self_attention(Q, K, V, heads, causal))
    weight = torch.randn_like(ours)
    for own, torch_s in zip(*(torch.autograd.grad((y * weight).sum(), qkv) for y in (ours, theirs)), strict=True):
        assert close(own, torch_s)


def test_with_the_projections_it_is_torch_s_module(mine: SimpleNamespace) -> None:
    torch.manual_seed(1)
    projections = mine.init_qkv_proj(C)
    module = nn.MultiheadAttention(C, H, batch_first=True)
    with torch.no_grad():
        module.in_proj_weight.copy_(torch.cat([layer.weight for layer in projections]))
        module.in_proj_bias.copy_(torch.cat([layer.bias for layer in projections]))
    x = torch.randn(B, T, C)
    later = torch.ones(T, T, dtype=torch.bool).triu(1)
    theirs, _ = module(x, x, x, attn_mask=later, need_weights=False)
    ours = module.out_proj(mine.self_attention(*(layer(x) for layer in projections), H))
    assert torch.allclose(ours, theirs, atol=1e-6)


def test_every_piece_is_the_lab_s(mine: SimpleNamespace, qkv: list[Tensor]) -> None:
    Q, K, V = (mine.split_heads(x, H) for x in qkv)
    assert all(close(one, other) for one, other in zip((Q, K, V), pieces.split_heads_qkv(*qkv, H), strict=True))
    assert close(mine.merge_heads(Q), qkv[0])
    A = mine.pairwise_similarities(Q, K)
    assert close(A, pieces.pairwise_similarities(Q, K))
    assert close(mine.attn_scaled(A, C, H), pieces.attn_scaled(A, C, H))
    mask = mine.make_causal_mask(T)
    assert torch.equal(mask, pieces.make_causal_mask(T))
    assert torch.equal(mine.apply_causal_mask(mask, A), pieces.apply_causal_mask(mask, A))
    weights = mine.attn_softmax(A)
    assert close(weights, pieces.attn_softmax(A))
    assert close(mine.compute_outputs(weights, V), pieces.compute_outputs(weights, V))


def test_a_later_token_changes_nothing_before_it_but_with_the_naive_mask(
    mine: SimpleNamespace, qkv: list[Tensor]
) -> None:
    changed = [x.detach().clone() for x in qkv]
    for x in changed:
        x[:, -1] += 1
    normal = [mine.self_attention(*inputs, H)[:, :-1] for inputs in (qkv, changed)]
    naive = [mine.naive_self_attention(*inputs, H)[:, :-1] for inputs in (qkv, changed)]
    assert torch.equal(*normal)
    assert (naive[0] - naive[1]).abs().max() > 1e-3


def test_the_naive_mask_only_rescales(mine: SimpleNamespace, qkv: list[Tensor]) -> None:
    """In one head both masks weigh the visible values in the same proportion; the last row sees all and is equal."""
    normal, naive = mine.self_attention(*qkv), mine.naive_self_attention(*qkv, 1)
    ratio = naive / normal
    assert close(ratio, ratio[..., :1].expand_as(ratio))
    assert (ratio[:, :-1] < 1).all()
    assert close(naive[:, -1], normal[:, -1])
