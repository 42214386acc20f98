# %% [markdown]
# # Part 2: A mini Transformer
#
# First attention from its pieces, equal to PyTorch's; then a small GPT with it, and an experiment: what
# happens when the causal mask sets weights to 0 *after* the softmax instead of scores to −∞ before it?
#
# Text: tiny Shakespeare from the folder named by `ATTNLAB_DATA`, or else the lab's synthetic world. `TOKENS=words` (the
# default, as in the assignment) or `TOKENS=characters`. Full size: 3 seeds of 400 steps for each mask. With
# `ATTNLAB_QUICK=1` everything runs in seconds, at a size that only shows that it runs.

# %%
import math
import statistics
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import attnlab as lab
from attnlab.attention import Cache, MixerShape
from attnlab.check.reference import torch_attention
from record import FIGURES, QUICK, choices, count, numbers, save, setting
from starter import continuation, loss_as_they_come, loss_with_another_future, read_texts, train
from write_up.pictures import draw_masks

[TOKENS] = choices("TOKENS", ("words", "characters"), "words")
SEEDS = setting("SEEDS", [0, 1, 2], numbers, quick=[0])
STEPS = setting("STEPS", 400, count, quick=6)
BATCH, RATE = (4 if QUICK else 32), 2e-3
LAYERS, HEADS, WIDTH, CONTEXT = (1, 2, 16, 24) if QUICK else (2, 4, 128, 100)

# %% [markdown]
# ## 2.1 Attention from scratch
#
# B is the batch, `n_tok` the tokens of a sequence, `n_embd` the width, split into `n_heads` heads of
# `n_embd / n_heads` features.
#
# Step 0: the projections.

# %%


def init_qkv_proj(n_embd: int) -> tuple[nn.Linear, nn.Linear, nn.Linear]:
    """W_Q, W_K, W_V, each with a bias: (B, n_tok, n_embd) → (B, n_tok, n_embd)."""
    return nn.Linear(n_embd, n_embd), nn.Linear(n_embd, n_embd), nn.Linear(n_embd, n_embd)


# %% [markdown]
# Step 1: the core components.

# %%


def pairwise_similarities(Q: Tensor, K: Tensor) -> Tensor:
    """A = Q Kᵀ: the dot product of every query with every key, (..., n_tok, n_tok)."""
    return torch.matmul(Q, torch.transpose(K, -2, -1))


def attn_scaled(A: Tensor, n_embd: int, n_heads: int) -> Tensor:
    """A / √(n_embd / n_heads): a sum of that many products has a deviation that grows with its root."""
    return A * (n_embd / n_heads) ** -0.5


def attn_softmax(A: Tensor) -> Tensor:
    """A' = softmax(A) over the keys, the last dimension: the weights of each query sum to one."""
    return F.softmax(A, dim=-1)


def compute_outputs(A: Tensor, V: Tensor) -> Tensor:
    """O = A' V: each output is the mean of the values by the weights of its query."""
    return torch.matmul(A, V)


# %% [markdown]
# Step 2: causal masking.

# %%


def make_causal_mask(n_tok: int) -> Tensor:
    """True where a token (row) may look at another (column): at itself and at those before, (n_tok, n_tok)."""
    return torch.tril(torch.ones(n_tok, n_tok, dtype=torch.bool))


def apply_causal_mask(mask: Tensor, A: Tensor) -> Tensor:
    """−∞ in place of hidden scores: exp(−∞) = 0 adds nothing to the sum by which the softmax divides."""
    return torch.where(mask.to(A.device), A, -math.inf)


# %% [markdown]
# Step 3: several heads.

# %%


def split_heads_qkv(Q: Tensor, K: Tensor, V: Tensor, n_heads: int) -> tuple[Tensor, Tensor, Tensor]:
    return split_heads(Q, n_heads), split_heads(K, n_heads), split_heads(V, n_heads)


def split_heads(Q: Tensor, n_heads: int) -> Tensor:
    """(B, n_tok, n_embd) → (B, n_heads, n_tok, n_embd / n_heads): each head its own batch of matrices."""
    return Q.reshape(Q.shape[0], Q.shape[1], n_heads, -1).transpose(1, 2)


def merge_heads(y: Tensor) -> Tensor:
    """The inverse: (B, n_heads, n_tok, n_embd / n_heads) → (B, n_tok, n_embd)."""
    return y.transpose(1, 2).reshape(y.shape[0], y.shape[2], -1)


# %% [markdown]
# All of it together, without the output projection, which is part of the model:

# %%


def self_attention(Q: Tensor, K: Tensor, V: Tensor, n_heads: int = 1, causal: bool = True) -> Tensor:
    """Causal multi-head scaled dot-product self-attention: three (B, n_tok, n_embd) → (B, n_tok, n_embd)."""
    assert Q.shape == K.shape == V.shape
    B, n_tok, n_embd = Q.shape
    if n_heads > 1:
        Q, K, V = split_heads_qkv(Q, K, V, n_heads)
    A = pairwise_similarities(Q, K)
    A = attn_scaled(A, n_embd, n_heads)
    if causal:
        A = apply_causal_mask(make_causal_mask(n_tok), A)
    A = attn_softmax(A)
    y = compute_outputs(A, V)
    if n_heads > 1:
        y = merge_heads(y)
    assert y.shape == (B, n_tok, n_embd)
    return y


# %% [markdown]
# The three tests, against `torch.nn.functional.multi_head_attention_forward`. `attnlab check A2S2.py` checks
# the functions one by one, in the same way as any student's file.

# %%
torch.manual_seed(0)
Q, K, V = (torch.randn(3, 10, 32) for _ in "qkv")
tests: dict[str, float] = {}


def run_test(name: str, n_heads: int, causal: bool) -> None:
    difference = self_attention(Q, K, V, n_heads, causal) - torch_attention(Q, K, V, n_heads, causal)
    tests[name] = float(difference.abs().max())
    print(f"test {name}: largest difference {tests[name]:.1g}")
    assert tests[name] < 1e-5


# %%
run_test("1, one head, no mask", n_heads=1, causal=False)

# %%
run_test("2, one head, causal", n_heads=1, causal=True)

# %%
run_test("3, four heads, causal", n_heads=4, causal=True)

# %% [markdown]
# ## 2.2 An experiment: where the mask is applied
#
# The same with the mask after the softmax, as the assignment suggests: weights of later tokens are set to 0 when they
# have already been counted in the sum.

# %%


def apply_naive_causal_mask(mask: Tensor, A: Tensor) -> Tensor:
    return torch.where(mask.to(A.device), A, 0.0)


def naive_self_attention(Q: Tensor, K: Tensor, V: Tensor, n_heads: int = 1) -> Tensor:
    """Three (B, n_tok, n_embd) → (B, n_tok, n_embd), with the mask behind the softmax."""
    n_tok, n_embd = Q.shape[1:]
    Q, K, V = split_heads_qkv(Q, K, V, n_heads)
    A = attn_softmax(attn_scaled(pairwise_similarities(Q, K), n_embd, n_heads))
    A = apply_naive_causal_mask(make_causal_mask(n_tok), A)
    return merge_heads(compute_outputs(A, V))


# %% [markdown]
# To use them in the lab's GPT they become *mixers*, which map (B, T, C) to (B, T, C): such a class is handed in where
# the lab takes the name of an attention.

# %%


class Mixer(nn.Module):
    """The projections, one of the two attentions above and the output projection."""

    bidirectional = False
    attend: Callable[..., Tensor]

    def __init__(self, shape: MixerShape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.queries, self.keys, self.values = init_qkv_proj(shape.width)
        self.output = nn.Linear(shape.width, shape.width)

    def forward(self, x: Tensor, padding: Tensor | None = None, cache: Cache | None = None) -> Tensor:
        if cache is not None:  # decoding: run the whole sequence again for each new token
            return cache.replay(self.forward, x, padding)
        # Padding comes after the real tokens, which do not look ahead: the causal mask is enough.
        return self.output(self.attend(self.queries(x), self.keys(x), self.values(x), self.heads))


class NormalMask(Mixer):
    attend = staticmethod(self_attention)


class NaiveMask(Mixer):
    attend = staticmethod(naive_self_attention)


MASKS = {"normal": NormalMask, "naive": NaiveMask}

# %% [markdown]
# Before training: do they pass the lab's audit?

# %%
audits = {}
for name in MASKS:
    report = lab.audit(MASKS[name], cost=False, half=False)
    failed = [f"{finding.check}: {finding.evidence}" for finding in report.findings if finding.passed is False]
    print(f"{name}: {'passes all checks' if report.passed else 'fails: ' + '; '.join(failed)}")
    assert report.sees_future == (name == "naive")
    audits[name] = failed

# %% [markdown]
# ### Training
#
# The same documents in the same order from the same initial weights; only the mask differs. The runner, like the
# course's, is in [starter.py](starter.py). A sequence has at most 100 tokens.
#
# The validation loss is computed as usual, with a whole document in the model at once. Does it matter what follows?
# So the held-out documents are also scored with the tokens after each position taken from another document; and token
# by token, as in *use*, where nothing follows. Then a sample of each.

# %%
texts = read_texts(TOKENS, CONTEXT, QUICK)
data = texts.facts()
print(f"{data['text']}: {data['training']} documents, {data['held_out']} held out, {data['vocabulary']} {TOKENS}")


def measure(mask: str, seed: int) -> dict[str, object]:
    """One model: its losses by step, at the end and without its own future, and what it writes."""
    start = time.perf_counter()
    gpt = lab.GPT(MASKS[mask], layers=LAYERS, heads=HEADS, width=WIDTH, context=CONTEXT, dropout=0.0)
    model, curve = train(gpt, texts, seed, STEPS, BATCH, RATE)
    losses = {
        "last_training": statistics.mean(curve.training[-max(1, STEPS // 10) :]),
        "last_validation": curve.validation[-1][1],
        "another_future": loss_with_another_future(model, texts),
        "as_they_come": loss_as_they_come(model, texts),
    }
    sample, seconds = continuation(model, texts), time.perf_counter() - start
    shown = ", ".join(f"{name.replace('_', ' ')} {math.exp(loss):,.2f}" for name, loss in losses.items())
    print(f"{mask}, seed {seed}: perplexity {shown} ({seconds:.0f} s)\n  {sample}")
    parameters = sum(parameter.numel() for parameter in model.parameters())
    curves = {"training": curve.training, "validation": curve.validation}
    return {**curves, **losses, "sample": sample, "seconds": seconds, "parameters": parameters}


runs = {mask: {str(seed): measure(mask, seed) for seed in SEEDS} for mask in MASKS}

# %% [markdown]
# ### What it means
#
# The model with the correct mask has the same loss in all three ways: it never looks ahead. The naive one has three
# losses, and the one in the usual table is not comparable: the sum that normalises its weights runs over the whole
# text, so the "validation" loss is that of a model with information about the next token. With another future the
# hint is wrong; one token at a time there is none, and every weight is larger than in training. The six figures and
# the table over seeds are in [the report](report.md#2-2).

# %%
results = {
    "tests": tests,
    "audits": audits,
    "data": data,
    "settings": {
        "layers": LAYERS,
        "heads": HEADS,
        "width": WIDTH,
        "context": CONTEXT,
        "steps": STEPS,
        "batch": BATCH,
        "rate": RATE,
        "seeds": SEEDS,
    },
    "runs": runs,
}
save(f"A2S2-{TOKENS}", results)
draw_masks(results, FIGURES)

# %% [markdown]
# The other suggestions of the assignment (another similarity, shared projections, positions, networks for Q, K, V, AFT,
# Fastformer) are variants with a name: `attnlab attention` lists them, `attnlab audit NAME` checks one, and
# `attnlab compare --attention vanilla,NAME --corpus FILE --seeds 3` compares them as above. From Python that is
# `lab.audit(NAME)` and `lab.compare(lab.GPT(layers=2), FILE, attention=["vanilla", NAME], seeds=3)`, which also take a
# class such as `NormalMask`.
