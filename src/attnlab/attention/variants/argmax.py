"""Hard attention: each query takes the value of its best key only.

    W_tj = 1 if j = argmax_{i visible} q_t·k_i else 0,   Y = W V

The limit of softmax attention as the queries grow. The weights are constant almost everywhere, so
queries and keys get no gradient: training cannot change which key is chosen. O(T²) time and memory.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from attnlab.attention.attention import Attention
from attnlab.attention.parts.projections import LinearProjections
from attnlab.attention.parts.weighting import Dot, VisibleKeys, Weighted, masked
from attnlab.attention.registry import INSIDE, MixerShape, variant


def hard(scores: Tensor, visible: VisibleKeys) -> Tensor:
    """1 at the highest score of a visible key, 0 elsewhere."""
    best = masked(scores, visible.mask()).argmax(-1)
    return F.one_hot(best, scores.shape[-1]).to(scores.dtype)


@variant(
    "argmax",
    equation="onehot(argmax(QKᵀ)) V",
    paper="hard attention, Xu et al. 2015, arXiv:1502.03044",
    time=2,
    memory=2,
    positions=INSIDE,
)
def argmax(shape: MixerShape) -> Attention:
    return Attention(shape, LinearProjections(shape), Weighted(Dot(), hard, shape.dropout))
