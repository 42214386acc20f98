"""Fewer keys and values than queries: groups of query heads share keys and values.

    Y_i = softmax(Q_i K_gᵀ / √D) V_g,   g = the group of head i

One group for all is multi-query attention (Shazeer 2019, arXiv:1911.02150), several are grouped-query
attention (Ainslie et al. 2023, arXiv:2305.13245). The cache shrinks by heads / groups; O(T²) time.
"""

from __future__ import annotations

from attnlab.attention.attention import Attention, Fused
from attnlab.attention.parts.projections import LinearProjections
from attnlab.attention.registry import INSIDE, MixerShape, variant


@variant(
    "multi-query",
    equation="softmax(Q_i Kᵀ/√D) V, one K and V",
    paper="Shazeer 2019, arXiv:1911.02150",
    time=2,
    memory=1,
    positions=INSIDE,
)
def multi_query(shape: MixerShape) -> Attention:
    return Attention(shape, LinearProjections(shape, key_heads=1), Fused(shape.dropout))


@variant(
    "grouped-query",
    equation="softmax(Q_i K_gᵀ/√D) V_g, a K and V for every few heads",
    paper="Ainslie et al. 2023, arXiv:2305.13245",
    time=2,
    memory=1,
    positions=INSIDE,
)
def grouped_query(shape: MixerShape) -> Attention:
    return Attention(shape, LinearProjections(shape, key_heads=groups_for(shape.heads)), Fused(shape.dropout))


def groups_for(heads: int) -> int:
    """A quarter of the heads, or the next larger number that divides them."""
    return next(groups for groups in range(max(1, heads // 4), heads + 1) if heads % groups == 0)
