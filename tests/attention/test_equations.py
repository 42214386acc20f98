"""Every variant against its equation, written again as plain loops over heads and positions.

A reference takes the mixer (for its numbers only), x (T, C) and `causal`, and returns (T, C).
"""

import math

import pytest
import torch
import torch.nn.functional as F

from attnlab.attention import VARIANTS


def affine(x, linear):
    return x @ linear.weight.T + (0 if linear.bias is None else linear.bias)


def in_sight(t, T, causal):
    return range(t + 1 if causal else T)


def average(logits, values):
    """Σ exp(a_i) v_i / Σ exp(a_i) over lists."""
    weights = [torch.exp(a) for a in logits]
    return sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights)


def attention(mixer, x, causal, q, k, v, similarity=None, pick=average):
    """q (T, H·D) against k, v (T, G·D), head by head, position by position."""
    T, C = x.shape
    D = C // HEADS
    group = C // k.shape[1]  # how many query heads look at the same key head
    similarity = similarity or (lambda a, b, h: (a @ b) / math.sqrt(D))
    y = torch.zeros_like(x)
    for h in range(HEADS):
        own, theirs = slice(h * D, (h + 1) * D), slice(h // group * D, (h // group + 1) * D)
        for t in range(T):
            keys = in_sight(t, T, causal)
            y[t, own] = pick([similarity(q[t, own], k[j, theirs], h) for j in keys], [v[j, theirs] for j in keys])
    return affine(y, mixer.output)


HEADS = 4


def projected(mixer, x, key_heads=HEADS):
    C = x.shape[1]
    G = key_heads * C // HEADS
    return affine(x, mixer.projections.qkv).split([C, G, G], dim=-1)


def vanilla(mixer, x, causal):
    return attention(mixer, x, causal, *projected(mixer, x))


def argmax(mixer, x, causal):
    def best(scores, values):
        return values[max(range(len(scores)), key=lambda i: scores[i])]

    return attention(mixer, x, causal, *projected(mixer, x), pick=best)


def naive_mask(mixer, x, causal):
    q, k, v = projected(mixer, x)
    T, C = x.shape
    D = C // HEADS
    y = torch.zeros_like(x)
    for h in range(HEADS):
        own = slice(h * D, (h + 1) * D)
        for t in range(T):
            weights = [torch.exp(q[t, own] @ k[j, own] / math.sqrt(D)) for j in range(T)]
            y[t, own] = sum(weights[j] * v[j, own] for j in in_sight(t, T, causal)) / sum(weights)
    return affine(y, mixer.output)


def cosine(mixer, x, causal):
    sharp = mixer.core.similarity.log_sharpness.exp().flatten()
    return attention(
        mixer, x, causal, *projected(mixer, x), similarity=lambda a, b, h: sharp[h] * (a @ b) / (a.norm() * b.norm())
    )


def distance(mixer, x, causal):
    return attention(
        mixer,
        x,
        causal,
        *projected(mixer, x),
        similarity=lambda a, b, h: -((a - b) ** 2).sum() / (2 * math.sqrt(len(a))),
    )


def additive(mixer, x, causal):
    direction = mixer.core.similarity.direction
    return attention(
        mixer, x, causal, *projected(mixer, x), similarity=lambda a, b, h: direction[h] @ torch.tanh(a + b)
    )


def grouped(key_heads):
    return lambda mixer, x, causal: attention(mixer, x, causal, *projected(mixer, x, key_heads))


def shared(*plan):
    def reference(mixer, x, causal):
        made = affine(x, mixer.projections.matrices).split(x.shape[1], dim=-1)
        return attention(mixer, x, causal, *(made[number] for number in plan))

    return reference


def nonlinear(bent):
    def reference(mixer, x, causal):
        made = zip("qkv", projected(mixer, x), strict=True)
        return attention(mixer, x, causal, *(F.gelu(y) if name in bent else y for name, y in made))

    return reference


def mlp_qkv(mixer, x, causal):
    parts = (mixer.projections.queries, mixer.projections.keys, mixer.projections.values)
    return attention(mixer, x, causal, *(affine(F.gelu(affine(x, part[0])), part[2]) for part in parts))


def synthesizer(score):
    """`score(mixer, x, h, t, j)` is the score head h gives key j at position t."""

    def reference(mixer, x, causal):
        T, C = x.shape
        D = C // HEADS
        v = affine(x, mixer.values)
        y = torch.zeros_like(x)
        for h in range(HEADS):
            own = slice(h * D, (h + 1) * D)
            for t in range(T):
                keys = in_sight(t, T, causal)
                y[t, own] = average([score(mixer.scores, x, h, t, j) for j in keys], [v[j, own] for j in keys])
        return affine(y, mixer.output)

    return reference


def hidden(linear, x, h, t):
    D = x.shape[1] // HEADS
    return torch.relu(affine(x[t], linear)[h * D : (h + 1) * D])


def dense(part, x, h, t, j):
    return hidden(part.a, x, h, t) @ part.b[h, :, j] + part.b2[j]


def dense_shared(part, x, h, t, j):
    return hidden(part.a, x, h, t) @ part.b[0, :, j] + part.b2[j]


def factorised_dense(part, x, h, t, j):
    row = hidden(part.hidden, x, h, t)
    return (row @ part.a[h, :, j // part.n]) * (row @ part.b[h, :, j % part.n])


def random(part, x, h, t, j):
    return part.table[h, t, j]


def factorised_random(part, x, h, t, j):
    return part.left[h, t] @ part.right[h, j]


def kernel(features):
    def reference(mixer, x, causal):
        q, k, v = projected(mixer, x)
        T, C = x.shape
        D = C // HEADS
        y = torch.zeros_like(x)
        for h in range(HEADS):
            own = slice(h * D, (h + 1) * D)
            for t in range(T):
                keys = in_sight(t, T, causal)
                weights = [features(mixer, q[t, own]) @ features(mixer, k[j, own]) for j in keys]
                y[t, own] = sum(w * v[j, own] for w, j in zip(weights, keys, strict=True)) / sum(weights)
        return affine(y, mixer.output)

    return reference


def elu(mixer, x):
    return torch.where(x > 0, x + 1, torch.exp(x))


def favor(mixer, x):
    x = x / len(x) ** 0.25
    return torch.exp(mixer.features.directions @ x - x @ x / 2)


def aft(bias):
    """`bias(pooling, channel, t, j, causal)` is w_tj."""

    def reference(mixer, x, causal):
        T, C = x.shape
        q, k, v = affine(x, mixer.qkv).split(mixer.sizes, dim=-1)
        y = torch.zeros_like(x)
        for t in range(T):
            for c in range(C):
                key = c * k.shape[1] // C  # one key number for this channel, or for its head
                keys = in_sight(t, T, causal)
                logits = [k[j, key] + bias(mixer.pooling, c * HEADS // C, t, j, causal) for j in keys]
                y[t, c] = torch.sigmoid(q[t, c]) * average(logits, [v[j, c] for j in keys])
        return affine(y, mixer.output)

    return reference


def no_bias(pooling, head, t, j, causal):
    return 0.0


def full_bias(pooling, head, t, j, causal):
    return pooling.queries[t] @ pooling.keys[j]


def local_bias(pooling, head, t, j, causal):
    if abs(t - j) >= pooling.window:
        return 0.0
    return pooling.table[0, t, t - j if causal else t - j + pooling.window - 1]


def conv_bias(pooling, head, t, j, causal):
    if abs(t - j) >= pooling.window:
        return 0.0
    return pooling.table[head, 0, t - j if causal else t - j + pooling.window - 1]


def fastformer(mixer, x, causal):
    q, k, v = projected(mixer, x)
    T, C = x.shape
    D = C // HEADS
    y = torch.zeros_like(x)
    for h in range(HEADS):
        own = slice(h * D, (h + 1) * D)
        w, u = mixer.query_score[h], mixer.key_score[h]
        p = []
        for i in range(T):
            keys = in_sight(i, T, causal)
            query = average([w @ q[j, own] / math.sqrt(D) for j in keys], [q[j, own] for j in keys])
            p.append(query * k[i, own])
        for t in range(T):
            keys = in_sight(t, T, causal)
            key = average([u @ p[j] / math.sqrt(D) for j in keys], [p[j] for j in keys])
            y[t, own] = key * v[t, own]
    return affine(y, mixer.output) + q


REFERENCES = {
    "vanilla": vanilla,
    "pieces": vanilla,
    "argmax": argmax,
    "naive-mask": naive_mask,
    "cosine": cosine,
    "distance": distance,
    "additive": additive,
    "multi-query": grouped(1),
    "grouped-query": grouped(2),
    "shared-qk": shared(0, 0, 1),
    "shared-kv": shared(0, 1, 1),
    "shared-qv": shared(0, 1, 0),
    "shared-qkv": shared(0, 0, 0),
    "nonlinear-q": nonlinear("q"),
    "nonlinear-k": nonlinear("k"),
    "nonlinear-v": nonlinear("v"),
    "nonlinear-qkv": nonlinear("qkv"),
    "mlp-qkv": mlp_qkv,
    "synthesizer": synthesizer(dense),
    "synthesizer-shared": synthesizer(dense_shared),
    "synthesizer-factorised-dense": synthesizer(factorised_dense),
    "synthesizer-random": synthesizer(random),
    "synthesizer-factorised-random": synthesizer(factorised_random),
    "linear": kernel(elu),
    "performer": kernel(favor),
    "aft-simple": aft(no_bias),
    "aft-full": aft(full_bias),
    "aft-local": aft(local_bias),
    "aft-conv": aft(conv_bias),
    "fastformer": fastformer,
}


def test_every_variant_has_a_reference():
    assert set(REFERENCES) == set(VARIANTS)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("name", sorted(REFERENCES))
@torch.no_grad()
def test_equals_its_equation(tiny, name, causal):
    mixer = tiny(name, causal=causal)
    x = torch.randn(2, 19, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(mixer(x)[0], REFERENCES[name](mixer, x[0], causal), rtol=1e-9, atol=1e-10)
