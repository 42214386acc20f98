# %% [markdown]
# # Part 1: Understanding attention
#
# Four tokens with keys $K$ and values $V$ in three dimensions; attention without scaling, one head:
#
# $$O = \mathrm{softmax}(Q K^\top)\, V$$
#
# Each exercise requires a query (or a key) that gives a certain output. A solution counts when no number of the
# output is off by more than 0.05. The explanations are in [report.md](report.md), section 1.

# %%
import torch
from torch import Tensor

import attnlab as lab
from record import FIGURES, save

K = torch.tensor(
    [[0.47, 0.65, 0.60], [0.64, 0.50, -0.59], [-0.03, -0.48, -0.88], [0.43, -0.83, 0.35]], dtype=torch.float64
)
V = torch.tensor(
    [[-0.07, -0.88, 0.47], [0.37, -0.93, -0.07], [-0.25, -0.75, 0.61], [0.94, 0.20, 0.28]], dtype=torch.float64
)
ALLOWED = 0.05
S = 40.0  # the "large number" of the hint: exp(-40) is nothing beside 1

# %% [markdown]
# The three steps of dot-product attention, for one query (3,) or several (m, 3), and the error as the document
# reports it: the largest difference of any component.

# %%


def attention(Q: Tensor, K: Tensor, V: Tensor) -> Tensor:
    """O = A' V with A' = softmax(A) and A = Q Kᵀ."""
    A = Q @ K.T  # scores: one row per query, one column per key
    powers = torch.exp(A - A.amax(dim=-1, keepdim=True))  # a shift of a row changes no weight and avoids overflow
    weights = powers / powers.sum(dim=-1, keepdim=True)
    return weights @ V


def error(output: Tensor, target: Tensor) -> float:
    return float((output - target).abs().max())


# %% [markdown]
# A query sees the keys only through its scores $K q$, and the softmax sees only their differences. So a query with
# the scores $s$ up to a constant $c$ is enough: $K q - c = s$. With four keys in three dimensions these are four
# equations for four unknowns $(q, c)$, and they have a solution for every $s$ if the keys do not lie in a plane.

# %%


def query_for(scores: Tensor, K: Tensor) -> Tensor:
    """The query (3,) whose scores (4,) are these up to a constant."""
    system = torch.cat([K, -torch.ones(len(K), 1, dtype=K.dtype)], dim=1)  # (4, 4): three columns for q, one for c
    return torch.linalg.solve(system, scores)[:-1]


results: list[dict[str, object]] = []


def answer(exercise: str, what: str, found: Tensor, query: Tensor, target: Tensor, keys: Tensor = K) -> None:
    """Check that the output for the query counts, and keep the query or key that was found."""
    output = attention(query, keys, V)
    off = error(output, target)
    print(f"{exercise} {what} = {found.numpy().round(3).tolist()}\n  error: {off:.2g}")
    assert off <= ALLOWED
    results.append({"exercise": exercise, "what": what, "found": found.tolist(), "error": off})


# %% [markdown]
# ## 1.2 Selection
#
# 1. A query that returns $v_0$: the score of $k_0$ leads all others by $S$.

# %%
selecting = query_for(torch.tensor([S, 0, 0, 0], dtype=K.dtype), K)
answer("1.2.1", "q", selecting, selecting, V[0])

# %% [markdown]
# 2. A query matrix that returns all of $V$: one such query per row.

# %%
identity = torch.stack([query_for(scores, K) for scores in S * torch.eye(4, dtype=K.dtype)])
answer("1.2.2", "Q", identity, identity, V)

# %% [markdown]
# ## 1.3 Averaging
#
# 1. A query that averages all values: equal scores for all keys. $q = 0$ gives them, whatever the keys.

# %%
zero = torch.zeros(3, dtype=K.dtype)
answer("1.3.1", "q", zero, zero, V.mean(dim=0))

# %% [markdown]
# 2. A query that averages $v_0$ and $v_1$: *equal* scores for two keys, well above the others.

# %%
both = query_for(torch.tensor([S, S, 0, 0], dtype=K.dtype), K)
answer("1.3.2", "q", both, both, V[:2].mean(dim=0))

# %% [markdown]
# ## 1.4 Interactions
#
# The query is that of 1.3.2. Only $k_2$ may change.
#
# 1. So that the output is the average of the first *three* values: the new key needs the score of the other two. The
#    mean of the two keys has it, because a dot product is linear.

# %%


def with_third_key(key: Tensor) -> Tensor:
    return torch.stack([K[0], K[1], key, K[3]])


third = (K[0] + K[1]) / 2
answer("1.4.1", "k2", third, both, V[:3].mean(dim=0), with_third_key(third))

# %% [markdown]
# 2. So that the output is $v_2$, with a key of length 1: of all such keys the one along the query has the largest
#    score, $\lVert q \rVert$. It must exceed that of $k_0$ and $k_1$ by enough.

# %%
unit = both / both.norm()
answer("1.4.2", "k2", unit, both, V[2], with_third_key(unit))

# %% [markdown]
# ## The answers printed in the document
#
# The same measure for the solution that the document includes, and what happens to it at other scales.

# %%
mean_key, two = K.mean(dim=0), K[:2].mean(dim=0)
submitted = {
    "1.2.1, a million times k0": error(attention(1e6 * K[0], K, V), V[0]),
    "1.2.2, a million times K": error(attention(1e6 * K, K, V), V),
    "1.3.1, the mean key": error(attention(mean_key, K, V), V.mean(dim=0)),
    "1.3.1, ten times the mean key": error(attention(10 * mean_key, K, V), V.mean(dim=0)),
    "1.3.2, ten times the mean of k0 and k1": error(attention(10 * two, K, V), V[:2].mean(dim=0)),
    "1.3.2, ten times their sum": error(attention(20 * two, K, V), V[:2].mean(dim=0)),
    "1.3.2, a million times their mean": error(attention(1e6 * two, K, V), V[:2].mean(dim=0)),
    "1.4.2, q/|q| with ten times the mean": error(attention(10 * two, with_third_key(two / two.norm()), V), V[2]),
}
for what, off in submitted.items():
    print(f"{what}: error {off:.2g}{'' if off <= ALLOWED else ', too much'}")

# %% [markdown]
# ## Beyond these four keys
#
# Which sets of values can be averaged at all depends on the keys: those that are faces of their hull. The lab answers
# it for any keys, and finds the *shortest* query for a weight: with four keys in three dimensions every set can be
# averaged; with a fifth key inside a square, not.

# %%
for name in ("selection", "square"):
    reached = lab.explore.reach(lab.explore.example(name).keys)
    print(f"{name}: {sum(one.reachable for one in reached.sets)} of {len(reached.sets)} sets can be averaged")
reached.draw(FIGURES / "reach-square.png")
copying = lab.explore.copy(K.numpy(), index=0)
copying.draw(FIGURES / "copy.png")
for weight, length in copying.needed.items():
    print(f"weight {weight} on k0 needs a query of length {length:.2f} (along k0: {copying.own_needed[weight]:.2f})")

# %%
save("A2S1", {"exercises": results, "submitted": submitted})
