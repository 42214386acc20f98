# %% [markdown]
# # Part 1: Understanding attention
#
# Four tokens with keys $K$ and values $V$ in three dimensions; attention without scaling, one head:
#
# $$O = \mathrm{softmax}(Q K^\top)\, V$$
#
# Each exercise requires a query (or a key) that gives a certain output. A solution counts when no number of the
# output is off by more than 0.05. The lab finds the best query and explains why it works; below each, the most
# common first answer is tried as well.
#
# The written questions are answered in
# [report.md](report.md).

# %%
import os
from pathlib import Path

import numpy as np

from attnlab import explore

FIGURES = Path(os.environ.get("ATTNLAB_OUT", "runs/attention-assignment"))
FIGURES.mkdir(parents=True, exist_ok=True)
ALLOWED = 0.05

example = explore.example("selection")
K, V = example.keys, example.values
print(f"K =\n{K}\nV =\n{V}")


def show(answer: explore.QueryExploration, figure: str) -> None:
    """Print the numbers and the reason, draw a figure, and check that the solution counts."""
    print(answer.title)
    for name, value in answer.summary():
        print(f"  {name}: {value}")
    print(f"  why: {answer.why}")
    assert answer.error <= ALLOWED
    answer.draw(FIGURES / figure)


def error(query: np.ndarray, target: np.ndarray, keys: np.ndarray = K) -> float:
    """How far the output for a query is from the target, in its worst component."""
    return float(np.abs(explore.attend(query, keys, V) - target).max())


# %% [markdown]
# ## 1.2 Selection
#
# 1. A query that returns $v_0$. The score of $k_0$ must lead; the length of the query decides how closely the
#    softmax follows.

# %%
selected = explore.select(K, V, index=0)
show(selected, "select.png")
print(f"a million times k0: error {error(1e6 * K[0], V[0]):.2g}")

# %% [markdown]
# How long must it be? The weight on $k_0$ against the length of the query, along $k_0$ and along the direction
# with the widest margin:

# %%
copying = explore.copy(K, index=0)
copying.draw(FIGURES / "copy.png")
for weight, length in copying.needed.items():
    print(f"weight {weight} on k0 needs a query of length {length:.2f} (along k0: {copying.own_needed[weight]:.2f})")

# %% [markdown]
# 2. A query matrix that returns all of $V$: one such query per row.

# %%
show(explore.identity(K, V), "identity.png")

# %% [markdown]
# ## 1.3 Averaging
#
# 1. A query that averages all values: equal scores for all keys, and nothing gives more equal scores than $q = 0$.
#    The mean of the keys, a common answer, is close to zero here and passes for that reason only.

# %%
show(explore.average(K, V), "average.png")
mean_key = K.mean(axis=0)
for scale in (1, 10):
    print(f"{scale} times the mean key: error {error(scale * mean_key, V.mean(axis=0)):.3f}")

# %% [markdown]
# 2. A query that averages $v_0$ and $v_1$: *equal* scores for two keys, well above the others. Along the mean of
#    the two keys the scores are only nearly equal, so a longer query is better at first and then worse.

# %%
both = explore.average_some(K, V, (0, 1))
show(both, "average-some.png")
for scale in (1, 5, 10, 100, 1e6):
    print(f"{scale:g} times the mean of k0 and k1: error {error(scale * K[:2].mean(axis=0), V[:2].mean(axis=0)):.4f}")

# %% [markdown]
# Which sets can be averaged at all? Those that are faces of the hull of the keys. With four keys in three
# dimensions, all; with a fifth key inside a square, not.

# %%
for name in ("selection", "square"):
    reached = explore.reach(explore.example(name).keys)
    print(f"{name}: {sum(subset.reachable for subset in reached.sets)} of {len(reached.sets)} sets can be averaged")
    reached.draw(FIGURES / f"reach-{name}.png")

# %% [markdown]
# ## 1.4 Interactions
#
# The query is that of 1.3.2. Only $k_2$ may change.
#
# 1. So that the output is the average of the first *three* values: the new key needs the score of the other two.

# %%
query = both.queries[0]
show(explore.replace_key(K, V, query, index=2, chosen=(0, 1, 2)), "three.png")

# %% [markdown]
# 2. So that the output is $v_2$, with a key of length 1. It should point along the query, and whether that is
#    enough depends on how long the query is:

# %%
show(explore.replace_key(K, V, query, index=2, chosen=(2,), unit=True), "third.png")
short = 10 * K[:2].mean(axis=0)
tried = explore.replace_key(K, V, short, index=2, chosen=(2,), unit=True)
print(f"with ten times the mean key as the query: error {tried.error:.3f}, more than {ALLOWED}")
assert tried.error > ALLOWED
