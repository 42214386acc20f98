"""Mistakes planted in a right file, each with the cause that is to be named, and right files of other styles.

A cause of None means that none may be named: the numbers alone do not tell it.
"""

from __future__ import annotations

# (the body of the student's function, the expected mistake)
IN_PIECES = {
    "pairwise_similarities(Q, K)": [
        ("return torch.einsum('...qd,...kd->...kq', Q, K)", "query-key-order"),
        ("return torch.matmul(Q, K)", "no-transpose"),
        ("return torch.matmul(Q, K.transpose(1, 2))", "transpose-middle-axes"),
        ("return torch.matmul(Q, K.transpose(0, 1))", "transpose-first-axes"),
        ("return torch.matmul(Q.transpose(-1, -2), K)", "feature-products"),
        ("return torch.mul(Q, K)", "elementwise"),
        ("return (Q / K.shape[-1] ** 0.5) @ K.mT", "scaled-twice"),
    ],
    "attn_scaled(A, n_embd, n_heads)": [
        ("return A * n_embd ** -0.5", "scale-full-width"),
        ("return A", "scale-missing"),
        ("return A * n_heads / n_embd", "scale-no-root"),
        ("return A * torch.sqrt(torch.tensor(n_embd / n_heads))", "scale-multiplied"),
        ("return A / n_embd", "scale-full-width-no-root"),
        ("return A / n_embd ** 0.5 * n_heads", "scale-heads-twice"),
        ("return A * (n_embd * n_heads) ** -0.5", "scale-heads-multiplied"),
        ("return A / int((n_embd / n_heads) ** 0.5)", "scale-integer-division"),
        ("return A / A.shape[-1] ** 0.5", "scale-by-tokens"),
    ],
    "attn_softmax(A)": [
        ("return F.softmax(A, dim=-2)", "softmax-over-queries"),
        ("return F.softmax(A, dim=0)", "softmax-over-batch"),
        ("return F.softmax(A, dim=1)", "softmax-dim-1"),
        ("return F.softmax(A, dim=2)", "softmax-dim-2"),
        ("return torch.exp(A) / torch.exp(A).sum((-1, -2), keepdim=True)", "softmax-over-everything"),
        ("return torch.exp(A)", "softmax-not-normalised"),
        ("return F.log_softmax(A, dim=-1)", "softmax-log"),
        ("return 1 / (1 + torch.exp(-A))", "softmax-sigmoid"),
    ],
    "compute_outputs(A, V)": [
        ("return torch.einsum('...ji,...jd->...id', A, V)", "weights-transposed"),
        ("return torch.matmul(V, A)", "values-first"),
        ("return torch.matmul(V.mT, A)", "values-transposed"),
    ],
    "make_causal_mask(n_tok)": [
        ("return torch.triu(torch.ones(n_tok, n_tok))", "mask-transposed"),
        ("return torch.triu(torch.ones(n_tok, n_tok), diagonal=1)", "mask-inverted"),
        ("return torch.arange(n_tok)[:, None] > torch.arange(n_tok)", "mask-no-diagonal"),
        ("return torch.tril(torch.ones(n_tok, n_tok), 1)", "mask-one-too-far"),
        ("return torch.ones(n_tok, n_tok)", "mask-all-ones"),
        ("return nn.Transformer.generate_square_subsequent_mask(n_tok)", "mask-additive"),
        ("return torch.tril(torch.ones(1, 1, n_tok, n_tok))", "mask-extra-axes"),
    ],
    "apply_causal_mask(mask, A)": [
        ("return A * mask", "masked-with-zero"),
        ("return A.masked_fill(mask == 1, float('-inf'))", "mask-read-inverted"),
        ("A.masked_fill(mask == 0, float('-inf')); return A", "mask-ignored"),
        ("return A.masked_fill(mask.transpose(0, 1) == 0, float('-inf'))", "mask-read-transposed"),
        ("return A + torch.where(mask == 1, 1.0, 0.0)", "mask-added"),
        ("return A + (mask == 0) * float('-inf')", "mask-nan"),
        ("return A.masked_fill(mask == 0, 1e-9)", "masked-with-zero"),
        ("return A.masked_fill(mask == 0, float('inf'))", "masked-with-plus-infinity"),
    ],
    "split_heads(Q, n_heads)": [
        ("B, T, C = Q.shape; return Q.view(B, n_heads, T, C // n_heads)", "split-without-transpose"),
        ("B, T, C = Q.shape; return Q.view(B, T, n_heads, C // n_heads)", "split-not-transposed"),
        ("B, T, C = Q.shape; return Q.view(B, T, -1, n_heads).permute(0, 3, 1, 2)", "split-interleaved"),
        ("B, T, C = Q.shape; return Q.view(B, T, n_heads, -1).permute(0, 2, 3, 1)", "split-features-before-tokens"),
        ("return torch.stack(Q.split(Q.shape[-1] // n_heads, dim=-1))", "split-heads-first"),
        ("return Q", "split-ignored"),
    ],
    "split_heads_qkv(Q, K, V, n_heads)": [
        ("return split_heads(Q, n_heads), split_heads(V, n_heads), split_heads(K, n_heads)", "qkv-order"),
        ("return tuple(split_heads(Q, n_heads) for _ in range(3))", "qkv-repeated"),
        ("return split_heads(Q, n_heads), split_heads(K, n_heads), V", "qkv-one-unsplit"),
    ],
    "merge_heads(y)": [
        ("B, H, T, D = y.shape; return y.reshape(B, T, H * D)", "merge-without-transpose"),
        ("return y.permute(0, 2, 1, 3)", "merge-not-reshaped"),
        ("B, H, T, D = y.shape; return y.permute(0, 2, 3, 1).reshape(B, T, H * D)", "merge-interleaved"),
        ("return torch.mean(y, dim=1)", "merge-averaged"),
        ("return y", "merge-ignored"),
    ],
}
PIECE_CASES = [(head, body, key) for head, mutants in IN_PIECES.items() for body, key in mutants]

# (the replaced code in the right self_attention, its replacement, the expected mistake)
IN_THE_WHOLE = [
    (
        "A = apply_causal_mask(mask, A)\n    A = attn_softmax(A)",
        "A = attn_softmax(A).masked_fill(mask == 0, 0)\n    else:\n        A = attn_softmax(A)",
        "mask-after-softmax",
    ),
    (
        "A = apply_causal_mask(mask, A)\n    A = attn_softmax(A)",
        "A = apply_causal_mask(mask, attn_softmax(A))\n    else:\n        A = attn_softmax(A)",
        None,
    ),
    ("if causal:", "if False:", "mask-missing"),
    ("if causal:", "if True:", "mask-always"),
    ("if causal:", "if not causal:", "mask-flag-inverted"),
    ("mask = make_causal_mask(n_tok)", "mask = make_causal_mask(n_tok).T", "mask-read-transposed"),
    ("mask = make_causal_mask(n_tok)", "mask = make_causal_mask(n_tok) == 0", None),
    ("A = apply_causal_mask(mask, A)", "A = A * mask", "masked-with-zero"),
    ("attn_scaled(A, n_embd, n_heads)", "attn_scaled(A, n_embd, 1)", "scale-full-width"),
    ("attn_scaled(A, n_embd, n_heads)", "A", "scale-missing"),
    ("attn_scaled(A, n_embd, n_heads)", "attn_scaled(A, Q.size(-1), n_heads)", "scale-heads-twice"),
    ("attn_scaled(A, n_embd, n_heads)", "A / Q.size(-1)", "scale-no-root"),
    ("if n_heads > 1:", "if False:", "heads-only-in-scale"),
    ("n_embd = Q.size()", "n_embd = Q.size()\n    n_heads = 1", "heads-ignored"),
    ("pairwise_similarities(Q, K)", "pairwise_similarities(K, Q)", "query-key-order"),
    ("pairwise_similarities(Q, K)", "pairwise_similarities(Q, Q)", "key-is-query"),
    ("compute_outputs(A, V)", "compute_outputs(A, K)", "value-is-key"),
    ("compute_outputs(A, V)", "compute_outputs(A.mT, V)", "weights-transposed"),
    ("attn_softmax(A)", "F.softmax(A, dim=-2)", "softmax-over-queries"),
    ("y = merge_heads(y)", "y = y.reshape(B, n_tok, n_embd)", "merge-without-transpose"),
    (
        "Q, K, V = split_heads_qkv(Q, K, V, n_heads)",
        "Q, K, V = (x.reshape(B, n_heads, n_tok, -1) for x in (Q, K, V))",
        "split-without-transpose",
    ),
]

SPLIT = "Q, K, V = split_heads_qkv(Q, K, V, n_heads)"
SOFTMAX = "A = attn_softmax(A)"
SCALED = "A = attn_scaled(A, n_embd, n_heads)"
IN_THE_WHOLE += [
    (SPLIT, "Q, K = split_heads(Q, n_heads), split_heads(K, n_heads)", "qkv-one-unsplit"),
    (SPLIT, "K, V = split_heads(K, n_heads), split_heads(V, n_heads)", "qkv-one-unsplit"),
    (SPLIT, "Q, V, K = split_heads_qkv(Q, K, V, n_heads)", "key-value-swapped"),
    ("y = merge_heads(y)", "y = y.mean(1)", "merge-averaged"),
    ("pairwise_similarities(Q, K)", "pairwise_similarities(K, K)", "query-is-key"),
    ("pairwise_similarities(Q, K)", "pairwise_similarities(Q, V)", "key-is-value"),
    ("compute_outputs(A, V)", "compute_outputs(A, Q)", "value-is-query"),
    (SCALED, SCALED + "\n    " + SCALED, "scaled-twice"),
    (SCALED, "A = A * (n_embd / n_heads) ** 0.5", "scale-multiplied"),
    (SOFTMAX, "A = torch.sigmoid(A)", "softmax-sigmoid"),
    (SOFTMAX, "A = A.exp()", "softmax-not-normalised"),
    ("A = apply_causal_mask(mask, A)", "apply_causal_mask(mask, A)", "mask-missing"),
    ("mask = make_causal_mask(n_tok)", "mask = torch.ones(n_tok, n_tok).tril(-1)", None),  # a row of −∞: NaN
    ("mask = make_causal_mask(n_tok)", "mask = torch.ones(n_tok, n_tok).tril(1)", "mask-one-too-far"),
    (SOFTMAX, "A = A / A.norm(dim=-1, keepdim=True)", None),
    ("return y", "return y + 0.125", None),
    ("return y", "return 2 * y.flip(1)", None),
]

# Two at once in self_attention: two replacements, and the causes that must both be named.
TWO_AT_ONCE = [
    ((SCALED, "pass"), (SOFTMAX, "A = F.softmax(A, dim=-2)"), {"scale-missing", "softmax-over-queries"}),
    (
        (SCALED, "A = A / n_embd ** 0.5"),
        ("y = merge_heads(y)", "y = y.reshape(B, n_tok, n_embd)"),
        {"scale-full-width", "merge-without-transpose"},
    ),
    ((SCALED, "pass"), ("if causal:", "if False:"), {"scale-missing", "mask-missing"}),
    (
        ("A = apply_causal_mask(mask, A)", "A = A * mask"),
        ("compute_outputs(A, V)", "compute_outputs(A, K)"),
        {"masked-with-zero", "value-is-key"},
    ),
    (
        (SPLIT, "Q, K, V = (x.reshape(B, n_heads, n_tok, -1) for x in (Q, K, V))"),
        (SCALED, "pass"),
        {"split-without-transpose", "scale-missing"},
    ),
    (
        ("mask = make_causal_mask(n_tok)", "mask = make_causal_mask(n_tok).T"),
        (SCALED, "pass"),
        {"mask-read-transposed", "scale-missing"},
    ),
]

# Two at once in different pieces: each is named where it is.
TWO_PIECES = [
    {
        "attn_scaled": ("A / n_embd ** 0.5", "scale-full-width"),
        "attn_softmax": ("A.softmax(-2)", "softmax-over-queries"),
    },
    {"merge_heads": ("y.mean(1)", "merge-averaged"), "attn_scaled": ("A", "scale-missing")},
]
HEADS = {
    "attn_scaled": "attn_scaled(A, n_embd, n_heads)",
    "attn_softmax": "attn_softmax(A)",
    "merge_heads": "merge_heads(y)",
}

# What depends on the call: the function, its source, the cause.
UNSTEADY = [
    ("attn_softmax", "def attn_softmax(A):\n    return F.dropout(A.softmax(-1), 0.3)\n", "random"),
    ("compute_outputs", "DROP = nn.Dropout(0.2)\ndef compute_outputs(A, V):\n    return DROP(A) @ V\n", "random"),
    ("attn_scaled", "def attn_scaled(A, n_embd, n_heads):\n    return A + torch.randn_like(A)\n", "random"),
    (
        "make_causal_mask",
        "MASK = None\ndef make_causal_mask(n_tok):\n    global MASK\n    if MASK is None:\n"
        "        MASK = torch.ones(n_tok, n_tok).tril()\n    return MASK\n",
        "keeps-state",
    ),
    (
        "attn_softmax",
        "CALLS = []\ndef attn_softmax(A):\n    CALLS.append(1)\n    return A.softmax(-1) * len(CALLS)\n",
        "keeps-state",
    ),
    (
        "attn_scaled",
        "SCALE = []\ndef attn_scaled(A, n_embd, n_heads):\n    SCALE.append((n_embd / n_heads) ** 0.5)\n"
        "    return A / SCALE[0]\n",
        "keeps-state",
    ),
    (
        "merge_heads",
        "LAST = {}\ndef merge_heads(y):\n    y = y.transpose(1, 2).flatten(-2)\n"
        "    y = y + LAST.get('y', 0)\n    LAST['y'] = y.detach().mean()\n    return y\n",
        "keeps-state",
    ),
]

# What is right for some sizes only, or gives no numbers: no cause is known, and none is invented.
UNKNOWN = [
    ("attn_softmax", "def attn_softmax(A):\n    return A.softmax(-1) * (A.shape[-1] in (5, 7, 9))\n"),
    ("attn_softmax", "def attn_softmax(A):\n    return A.softmax(-1) * float('nan')\n"),
    ("attn_softmax", "def attn_softmax(A):\n    return torch.log(A) / torch.log(A).sum(-1, keepdim=True)\n"),
    ("attn_softmax", "def attn_softmax(A):\n    return torch.softmax(A * 1.5, -1)\n"),
    ("pairwise_similarities", "def pairwise_similarities(Q, K):\n    return (Q @ K.mT) ** 2\n"),
    ("merge_heads", "def merge_heads(y):\n    return y.transpose(1, 2).flatten(-2).flip(0)\n"),
    ("compute_outputs", "def compute_outputs(A, V):\n    return A @ V * float('nan')\n"),
    ("make_causal_mask", "def make_causal_mask(n_tok):\n    return torch.ones(5, 5).tril()\n"),
]

# Right in another style: each exchanges functions of the right file. None may get a remark.
STYLES = {
    "einsum": {
        "pairwise_similarities": "def pairwise_similarities(q, k):\n"
        "    return torch.einsum('...id,...jd->...ij', q, k)\n",
        "compute_outputs": "def compute_outputs(w, v):\n    return torch.einsum('...ij,...jd->...id', w, v)\n",
    },
    "softmax by hand": {
        "attn_softmax": "def attn_softmax(A):\n    e = torch.exp(A - A.amax(-1, keepdim=True))\n"
        "    return e / e.sum(-1, keepdim=True)\n"
    },
    "logsumexp": {"attn_softmax": "def attn_softmax(A):\n    return (A - A.logsumexp(-1, keepdim=True)).exp()\n"},
    "lambdas": {
        "pairwise_similarities": "pairwise_similarities = lambda Q, K: Q @ K.mT\n",
        "attn_softmax": "attn_softmax = lambda A: A.softmax(dim=-1)\n",
    },
    "partial": {"attn_softmax": "from functools import partial\nattn_softmax = partial(F.softmax, dim=-1)\n"},
    "boolean mask": {
        "make_causal_mask": "def make_causal_mask(n_tok):\n"
        "    return torch.tril(torch.ones(n_tok, n_tok, dtype=bool))\n",
        "apply_causal_mask": "def apply_causal_mask(mask, A):\n    return torch.where(mask, A, float('-inf'))\n",
    },
    "positions compared": {
        "make_causal_mask": "def make_causal_mask(n):\n    i = torch.arange(n)\n    return i[:, None] >= i[None, :]\n"
    },
    "integer mask": {
        "make_causal_mask": "def make_causal_mask(n):\n    return torch.tril(torch.ones(n, n, dtype=torch.int64))\n"
    },
    "logarithm of the mask": {
        "apply_causal_mask": "def apply_causal_mask(mask, A):\n    return A + torch.log(mask.to(A.dtype))\n"
    },
    "chunks": {
        "split_heads": "def split_heads(Q, n_heads):\n    return torch.stack(Q.chunk(n_heads, dim=-1), dim=1)\n",
        "merge_heads": "def merge_heads(y):\n    return torch.cat(y.unbind(1), dim=-1)\n",
    },
    "permute": {
        "split_heads": "def split_heads(Q, n_heads):\n    b, t, c = Q.shape\n"
        "    return Q.reshape(b, t, n_heads, c // n_heads).permute(0, 2, 1, 3)\n",
        "merge_heads": "def merge_heads(y):\n    b, h, t, d = y.shape\n"
        "    return y.permute(0, 2, 1, 3).reshape(b, t, h * d)\n",
    },
    "scale before the product": {
        "self_attention": "def self_attention(Q, K, V, n_heads=1, causal=True):\n"
        "    B, T, C = Q.shape\n    d = C // n_heads\n"
        "    q, k, v = (x.view(B, T, n_heads, d).transpose(1, 2) for x in (Q, K, V))\n"
        "    A = (q / d ** 0.25) @ (k / d ** 0.25).mT\n"
        "    if causal:\n        A = A.masked_fill(~torch.ones(T, T, dtype=bool).tril(), -torch.inf)\n"
        "    return (A.softmax(-1) @ v).transpose(1, 2).reshape(B, T, C)\n"
    },
    "typed and checked": {
        "attn_scaled": "def attn_scaled(A: torch.Tensor, n_embd: int, n_heads: int) -> torch.Tensor:\n"
        "    assert n_embd % n_heads == 0\n    return A / math.sqrt(n_embd // n_heads)\n"
    },
    "a class behind the functions": {
        "compute_outputs": "class Steps:\n    @staticmethod\n    def outputs(A, V):\n        return torch.bmm("
        "A.flatten(0, -3), V.flatten(0, -3)).view(*A.shape[:-1], V.shape[-1])\n"
        "compute_outputs = Steps.outputs\n"
    },
    "helpers and extra defaults": {
        "pairwise_similarities": "def swap(x):\n    return x.transpose(-2, -1)\n"
        "def pairwise_similarities(Q, K, *, verbose=False):\n    return torch.matmul(Q, swap(K))\n"
    },
    "a cache that is right": {
        "make_causal_mask": "from functools import lru_cache\n@lru_cache\ndef make_causal_mask(n_tok):\n"
        "    return torch.ones(n_tok, n_tok).tril()\n"
    },
    "autograd function": {
        "attn_scaled": "class Scale(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, A, s):\n"
        "        ctx.s = s\n        return A * s\n    @staticmethod\n    def backward(ctx, g):\n"
        "        return g * ctx.s, None\ndef attn_scaled(A, n_embd, n_heads):\n"
        "    return Scale.apply(A, (n_heads / n_embd) ** 0.5)\n"
    },
    "addition of an additive mask": {
        "apply_causal_mask": "def apply_causal_mask(mask, A):\n"
        "    bias = torch.zeros_like(mask, dtype=A.dtype).masked_fill_(mask == 0, -torch.inf)\n    return A + bias\n"
    },
}
