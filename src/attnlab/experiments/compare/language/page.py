"""The passages that only a comparison of language models has."""

from __future__ import annotations

from pathlib import Path

from attnlab.base.formats import clock
from attnlab.experiments.compare import words
from attnlab.experiments.compare.language import figures
from attnlab.experiments.compare.language.rows import LanguageRow
from attnlab.experiments.compare.language.words import leaks, perplexity
from attnlab.experiments.compare.results import Results
from attnlab.report.numbers import plus_minus
from attnlab.report.page import Figure, Passage, Table, draw

MARK = "†"


def quality(results: Results, brief: bool = False) -> Table:
    """One row a variant, those that see the future marked; `brief` fits a terminal."""
    reference = results.reference
    header = [
        "variant",
        "training loss",
        "training perplexity",
        "validation loss",
        "validation perplexity",
        f"difference to {reference.label}" if reference else "difference",
        f"honest perplexity (prefix by prefix, {results.config.measures.prefix_blocks} blocks)",
    ]
    rows = [_quality_row(row, results, brief) for row in results.ordered]
    return Table(_short(header), [_short(row) for row in rows]) if brief else Table(header, rows)


def _short(cells: list[str]) -> list[str]:
    """Without the training perplexity, the least of a row's numbers."""
    return cells[:2] + cells[3:]


def _quality_row(row: LanguageRow, results: Results, brief: bool) -> list[str]:
    if not row.runs:
        return [row.label, "failed", *[""] * 5]
    mark = f" {MARK}" if row.sees_future else ""
    difference = results.difference(row)
    train, dev, prefix = (row.mean(f"{name}_loss") for name in ("train", "dev", "prefix"))
    return [
        words.named(row, results) + mark,
        plus_minus(train),
        perplexity(train, brief),
        plus_minus(dev),
        perplexity(dev, brief) + mark,
        "not comparable" + mark if row.sees_future else words.signed(difference) if difference else "",
        perplexity(prefix, brief),
    ]


def cost(results: Results) -> Table:
    header = ["variant", "parameters", "steps", "tokens a second", "memory of a step", "time a run"]
    rows = [
        [
            row.label,
            f"{row.parameters:,}",
            f"{row.steps:,}",
            plus_minus(row.mean("tokens_per_second"), ",.0f"),
            f"{row.mean('step_memory_mib').mean:.1f} MiB",
            clock(row.mean("seconds").mean),
        ]
        for row in results.ordered
        if row.runs
    ]
    return Table(header, rows)


def path_figures(root: Path, results: Results) -> list[Figure]:
    rows = [row for row in results.finished if row.curve.steps]
    if not rows:
        return []
    caption = "Validation loss on a fixed part of the validation text; bands are 95% intervals over seeds."
    return [draw(root, "paths", figures.paths(rows), caption)]


def future(root: Path, results: Results) -> Passage | None:
    measured = [row for row in results.ordered if row.gap.count]
    if not measured and not leaks(results):
        return None
    told = [
        "The usual perplexity trusts the model: all tokens of a block lie in the input, and only the mask keeps those "
        "to be predicted apart. The honest one does not: each token is predicted from its prefix alone, in a pass of "
        f"its own. For a causal model the two agree. {MARK} marks a variant that sees the future."
    ]
    rows = [
        [
            row.label + (f" {MARK}" if row.sees_future else ""),
            perplexity(row.mean("sample_loss")),
            perplexity(row.mean("prefix_loss")),
            f"{row.gap.mean:+.2g}",
            _honest_difference(row, results),
        ]
        for row in measured
    ]
    reference = results.reference
    header = [
        "variant",
        "perplexity in one pass",
        "prefix by prefix",
        "the future was worth (loss)",
        f"honest loss against {reference.label}" if reference else "honest loss against the first",
    ]
    blocks = results.config.measures.prefix_blocks
    caption = f"Perplexity on {blocks} validation blocks, asked for in two ways."
    return Passage(
        "Who sees the future",
        told + leaks(results),
        [Table(header, rows)] if rows else [],
        [draw(root, "futures", figures.futures(measured), caption)] if measured else [],
    )


def _honest_difference(row: LanguageRow, results: Results) -> str:
    """Prefix by prefix all variants can be compared, those that see the future too."""
    difference = results.difference(row, "prefix_loss")
    return words.signed(difference) if difference is not None and difference.count else ""


def longer(root: Path, results: Results) -> Passage | None:
    tested = results.config.measures.lengths
    rows = [row for row in results.ordered if row.lengths]
    if not tested or not rows:
        return None
    trained = results.config.data.train_context or results.config.model.context
    table = Table(
        ["variant", *[f"{length} tokens" for length in tested]],
        [[row.label, *[_at_length(row, length) for length in tested]] for row in rows],
    )
    told = [
        f"Trained on blocks of {trained} tokens, tested on the same validation text cut into longer ones. A model that "
        "carries over has a loss that does not rise: more context should help. Loss in nats a token."
    ]
    drawn = figures.lengths([row for row in results.rows if row.lengths], tested, trained)
    caption = "Loss by length of the test blocks, and by position in the longest one each variant can read."
    return Passage("Longer than trained", told, [table], [draw(root, "lengths", drawn, caption)])


def _at_length(row: LanguageRow, length: int) -> str:
    found = row.at_length(length)
    if found.count:
        return plus_minus(found)
    return f"cannot: {next(iter(row.lengths.values()))[length]['reason']}"
