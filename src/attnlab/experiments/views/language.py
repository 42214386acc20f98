"""Language models on one text: the same budget, an audit for the future, perplexities prefix by prefix, lengths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from attnlab.attention import MixerShape, find_variant
from attnlab.attention.audit import sees_future
from attnlab.attention.audit.settings import settings_read
from attnlab.attention.registry import check_positions
from attnlab.base.console import clock
from attnlab.config.gpt import GPTSection, ShapeSection
from attnlab.config.language import DEFAULT_STEPS, LanguageConfig
from attnlab.config.recipe import Key
from attnlab.config.sections import split_list
from attnlab.evaluation.text import LEAK
from attnlab.experiments.config import CompareConfig, LanguageComparison
from attnlab.experiments.records import read_lengths
from attnlab.experiments.results import ComparisonResults, ExperimentRow
from attnlab.experiments.views.view import ONE_RATE, View, about_intervals, difference_title, run_label, signed
from attnlab.jobs.language import LENGTHS_FILE, LanguageJob, perplexity, shown_perplexity, steps_in
from attnlab.jobs.samples import compared_samples, first_samples
from attnlab.models.gpt import GPTShape, shape_of
from attnlab.report.page import Passage, Table, draw
from attnlab.report.series import FutureGap, LengthLosses, LossCurve
from attnlab.runs import read_metrics
from attnlab.stats.intervals import Mean, paired_difference, plain, plus_minus

AUDITED = 72  # tokens of the sequences in which the audit looks for the future
MEASURES = ("train_loss", "dev_loss", "sample_loss", "prefix_loss", "tokens_per_second", "step_memory_mib", "seconds")
POSITIVE = ("tokens_per_second", "step_memory_mib", "seconds")
MARK = "†"
NORMALISER = (
    "How a mask after the softmax leaks: the weight of key j in row t is exp(s_tj) / Σ exp(s_ti), and the sum runs "
    "over all positions i, the later ones included. Setting the later weights to zero afterwards removes their "
    "values but leaves their scores in the sum, so every output of row t is scaled by how well its query matches "
    "tokens it should not know. One number per head and layer is enough to ask whether the next token is an 'e'. In "
    "use there are no later tokens: the sum is smaller, the outputs larger than in training, and the answer is gone."
)


class LanguageView(View):
    undecided: ClassVar[Mapping[str, Any]] = {"steps": 1}

    def check(self, configs: Sequence[Any]) -> None:
        for config in configs:
            find_variant(config.model.attention)
            if config.model.positions != "preset":
                check_positions(config.model.positions)
        stream = LanguageJob(configs[0]).read()
        shape_of(configs[0].model, len(stream.vocabulary)).mixer()

    def decide(self, config: CompareConfig, job_config: LanguageConfig) -> dict[str, Any]:
        """Whether it sees the future, and its budget in steps."""
        budget = _of(config).budget
        future = sees_future(job_config.model.attention, _audited_shape(job_config))
        steps = budget.steps or DEFAULT_STEPS if budget.seconds is None else steps_in(budget.seconds, job_config)
        shape = replace(_audited_shape(job_config), dropout=_shape(job_config.model).mixer().dropout)
        read = settings_read(job_config.model.attention, shape)
        ignored = shape.dropout if "dropout" not in read else 0.0
        return {"future": future, "steps": steps, "ignored_dropout": ignored}

    def settings(self, config: CompareConfig, decided: Mapping[str, Any]) -> dict[Key, Any]:
        budget, steps = _of(config).budget, decided["steps"]
        every = f"{max(1, steps // budget.evaluations)} steps"
        return {
            ("training", "steps"): steps,
            ("training", "evaluate_every"): every,
            ("training", "save_every"): every,
            ("training", "log_every"): min(budget.log_every, steps),
        }

    def judged(self, row: ExperimentRow) -> ExperimentRow:
        """A variant that sees the future is not ranked: by its audit, or by what hiding the future costs it."""
        audit, cost = row.decided.get("future"), gap(row)
        if audit is None and cost.count and cost.mean > LEAK:
            audit = f"hiding the future raises its loss by {cost.mean:.3f}, though the audit of its mixer found nothing"
        return replace(row, objection=audit)

    def table(self, results: ComparisonResults, brief: bool = False) -> Table:
        """One row per variant, those that see the future marked; `brief` is without the training perplexity."""
        blocks = _of(results.config).measures.prefix_blocks
        header = [
            *("variant", "training loss", "training perplexity", "validation loss", "validation perplexity"),
            difference_title(results),
            f"honest perplexity (prefix by prefix, {blocks} blocks)",
        ]
        rows = [self._row(row, results, brief) for row in results.ordered]
        return Table(_brief(header, brief), [_brief(row, brief) for row in rows])

    def _row(self, row: ExperimentRow, results: ComparisonResults, brief: bool) -> list[str]:
        if not row.runs:
            return [row.label, "failed", *[""] * 5]
        mark, difference = f" {MARK}" if row.objection else "", results.difference(row)
        train, dev, prefix = (row.mean(f"{name}_loss") for name in ("train", "dev", "prefix"))
        return [
            run_label(row, results) + mark,
            plus_minus(train),
            shown_perplexity(train, brief),
            plus_minus(dev),
            shown_perplexity(dev, brief) + mark,
            "not comparable" + mark if row.objection else signed(difference) if difference else "",
            shown_perplexity(prefix, brief),
        ]

    def cost(self, results: ComparisonResults) -> Table:
        header = ["variant", "parameters", "steps", "tokens per second", "memory per step", "time per run"]
        rows = [
            [
                *(row.label, f"{row.parameters:,}", f"{row.steps:,}"),
                row.positive("tokens_per_second").text(",.0f"),
                f"{row.mean('step_memory_mib').mean:.1f} MiB",
                clock(row.mean("seconds").mean),
            ]
            for row in results.ordered
            if row.runs
        ]
        return Table(header, rows)

    def passages(self, root: Path, results: ComparisonResults) -> list[Passage | None]:
        from attnlab.report import language_figures

        curves = [curve for row in results.finished if (curve := loss_curve(row)).steps]
        caption = "Validation loss on a fixed part of the validation text; bands are 95% intervals over seeds."
        drawn = [draw(root, "paths", language_figures.paths(curves), caption)] if curves else []
        return [
            Passage("The way there", figures=drawn),
            self._future(root, results),
            self._longer(root, results),
            self._samples(results),
        ]

    def _future(self, root: Path, results: ComparisonResults) -> Passage | None:
        from attnlab.report import language_figures

        rows = [row for row in results.ordered if gap(row).count]
        if not rows and not self.notes(results):
            return None
        text = (
            "The usual perplexity trusts the model: all tokens of a block are in the input, and only the mask hides "
            "those to be predicted. The honest one does not: each token is predicted from its prefix alone, in a pass "
            f"of its own. For a causal model the two agree. {MARK} marks a variant that sees the future."
        )
        reference = results.reference
        header = [
            *("variant", "perplexity in one pass", "prefix by prefix", "the future was worth (loss)"),
            f"honest loss against {reference.label}" if reference else "honest loss against the first",
        ]
        lines = [
            [
                row.label + (f" {MARK}" if row.objection else ""),
                shown_perplexity(row.mean("sample_loss")),
                shown_perplexity(row.mean("prefix_loss")),
                f"{gap(row).mean:+.2g}",
                _honest_difference(row, results),
            ]
            for row in rows
        ]
        caption = f"Perplexity on {_of(results.config).measures.prefix_blocks} validation blocks, measured in two ways."
        drawn = [draw(root, "futures", language_figures.futures([future_gap(row) for row in rows]), caption)]
        tables, figures = ([Table(header, lines)], drawn) if rows else ([], [])
        return Passage("Who sees the future", [text, *self.notes(results)], tables, figures)

    def _longer(self, root: Path, results: ComparisonResults) -> Passage | None:
        from attnlab.report import language_figures

        config = _of(results.config)
        lengths, rows = config.measures.lengths, [row for row in results.ordered if tested_lengths(row)]
        if not lengths or not rows:
            return None
        trained = config.data.train_context or config.model.context
        lines = [[row.label, *[_at_length(row, length) for length in lengths]] for row in rows]
        text = (
            f"Trained on blocks of {trained} tokens, tested on the same validation text cut into longer ones. A model "
            "that carries over has a loss that does not rise: more context should help. Loss in nats per token."
        )
        shown = [length_losses(row, lengths) for row in results.rows if tested_lengths(row)]
        caption = "Loss by length of the test blocks, and by position in the longest one each variant can read."
        drawn = draw(root, "lengths", language_figures.lengths(shown, lengths, trained), caption)
        table = Table(["variant", *[f"{length} tokens" for length in lengths]], lines)
        return Passage("Longer than trained", [text], [table], [drawn])

    def _samples(self, results: ComparisonResults) -> Passage | None:
        """What every variant writes, one that sees the future too: while writing there is no future to see."""
        paths = {row.label + (f" {MARK}" if row.objection else ""): row.paths for row in results.ordered}
        return compared_samples(paths, _of(results.config).measures)

    def lead(self, results: ComparisonResults) -> str:
        config, shape = _of(results.config), _of(results.config).model
        budget = f"{config.budget.seconds:g} seconds of training steps" if config.budget.seconds else "the same steps"
        return (
            f"{len(results.rows)} variants × {config.compare.seeds} seeds on {results.data.get('train_tokens', 0):,} "
            f"training {config.data.tokens}: for a seed the same blocks in the same order, {budget}, {shape.layers} "
            f"layers, {shape.heads} heads, width {shape.width}, context {config.data.train_context or shape.context}."
        )

    def notes(self, results: ComparisonResults) -> list[str]:
        """For each variant that sees the future: the evidence, and its perplexity when it cannot."""
        sentences = [_leak(row, results) for row in results.finished if row.objection is not None]
        if any("normalises" in (row.objection or "") for row in results.finished):
            sentences.append(NORMALISER)
        return sentences

    def remarks(self, results: ComparisonResults) -> list[str]:
        """What is no objection, but a difference that a reader should know."""
        ignored = {row.label: share for row in results.finished if (share := row.decided.get("ignored_dropout"))}
        if not ignored:
            return []
        who = f"{', '.join(ignored)} {'does' if len(ignored) == 1 else 'do'}"
        return [
            f"{who} not use shape.dropout ({next(iter(ignored.values())):g}) inside the mixer; the dropout around it, "
            "on its output, is that of all variants."
        ]

    def settings_shown(self, config: CompareConfig) -> dict[str, Any]:
        """With the values of the preset in place of what was left out."""
        shown, own = super().settings_shown(config), _of(config)
        shape = _shape(own.model)
        names = [name for name in type(own.model).model_fields if name != "preset"]
        shown["model"] = {"preset": own.model.preset, **{name: getattr(shape, name) for name in names}}
        shown["data"]["train_context"] = own.data.train_context or own.model.context
        positions = split_list(own.compare.positions)
        shown["compare"]["positions"] = ",".join(shape.positions if name == "preset" else name for name in positions)
        return shown

    def cautions(self, results: ComparisonResults) -> list[str]:
        config, data = _of(results.config), results.data
        split = (
            f"Validation is the last {config.data.dev_share:.0%} of the text ({data.get('dev_tokens', 0):,} "
            f"{config.data.tokens}); nothing was chosen on it: the weights are those of the last step. Training loss "
            "is on a part of the training text of the same length, without dropout."
        )
        if data.get("unknown_share"):
            split += (
                f" {data['unknown_share']:.1%} of the validation tokens are unknown ones, which are predicted as such: "
                "perplexities compare within this report only."
            )
        return [f"{about_intervals(results)} {ONE_RATE}", split, *self.remarks(results)]

    def plain(self, row: ExperimentRow, results: ComparisonResults) -> dict[str, Any]:
        prefix, curve = results.difference(row, "prefix_loss"), loss_curve(row)
        measured = [name for name in MEASURES if row.by_seed(name)]
        losses = [name for name in measured if name.endswith("_loss")]
        lengths = _of(results.config).measures.lengths if tested_lengths(row) else []
        return {
            "attention": row.settings["model.attention"],
            "positions": _positions(results.config, row),
            "sees_future": row.objection,
            **{name: plain(_mean(row, name), row.by_seed(name)) for name in measured},
            **{name.replace("loss", "perplexity"): perplexity(row.mean(name).mean) for name in losses},
            "prefix_difference": plain(prefix) if prefix else None,
            "prefix_gap": plain(gap(row)) if gap(row).count else None,
            "curve": {
                "steps": curve.steps,
                "seconds": [round(seconds, 2) for seconds in curve.seconds],
                "losses": [plain(mean) for mean in curve.losses],
            },
            "samples": {str(seed): found for seed, found in first_samples(row.paths)},
            "lengths": {
                str(n): plain(at_length(row, n)) if at_length(row, n).count else tested_lengths(row)[0][n]
                for n in lengths
            },
        }


def _of(config: CompareConfig) -> LanguageComparison:
    assert isinstance(config, LanguageComparison)
    return config


def _shape(section: ShapeSection) -> GPTShape:
    """The shape of any variant, with the values of the preset; a vocabulary has no part in it."""
    return shape_of(GPTSection(**section.model_dump()), vocabulary=1)


def _positions(config: CompareConfig, row: ExperimentRow) -> str:
    name = str(row.settings["model.positions"])
    return _shape(_of(config).model).positions if name == "preset" else name


def _mean(row: ExperimentRow, name: str) -> Mean:
    return row.positive(name) if name in POSITIVE else row.mean(name)


def _brief(cells: list[str], brief: bool) -> list[str]:
    return cells[:2] + cells[3:] if brief else cells


def _audited_shape(config: LanguageConfig) -> MixerShape:
    """The mixer as it is in the model, on sequences short enough for an exact look."""
    shape = shape_of(config.model, vocabulary=1).mixer()
    return replace(shape, context=min(shape.context, AUDITED), dropout=0.0)


def gap(row: ExperimentRow) -> Mean:
    """The increase of the loss per token when the future is hidden, on the same blocks."""
    return paired_difference(row.by_seed("prefix_loss"), row.by_seed("sample_loss"))


def loss_curve(row: ExperimentRow) -> LossCurve:
    """The evaluations that all seeds have; seconds follow from the tokens read and the measured speed."""
    by_seed = {
        seed: {line["step"]: line for line in read_metrics(path / "metrics.jsonl") if _is_evaluation(line)}
        for seed, path in row.paths.items()
    }
    steps = sorted(set.intersection(*map(set, by_seed.values()))) if by_seed else []
    speeds = row.by_seed("tokens_per_second")
    seconds = [Mean(tuple(by_seed[seed][step]["tokens"] / speeds[seed] for seed in by_seed)).mean for step in steps]
    losses = [Mean(tuple(lines[step]["loss"] for lines in by_seed.values())) for step in steps]
    return LossCurve(row.label, steps, seconds, losses, leaks=row.objection is not None)


def _is_evaluation(line: Mapping[str, Any]) -> bool:
    return line.get("split") == "dev" and all(
        isinstance(line.get(name), int | float) for name in ("step", "tokens", "loss")
    )


def future_gap(row: ExperimentRow) -> FutureGap:
    usual, honest = row.by_seed("sample_loss"), row.by_seed("prefix_loss")
    pairs = [(perplexity(usual[seed]), perplexity(honest[seed])) for seed in usual]
    return FutureGap(row.label, pairs, leaks=row.objection is not None)


def tested_lengths(row: ExperimentRow) -> list[dict[int, dict[str, Any]]]:
    """By seed, what was measured at each length."""
    files = [path / LENGTHS_FILE for path in row.paths.values()]
    return [read_lengths(file) for file in files if file.exists()]


def at_length(row: ExperimentRow, length: int) -> Mean:
    return Mean(tuple(seed[length]["loss"] for seed in tested_lengths(row) if "loss" in seed[length]))


def length_losses(row: ExperimentRow, lengths: Sequence[int]) -> LengthLosses:
    """The lengths a variant can read, and its loss by position in the longest of them."""
    means = {length: at_length(row, length) for length in lengths}
    reached = {length: mean for length, mean in means.items() if mean.count}
    longest = max(reached, default=0)
    seeds = [seed[longest]["by_position"] for seed in tested_lengths(row) if longest in seed]
    by_position = [Mean(tuple(values)) for values in zip(*seeds, strict=True)]
    return LengthLosses(row.label, reached, by_position)


def _at_length(row: ExperimentRow, length: int) -> str:
    mean = at_length(row, length)
    return plus_minus(mean) if mean.count else f"cannot: {tested_lengths(row)[0][length]['reason']}"


def _leak(row: ExperimentRow, results: ComparisonResults) -> str:
    shown, reference = shown_perplexity, results.reference
    text = (
        f"{row.label} sees the future ({row.objection}). Its validation perplexity of {shown(row.mean('dev_loss'))} "
        "was measured while the tokens it had to predict were in its input: it is not comparable, and the variant is "
        "not ranked."
    )
    if gap(row).count:
        text += (
            f" Prefix by prefix, when those tokens do not exist, its perplexity is {shown(row.mean('prefix_loss'))}; "
            f"in one pass over the same blocks it was {shown(row.mean('sample_loss'))}."
        )
        if reference is not None and gap(reference).count:
            both = f"{shown(reference.mean('prefix_loss'))} and {shown(reference.mean('sample_loss'))}"
            text += f" For {reference.label} the two are {both}."
    return text


def _honest_difference(row: ExperimentRow, results: ComparisonResults) -> str:
    """Prefix by prefix all variants can be compared, those that see the future too."""
    difference = results.difference(row, "prefix_loss")
    return signed(difference) if difference is not None and difference.count else ""
