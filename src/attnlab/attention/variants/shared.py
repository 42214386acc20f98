"""Softmax attention in which queries, keys and values share projections.

    shared-qk    Q = K = xW      scores are symmetric, and a token's best match is itself
    shared-kv    K = V = xW      the same vector is matched and read
    shared-qv    Q = V = xW
    shared-qkv   Q = K = V = xW

Kitaev, Kaiser and Levskaya 2020 (Reformer, arXiv:2001.04451) share Q and K; He and Hofmann 2024
(arXiv:2311.01906) ask which parts a Transformer block can do without. O(T²) time.
"""

from __future__ import annotations

from torch import Tensor, nn

from attnlab.attention.attention import Attention, Fused
from attnlab.attention.parts.projections import split_heads
from attnlab.attention.registry import INSIDE, MixerShape, variant


class SharedProjections(nn.Module):
    """`plan` has the number of the matrix for queries, keys and values: (0, 0, 1) shares the first two."""

    def __init__(self, shape: MixerShape, plan: tuple[int, int, int]) -> None:
        super().__init__()
        self.heads = shape.heads
        self.plan = plan
        self.count = max(plan) + 1
        self.matrices = nn.Linear(shape.width, self.count * shape.width, bias=shape.bias)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        projected = self.matrices(x).chunk(self.count, dim=-1)
        queries, keys, values = (split_heads(projected[number], self.heads) for number in self.plan)
        return queries, keys, values


PLANS = {
    "shared-qk": ((0, 0, 1), "softmax(QQᵀ/√D) V", "Kitaev, Kaiser and Levskaya 2020, arXiv:2001.04451"),
    "shared-kv": ((0, 1, 1), "softmax(QKᵀ/√D) K", "cf. He and Hofmann 2024, arXiv:2311.01906"),
    "shared-qv": ((0, 1, 0), "softmax(QKᵀ/√D) Q", "cf. He and Hofmann 2024, arXiv:2311.01906"),
    "shared-qkv": ((0, 0, 0), "softmax(QQᵀ/√D) Q", "cf. He and Hofmann 2024, arXiv:2311.01906"),
}


def _register(name: str) -> None:
    plan, equation, paper = PLANS[name]

    @variant(name, equation=equation, paper=paper, time=2, memory=1, positions=INSIDE)
    def build(shape: MixerShape) -> Attention:
        return Attention(shape, SharedProjections(shape, plan), Fused(shape.dropout))


for _name in PLANS:
    _register(_name)
