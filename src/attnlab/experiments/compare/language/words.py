"""The sentences of a comparison of language models: perplexities, and who sees the future."""

from __future__ import annotations

import math

from attnlab.experiments.compare import words
from attnlab.experiments.compare.results import Results
from attnlab.stats.intervals import Mean

NORMALISER = (
    "How a mask after the softmax leaks: the weight of key j in row t is exp(s_tj) / Σ exp(s_ti), and the sum runs "
    "over all positions i, the later ones included. Setting the later weights to zero afterwards removes their "
    "values but leaves their scores in the sum, so every output of row t is scaled by how well its query matches "
    "tokens it should not know. One number a head and layer is enough to ask whether the next token is an 'e'. In "
    "use there are no later tokens: the sum is smaller, the outputs larger than in training, and the answer is gone."
)


def perplexity(mean: Mean, brief: bool = False) -> str:
    """exp of the mean loss with exp of its interval."""
    if not mean.count:
        return "not measured"
    ends = None if brief else mean.interval
    return _exp(mean.mean) + (f" ({_exp(ends[0])} to {_exp(ends[1])})" if ends else "")


def _exp(loss: float) -> str:
    value = math.exp(min(loss, 700.0))
    return f"{value:.3f}" if value < 1000 else f"{value:,.0f}" if value < 1e7 else f"{value:.3g}"


def leaks(results: Results) -> list[str]:
    """For each variant that sees the future: the evidence and what its perplexity is when it cannot."""
    sentences = []
    for row in results.finished:
        if row.sees_future is None:
            continue
        text = (
            f"{row.label} sees the future ({row.sees_future}). Its validation perplexity of "
            f"{perplexity(row.mean('dev_loss'))} was measured while the tokens it had to predict lay in its input: it "
            "is not comparable, and the variant is not ranked."
        )
        if row.gap.count:
            text += (
                f" Prefix by prefix, when those tokens do not exist, its perplexity is "
                f"{perplexity(row.mean('prefix_loss'))}; in one pass over the same blocks it was "
                f"{perplexity(row.mean('sample_loss'))}."
            )
        reference = results.reference
        if row.gap.count and reference is not None and reference.gap.count:
            text += (
                f" For {reference.label} the two are {perplexity(reference.mean('prefix_loss'))} and "
                f"{perplexity(reference.mean('sample_loss'))}."
            )
        sentences.append(text)
    if any("normalises" in (row.sees_future or "") for row in results.finished):
        sentences.append(NORMALISER)
    return sentences


def cautions(results: Results) -> list[str]:
    """What the numbers do not say."""
    config, data = results.config, results.data
    level = config.data.tokens
    split = (
        f"Validation is the last {config.data.dev_share:.0%} of the text ({data.get('dev_tokens', 0):,} {level}); "
        "nothing was chosen on it: the weights are those of the last step. Training loss is on a part of the training "
        "text as long, without dropout."
    )
    if data.get("unknown_share"):
        split += (
            f" {data['unknown_share']:.1%} of the validation tokens are unknown ones, which are predicted as such: "
            "perplexities compare within this report only."
        )
    return [f"{words.seeds(results)} {words.ONE_RATE}", split]


def budget(results: Results) -> str:
    """What every run was given."""
    config = results.config
    tokens = f"{results.data.get('train_tokens', 0):,} training {config.data.tokens}"
    shape = config.model
    given = f"{config.budget.seconds:g} seconds of training steps" if config.budget.seconds else "the same steps"
    return (
        f"{len(results.rows)} variants × {config.compare.seeds} seeds on {tokens}: for a seed the same blocks in the "
        f"same order, {given}, {shape.layers} layers, {shape.heads} heads, width {shape.width}, "
        f"context {config.data.train_context or shape.context}."
    )
