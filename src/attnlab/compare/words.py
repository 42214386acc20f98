"""The sentences of a comparison's report: what it shows, what it does not, and why."""

from __future__ import annotations

import math

from attnlab.compare.results import Results, Row
from attnlab.stats import Mean

NORMALISER = (
    "How a mask after the softmax leaks: the weight of key j in row t is exp(s_tj) / Σ exp(s_ti), and the sum runs "
    "over all positions i, the later ones included. Setting the later weights to zero afterwards removes their "
    "values but leaves their scores in the sum, so every output of row t is scaled by how well its query matches "
    "tokens it should not know. One number a head and layer is enough to ask whether the next token is an 'e'. In "
    "use there are no later tokens: the sum is smaller, the outputs larger than in training, and the answer is gone."
)


def plus_minus(mean: Mean, form: str = ".3f") -> str:
    """1.234 ± 0.004, or the bare number of a single run."""
    if not mean.count:
        return "not measured"
    return f"{mean.mean:{form}}" + (f" ± {mean.half_width:{form.lstrip('+')}}" if mean.half_width is not None else "")


def signed(mean: Mean) -> str:
    """+0.120 ± 0.019."""
    return plus_minus(mean, "+.3f")


def perplexity(mean: Mean, brief: bool = False) -> str:
    """exp of the mean loss with exp of its interval."""
    if not mean.count:
        return "not measured"
    ends = None if brief else mean.interval
    return _exp(mean.mean) + (f" ({_exp(ends[0])} to {_exp(ends[1])})" if ends else "")


def _exp(loss: float) -> str:
    value = math.exp(min(loss, 700.0))
    return f"{value:.3f}" if value < 1000 else f"{value:,.0f}" if value < 1e7 else f"{value:.3g}"


def verdicts(results: Results) -> list[str]:
    """What may be concluded, in sentences."""
    reference = results.reference
    if reference is None:
        return ["No variant can be compared: each of them failed or sees the future."]
    if not results.ranked:
        return [
            "There is one seed: no interval can be given, and the variants are not ranked. They stand in the order "
            "in which they were named; run the same comparison with --seeds 3 or more to learn which differences last."
        ]
    better, worse, alike = _sorted_out(results)
    sentences = []
    if (first := results.rows[0]) is not reference:
        why = "sees the future" if first.runs else "failed"
        sentences.append(f"{first.label}, named first, {why}: differences are to {reference.label} instead.")
    for rows, what in ((better, "a lower"), (worse, "a higher")):
        if rows:
            named = "; ".join(f"{row.label} by {signed(difference)}" for row, difference in rows)
            sentences.append(f"With {what} validation loss than {reference.label}, seed by seed: {named}.")
    if alike:
        named = ", ".join(row.label for row, _ in alike)
        sentences.append(f"Not to be told apart from {reference.label} with these seeds: {named}.")
    return sentences


def _sorted_out(results: Results) -> tuple[list[tuple[Row, Mean]], ...]:
    pairs = [(row, difference) for row in results.ordered if row.comparable
             and (difference := results.difference(row)) is not None]  # fmt: skip
    sure = [(row, difference) for row, difference in pairs if difference.differs_from_zero]
    better = [(row, difference) for row, difference in sure if difference.mean < 0]
    worse = [(row, difference) for row, difference in sure if difference.mean > 0]
    return better, worse, [pair for pair in pairs if not pair[1].differs_from_zero]


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
    text = (
        f"{config.compare.seeds} seeds a variant. Intervals (±) are 95% after Student over seeds, each on its own: "
        "of twenty such statements one is expected to be wrong. They speak about other seeds on this text with these "
        "settings, not about other texts, sizes or budgets. One learning rate for all may suit some better than others."
    )
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
    return [text, split]


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
