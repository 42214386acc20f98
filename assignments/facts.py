"""Every number on these pages, computed by the lab. `python assignments/facts.py` prints them all.

A page links a number to a fact with a comment that is not rendered:

    0.0201<!-- = all.mean_key -->     the number shown is the fact, rounded to the digits shown
    1e-12<!-- > two.ours -->          the number shown is larger than the fact
    1.0<!-- < ids.shift -->           the number shown is smaller than the fact
    52.7%<!-- = results:FILE.json:key.key -->   the number is in results/FILE.json beside the page
    228.15<!-- quoted -->             the number is from the document
    5,000<!-- given -->               the number is a setting, chosen for the computation

A fact is a number, or a list of numbers that the page shows in `[1, 2, 3]`. Facts about real data are in
`data_facts.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import exp, log, sqrt

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import binomtest, fisher_exact, norm

from attnlab import explore
from attnlab.explore.attend import Array, largest_difference, softmax

Fact = Callable[[], object]
FACTS: dict[str, Fact] = {}

SELECTION, ARGMAX = explore.example("selection"), explore.example("argmax")
UNEQUAL = explore.example("unequal")
K, V = SELECTION.keys, SELECTION.values
TWO = V[:2].mean(axis=0)  # the mean of the first two values
MEAN_KEY = K[:2].mean(axis=0)  # the query direction of the report in section 1.3


def fact(name: str, compute: Fact) -> None:
    FACTS[name] = cache(compute)


def error(query: Array, target: Array, keys: Array = K) -> float:
    return largest_difference(explore.attend(query, keys, V), target)


def with_third_key(key: Array) -> Array:
    return np.vstack([K[:2], key, K[3:]])


# Selecting and averaging with the four keys in three dimensions.
copying = explore.copy(K, 0)
fact("select.ours", lambda: explore.select(K, V, 0).error)
fact("select.length", lambda: explore.select(K, V, 0).lengths[0])
fact("select.million", lambda: error(1e6 * K[0], V[0]))
fact("select.margin", lambda: copying.best_margin)
fact("select.own_margin", lambda: copying.own_margin)
fact("select.needed_99", lambda: copying.needed[0.99])
fact("select.norm_3", lambda: explore.select(K, V, 0, norm=3.0).error)
fact("identity.ours", lambda: explore.identity(K, V).error)
fact("identity.million", lambda: max(error(1e6 * K[i], V[i]) for i in range(4)))
fact("unequal.wrong", lambda: softmax(10 * UNEQUAL.keys @ UNEQUAL.keys[0])[1])
fact("unequal.ours", lambda: explore.select(UNEQUAL.keys, UNEQUAL.values, 0).error)
fact("all.zero", lambda: explore.average(K, V).error)
fact("all.mean_key", lambda: error(K.mean(axis=0), V.mean(axis=0)))
fact("all.mean_key_weights", lambda: softmax(K @ K.mean(axis=0)))
fact("all.mean_key_scores", lambda: K @ K.mean(axis=0))
fact("all.ten_times", lambda: error(10 * K.mean(axis=0), V.mean(axis=0)))
fact("two.ours", lambda: explore.average_some(K, V, (0, 1)).error)
fact("two.length", lambda: explore.average_some(K, V, (0, 1)).lengths[0])
fact("two.mean_10", lambda: error(10 * MEAN_KEY, TWO))
fact("two.mean_10_weights", lambda: softmax(10 * K @ MEAN_KEY))
fact("two.sum_10", lambda: error(20 * MEAN_KEY, TWO))
fact("two.mean_million", lambda: error(1e6 * MEAN_KEY, TWO))
fact("two.square_0", lambda: K[0] @ K[0])
fact("two.square_1", lambda: K[1] @ K[1])
best_scale = minimize_scalar(lambda scale: error(scale * MEAN_KEY, TWO), bounds=(1, 100), method="bounded")
fact("two.best_scale", lambda: best_scale.x)
fact("two.best_scale_error", lambda: best_scale.fun)
fact("reach.sets", lambda: len(explore.reach(K).sets))
fact("reach.reachable", lambda: sum(subset.reachable for subset in explore.reach(K).sets))
fact("reach.square_sets", lambda: len(explore.reach(explore.example("square").keys).sets))
fact(
    "reach.square_reachable",
    lambda: sum(subset.reachable for subset in explore.reach(explore.example("square").keys).sets),
)

# Replacing the third key.
QUERY = explore.average_some(K, V, (0, 1)).queries[0]
fact("three.ours", lambda: explore.replace_key(K, V, QUERY, 2, (0, 1, 2)).error)
fact("three.mean_key", lambda: error(10 * MEAN_KEY, V[:3].mean(axis=0), with_third_key(MEAN_KEY)))
fact("three.query_as_key", lambda: error(10 * MEAN_KEY, V[:3].mean(axis=0), with_third_key(10 * MEAN_KEY)))
fact("three.best_for_their_query", lambda: explore.replace_key(K, V, 10 * MEAN_KEY, 2, (0, 1, 2)).error)


def unit_key(query: Array) -> explore.QueryExploration:
    return explore.replace_key(K, V, query, 2, (2,), unit=True)


fact("unit.mean_10_weight", lambda: unit_key(10 * MEAN_KEY).weights[0][2])
fact("unit.mean_10", lambda: unit_key(10 * MEAN_KEY).error)
fact("unit.sum_10", lambda: unit_key(20 * MEAN_KEY).error)
fact("unit.ours", lambda: unit_key(QUERY).error)
fact("unit.needed_scale", lambda: brentq(lambda s: unit_key(s * MEAN_KEY).error - 0.05, 5, 100))

# Argmax.
hard = explore.argmax(ARGMAX.keys, ARGMAX.values, ARGMAX.query)
fact("argmax.scores", lambda: hard.scores)
fact("argmax.output", lambda: hard.output)
fact("argmax.soft_output", lambda: hard.soft_output)
fact("argmax.soft_weights", lambda: hard.soft_weights)
for part in "qKV":
    fact(f"argmax.hard_gradient_{part}", lambda part=part: hard.hard_gradients[part])
for part in "qK":
    fact(f"argmax.soft_gradient_{part}", lambda part=part: hard.soft_gradients[part])


# Orthonormal keys: the weight of each of the two keys in q = β(k_a + k_b), among n.
def pair_weight(beta: float, count: int) -> float:
    keys = np.eye(count)
    return float(softmax(beta * keys @ keys[:2].sum(axis=0))[0])


def pair_rest(beta: float, count: int) -> float:
    keys = np.eye(count)
    return float(softmax(beta * keys @ keys[:2].sum(axis=0))[2:].sum())


fact("pair.beta_1", lambda: pair_weight(1, 4))
fact("pair.others_beta_1", lambda: pair_rest(1, 4))
fact("pair.scaled", lambda: pair_weight(1 / sqrt(4), 4))
fact("pair.scaled_64", lambda: pair_weight(1 / sqrt(64), 64))
fact("pair.uniform_64", lambda: 1 / 64)
fact("pair.beta_10_rest", lambda: pair_rest(10, 4))
fact("pair.beta_40_rest", lambda: pair_rest(40, 4))
fact("copy.orthonormal_99", lambda: explore.copy(np.eye(4), 0).own_needed[0.99])
extraction = [
    explore.extract(*explore.random_subspaces(d, m, p, seed=d), of_mean=mean)
    for d, m, p in ((2, 1, 1), (8, 3, 2), (40, 15, 25), (120, 7, 90))
    for mean in (False, True)
]
fact("extract.error", lambda: max(answer.error for answer in extraction))

# Keys that vary in length.
noisy = explore.noise()
fact("noise.ratio", lambda: noisy.ratio)
fact("noise.ratio_forward", lambda: noisy.ratio_forward)
fact("noise.one_share", lambda: noisy.one[:, 0].mean())
fact("noise.one_deviation", lambda: noisy.one[:, 0].std())
fact("noise.two_share_forward", lambda: noisy.two[noisy.forward][:, 0].mean())
fact("noise.two_deviation_forward", lambda: noisy.two[noisy.forward][:, 0].std())
fact("noise.middle", lambda: (np.abs(noisy.one[:, 0] - 0.5) < 0.25).mean())
fact("noise.forward", lambda: norm.cdf(sqrt(2)))
small = explore.noise(stretch=0.0)
fact("noise.small", lambda: max(np.abs(small.one[:, :2] - 0.5).max(), np.abs(small.two[:, :2] - 0.5).max()))

# Self-attention without and with K, Q, V.
construction = explore.construct((1.0, 3.0, 5.0))
fact("construct.c2_beta_1", lambda: construction.c2_to_ub[0])
fact("construct.c2_beta_3", lambda: construction.c2_to_ub[1])
fact("construct.c1_beta_3", lambda: construction.c1_to_ub_uc[1])
fact("construct.c1_beta_5", lambda: construction.c1_to_ub_uc[2])
fact("construct.plain_beta_5", lambda: construction.plain_to_ua[2])

# Masking after the softmax.
fact("mask.future_wins", lambda: softmax(np.array([-20.0, -12.0, 20.0, 25.0]))[2:])
fact("mask.past_naive", lambda: softmax(np.array([-20.0, -12.0, 20.0, 25.0]))[:2].sum())
fact("mask.past_causal", lambda: softmax(np.array([-20.0, -12.0])))
fact("mask.first_example", lambda: softmax(np.array([2.2, 1.2])))
fact("mask.leak_before", lambda: softmax(np.array([0.0, 0.0]))[0])
fact("mask.leak_after", lambda: softmax(np.array([0.0, 5.0]))[0])
# Row sums of a naively masked attention matrix with the scores 0 1; 2 0: the first row leaks the future.
fact("mask.row_sums", lambda: np.tril(softmax(np.array([[0.0, 1.0], [2.0, 0.0]]))).sum(axis=1))
fact("mask.loss_normal", lambda: log(949.59))
fact("mask.loss_naive", lambda: log(894.52))
fact("mask.loss_validation", lambda: log(228.15))
fact("mask.rounded", lambda: exp(5.43))
fact("mask.rounded_low", lambda: exp(5.425))
fact("mask.rounded_high", lambda: exp(5.435))
fact("mask.grid", lambda: 0.01 / (exp(5.44) - exp(5.43)))
# Two runs whose perplexities have a standard deviation of 1% agree to the second decimal this often.
fact("mask.coincidence", lambda: 0.01 / (sqrt(2 * np.pi) * sqrt(2) * 0.01 * 228.15))

# Accuracies as counts of correct answers.
BOOLQ_DEV, BOOLQ_TEST = 3270, 9427 - 8000
fact("boolq.test_size", lambda: BOOLQ_TEST)
fact("boolq.dev_right", lambda: 0.6217125382262997 * BOOLQ_DEV)
for run, accuracy in {
    "1": 0.6271899088997898,
    "2": 0.6194814295725298,
    "3": 0.6187806587245971,
    "4": 0.5998598458304134,
    "bert": 0.6923615977575333,
}.items():
    fact(f"boolq.test_right_{run}", lambda accuracy=accuracy: accuracy * BOOLQ_TEST)
fact("boolq.bert_dev_right", lambda: 0.7091743119266055 * BOOLQ_DEV)
MAJORITY = 2033 / 3270
# A test set drawn without replacement from the 9,427 has this standard deviation in its share of "yes".
fact("boolq.split_deviation", lambda: sqrt(MAJORITY * (1 - MAJORITY) / BOOLQ_TEST * 8000 / 9426))
fact("boolq.lowest_in_deviations", lambda: (MAJORITY - 0.5998598458304134) / FACTS["boolq.split_deviation"]())
fact("boolq.majority", lambda: MAJORITY)
fact("boolq.bert_interval", lambda: _interval(2319, BOOLQ_DEV))


def _interval(right: int, count: int) -> list[float]:
    """Wilson's 95% interval for an accuracy."""
    interval = binomtest(right, count).proportion_ci(method="wilson")
    return [float(interval.low), float(interval.high)]


fact("ten.interval_9", lambda: _interval(9, 10))
fact("ten.interval_6", lambda: _interval(6, 10))
fact("ten.interval_8", lambda: _interval(8, 10))
fact("ten.nine_against_six", lambda: fisher_exact([[9, 1], [6, 4]]).pvalue)
fact("sst2.sentences", lambda: 6920 + 872 + 1821)
fact("sst2.test_right", lambda: 0.9330038440417353 * 1821)
fact("sst2.interval", lambda: _interval(1699, 1821))
fact("sst2.half_width_93", lambda: 1.96 * sqrt(0.93 * 0.07 / 872))

# Trained parameters, for a model of width 768 (6 layers: DistilBERT).
WIDTH, LAYERS, PREFIX = 768, 6, 128
fact("tuned.head", lambda: 2 * WIDTH + 2)
fact("tuned.distilbert_head", lambda: WIDTH**2 + WIDTH + 2 * WIDTH + 2)
fact("tuned.prompt", lambda: 130 * WIDTH + 2)
fact("tuned.prefix", lambda: 2 * LAYERS * PREFIX * WIDTH + 2 * WIDTH + 2)

# What GPT-2 reads in BERT's ids: its first 256 entries are the bytes, printable ones first.
BYTES = [*range(33, 127), *range(161, 173), *range(174, 256)]
fact("ids.cls", lambda: BYTES[101])
fact("ids.sep", lambda: BYTES[102])


@cache
def mixed_checkpoints() -> dict[str, float]:
    """Run a small GPT-2 on the output of a BERT tokenizer, with and without the segment ids."""
    import torch
    from transformers import GPT2Config, GPT2Model

    torch.manual_seed(0)
    model = GPT2Model(GPT2Config(n_layer=1, n_head=2, n_embd=16, vocab_size=128, bos_token_id=0, eos_token_id=0)).eval()
    encoded = {"input_ids": torch.tensor([[101, 4, 106, 102]]), "token_type_ids": torch.zeros(1, 4, dtype=torch.long)}
    with torch.no_grad():
        given = model(**encoded).last_hidden_state
        without = model(input_ids=encoded["input_ids"]).last_hidden_state
    return {"outputs": len(given[0]), "shift": float((given - without).abs().max())}


fact("ids.outputs", lambda: mixed_checkpoints()["outputs"])
fact("ids.shift", lambda: mixed_checkpoints()["shift"])


# Multiplications of one layer for a sequence of length T, all heads together.
def dot_product_scores(length: int, width: int) -> int:
    """XQ and XK, then all pairs."""
    return 2 * length * width**2 + length**2 * width


def synthesized_scores(length: int, width: int) -> int:
    """XA, then B."""
    return length * width**2 + length**2 * width


fact("synthesizer.dot", lambda: dot_product_scores(128, 256))
fact("synthesizer.own", lambda: synthesized_scores(128, 256))
fact("synthesizer.doubling_dot", lambda: dot_product_scores(2 * 10**6, 256) / dot_product_scores(10**6, 256))
fact("synthesizer.doubling_own", lambda: synthesized_scores(2 * 10**6, 256) / synthesized_scores(10**6, 256))

# Masked words: of all tokens, with 15% chosen.
fact("mlm.masked", lambda: 0.15 * 0.8)
fact("mlm.random", lambda: 0.15 * 0.1)
fact("mlm.kept", lambda: 0.15 * 0.1)
fact("chance.two", lambda: 1 / 2)
fact("chance.five", lambda: 1 / 5)
fact("loss.chance_two", lambda: -log(1 / 2))
fact("loss.chance_five", lambda: -log(1 / 5))
fact("loss.vocabulary", lambda: log(30522))


if __name__ == "__main__":
    for name, compute in FACTS.items():
        value = compute()
        shown = np.array2string(np.asarray(value), precision=6) if np.ndim(value) else f"{float(value):.6g}"  # type: ignore[arg-type]
        print(f"{name:32} {shown}")
