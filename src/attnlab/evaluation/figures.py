"""The figures of an evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib import pyplot as plt
from matplotlib.ticker import MaxNLocator, PercentFormatter

from attnlab.report.figures import COLOURS, STYLE
from attnlab.stats.intervals import Proportion

INK = "#4a5568"


def reliability(groups: Sequence[Mapping[str, Any]]) -> Any:
    """Accuracy by confidence with intervals, and below it the number of answers per bin."""
    with plt.rc_context(STYLE):
        figure, (upper, lower) = plt.subplots(
            2, 1, figsize=(6.4, 4.6), sharex=True, gridspec_kw={"height_ratios": (3, 1)}
        )
        upper.plot([0, 1], [0, 1], color=INK, linestyle="--", linewidth=1, label="perfect calibration")
        shares = [Proportion(group["right"], group["count"]) for group in groups]
        xs, ys = [group["confidence"] for group in groups], [each.share for each in shares]
        errors = [
            [max(0.0, each.share - each.interval[0]) for each in shares],  # rounding can leave -1e-17
            [max(0.0, each.interval[1] - each.share) for each in shares],
        ]
        upper.errorbar(xs, ys, errors, fmt="o", color=COLOURS[0], capsize=4, label="answers, by confidence")
        upper.set(title="Reliability of the confidence", ylabel="accuracy", ylim=(-0.03, 1.03), xlim=(0, 1))
        upper.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        upper.legend(loc="best")
        for group in groups:
            middle, count = (group["low"] + group["high"]) / 2, group["count"]
            lower.bar(middle, count, width=0.09, color=COLOURS[0], alpha=0.6)
            lower.annotate(
                str(count), (middle, count), textcoords="offset points", xytext=(0, 2), ha="center", fontsize=8
            )
        lower.yaxis.set_major_locator(MaxNLocator(nbins=3, integer=True))
        lower.set(xlabel="confidence", ylabel="answers", ylim=(0, max(group["count"] for group in groups) * 1.25))
        return figure


def coverage(curve: Mapping[str, Sequence[float]], baseline: float | None) -> Any:
    """Accuracy of the answers given when only the most confident are given."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(6.4, 3.4))
        axes.plot(curve["answered"], curve["accuracy"], color=COLOURS[0], linewidth=1.8, label="most confident answers")
        axes.axhline(curve["accuracy"][-1], color=INK, linestyle="--", linewidth=1, label="all answers")
        if baseline is not None:
            axes.axhline(baseline, color=COLOURS[1], linestyle=":", linewidth=1.4, label="most common place")
        axes.set(
            title="Accuracy when only confident answers are given",
            xlabel="share of questions answered",
            ylabel="accuracy",
            xlim=(0, 1),
            ylim=(0, 1.03),
        )
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.legend(loc="best")
        return figure


def known_and_unseen(known: Sequence[float], unseen: Mapping[str, Sequence[float]]) -> Any:
    """Confidence for known people and, by kind, for unseen names."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(6.4, 4.0))
        edges = [n / 20 for n in range(21)]
        groups = {"known people": known} | {f"unseen, {kind}": confidence for kind, confidence in unseen.items()}
        for (name, values), colour in zip(groups.items(), COLOURS, strict=False):
            if values:
                weights = [1 / len(values)] * len(values)
                axes.hist(
                    values,
                    edges,
                    weights=weights,
                    histtype="stepfilled" if values is known else "step",
                    alpha=0.45 if values is known else 1,
                    linewidth=1.8,
                    color=colour,
                    label=f"{name} ({len(values)})",
                )
        axes.set(
            title="Confidence for known people and unseen names",
            xlabel="confidence",
            ylabel="share of the names",
            xlim=(0, 1),
        )
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        figure.legend(fontsize=8, loc="outside lower center")
        return figure
