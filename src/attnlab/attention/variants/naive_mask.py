"""The causal mask in the wrong place: future weights set to 0 after the softmax instead of -∞ before it.

    W_tj = exp(s_tj) / Σ_{i ≤ T} exp(s_ti) for j ≤ t, 0 for j > t

No value of the future is read, but the normaliser sums over all T scores: every output is scaled by the
scores of future keys, and so depends on them. While decoding there is no future yet,
so a trained model meets scales it has never seen. O(T²) time and memory.
"""

from __future__ import annotations

from torch import Tensor

from attnlab.attention.attention import Attention
from attnlab.attention.parts.projections import LinearProjections
from attnlab.attention.parts.weighting import Dot, VisibleKeys, Weighted, masked
from attnlab.attention.registry import INSIDE, MixerShape, variant


def mask_after_softmax(scores: Tensor, visible: VisibleKeys) -> Tensor:
    weights = masked(scores, visible.tokens()).softmax(-1)
    past = visible.past()
    return weights if past is None else weights * past


@variant(
    "naive-mask",
    equation="(softmax(QKᵀ/√D) ⊙ lower triangle) V",
    paper="a common mistake, kept to be caught: it sees the future",
    time=2,
    memory=2,
    positions=INSIDE,
)
def naive_mask(shape: MixerShape) -> Attention:
    return Attention(shape, LinearProjections(shape), Weighted(Dot(), mask_after_softmax, shape.dropout))
