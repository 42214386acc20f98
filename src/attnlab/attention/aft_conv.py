"""AFT-conv: position weights that depend on the distance only, w_tj = w_{t-j}, each head with its own.

    Y_t = σ(Q_t) ⊙ Σ_j exp(K_j + w_{t-j}) V_j / Σ_j exp(K_j + w_{t-j}),   w_d = 0 for |d| ≥ s

with one number K_j a head. Zhai et al. 2021, arXiv:2105.14103. O(T·s) time and memory, and no longest
sequence: there is no table over positions.
"""

from __future__ import annotations

from attnlab.attention.aft import AFT, PAPER
from attnlab.attention.aft_local import WindowPooling, window_table
from attnlab.attention.registry import variant
from attnlab.attention.shape import MixerShape


@variant("aft-conv", equation="aft-full with w_tj = w_(t-j) for |t-j| < s", paper=PAPER, time=1, memory=1)
def aft_conv(shape: MixerShape, window: int = 16) -> AFT:
    table = window_table(shape.heads, 1, window, shape.causal)
    pooling = WindowPooling(table, window, shape.causal)
    return AFT(shape, pooling, groups=shape.heads, key_width=1)
