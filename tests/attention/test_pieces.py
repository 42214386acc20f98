"""The pieces equal torch's own attention in the three stages, and each keeps its promise."""

from __future__ import annotations

import math

import pytest
import torch

from attnlab.attention import pieces
from attnlab.base.errors import UserError
from attnlab.check.reference import torch_attention

STAGES = {
    "plain": {"n_heads": 1, "causal": False},
    "causal": {"n_heads": 1, "causal": True},
    "heads": {"n_heads": 4, "causal": False},
    "causal heads": {"n_heads": 4, "causal": True},
}
SHAPES = [(1, 1, 4), (2, 5, 8), (3, 16, 32), (1, 33, 64)]
PRECISIONS = [(torch.float32, 1e-6), (torch.float64, 1e-12)]


def draw(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(("dtype", "tolerance"), PRECISIONS, ids=["fp32", "fp64"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("stage", STAGES)
def test_equals_multi_head_attention_forward(
    stage: str, shape: tuple[int, int, int], dtype: torch.dtype, tolerance: float
) -> None:
    Q, K, V = draw(3, *shape, dtype=dtype)
    ours = pieces.self_attention(Q, K, V, **STAGES[stage])
    theirs = torch_attention(Q, K, V, **STAGES[stage])
    assert ours.dtype == dtype
    assert (ours - theirs).abs().max() <= tolerance


@pytest.mark.parametrize("stage", STAGES)
def test_gradients_equal_torchs(stage: str) -> None:
    Q, K, V = (draw(2, 5, 8, seed=seed).requires_grad_() for seed in range(3))
    weights = draw(2, 5, 8, seed=3)
    ours, theirs = (
        torch.autograd.grad((attend(Q, K, V, **STAGES[stage]) * weights).sum(), (Q, K, V))
        for attend in (pieces.self_attention, torch_attention)
    )
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=0, atol=1e-12)


def test_defaults_are_one_head_and_causal() -> None:
    Q, K, V = draw(3, 2, 5, 8)
    assert torch.equal(pieces.self_attention(Q, K, V), pieces.self_attention(Q, K, V, n_heads=1, causal=True))


def test_scores_are_dot_products_of_query_i_with_key_j() -> None:
    Q, K = draw(2, 2, 3, 5)
    assert pieces.pairwise_similarities(Q, K)[1, 0, 2] == pytest.approx(float(Q[1, 0] @ K[1, 2]))


def test_scale_keeps_the_variance_of_random_scores_at_one() -> None:
    Q, K = draw(2, 8, 4, 200, 16)  # four heads of 16 features
    scores = pieces.attn_scaled(pieces.pairwise_similarities(Q, K), 64, 4)
    assert float(scores.var()) == pytest.approx(1.0, abs=0.05)


def test_masked_weights_are_exact_zeros_and_rows_sum_to_one() -> None:
    weights = pieces.attn_softmax(pieces.apply_causal_mask(pieces.make_causal_mask(6), draw(2, 3, 6, 6)))
    assert weights.triu(1).count_nonzero() == 0
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3, 6, dtype=torch.float64))


def test_a_causal_output_does_not_depend_on_later_tokens() -> None:
    Q, K, V = draw(3, 1, 6, 8)
    changed_K, changed_V = K.clone(), V.clone()
    changed_K[:, 4:], changed_V[:, 4:] = 9.0, -9.0
    before = pieces.self_attention(Q, K, V, n_heads=2)
    after = pieces.self_attention(Q, changed_K, changed_V, n_heads=2)
    assert torch.equal(before[:, :4], after[:, :4])
    assert not torch.allclose(before[:, 4:], after[:, 4:])


def test_head_h_has_consecutive_features_and_merge_undoes_split() -> None:
    x = draw(2, 5, 12)
    heads = pieces.split_heads(x, 3)
    assert heads.shape == (2, 3, 5, 4)
    assert torch.equal(heads[:, 1], x[..., 4:8])
    assert torch.equal(pieces.merge_heads(heads), x)


def test_projections_are_three_separate_maps_with_bias() -> None:
    projections = pieces.init_qkv_proj(8)
    assert len({id(projection) for projection in projections}) == 3
    assert all(p.weight.shape == (8, 8) and p.bias is not None for p in projections)


def test_large_scores_stay_finite() -> None:
    Q, K, V = draw(3, 1, 4, 8, dtype=torch.float32) * 1e3
    assert math.isfinite(float(pieces.self_attention(Q, K, V).sum()))


@pytest.mark.parametrize(
    ("shapes", "heads", "sentence"),
    [
        (((1, 4, 8), (1, 5, 8), (1, 4, 8)), 1, "same shape (B, T, C)"),
        (((1, 4, 8), (1, 4, 8), (1, 4, 8)), 3, "a divisor of 8"),
    ],
)
def test_bad_input_is_one_sentence(shapes: tuple[tuple[int, ...], ...], heads: int, sentence: str) -> None:
    with pytest.raises(UserError) as error:
        pieces.self_attention(*(torch.zeros(shape) for shape in shapes), n_heads=heads)
    assert sentence in str(error.value)
