"""The figures of an evaluation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.ticker import PercentFormatter

from attnlab.report.figures import COLOURS, styled, subplots

INK = "#4a5568"
LEAST = 1e-12  # a lower probability is drawn here


def coverage(curve: Mapping[str, Sequence[float]], baseline: float | None) -> Any:
    """Accuracy of the answers given when only the most confident are given."""
    with styled():
        figure, axes = subplots(figsize=(6.4, 3.4))
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
    figure = _two_kinds(known, unseen, [n / 20 for n in range(21)])
    figure.axes[0].set(title="Confidence for known people and unseen names", xlabel="confidence", xlim=(0, 1))
    return figure


def name_probabilities(known: Sequence[float], unseen: Mapping[str, Sequence[float]], threshold: float) -> Any:
    """The probability of the name, for known people and, by kind, for unseen names; on a logarithmic axis."""
    lowest = min([*known, *(value for values in unseen.values() for value in values)])
    power = min(-1, math.floor(math.log10(max(LEAST, lowest))))
    edges = [10 ** (power * (1 - n / 30)) for n in range(31)]
    shown = {kind: [max(value, edges[0]) for value in values] for kind, values in unseen.items()}
    figure = _two_kinds([max(value, edges[0]) for value in known], shown, edges)
    axes = figure.axes[0]
    axes.axvline(threshold, color=INK, linestyle="--", linewidth=1)
    axes.set(
        title="Probability of the name, for known people and unseen names",
        xlabel="probability of the name per token (dashed: the threshold of --abstain)",
        xscale="log",
    )
    return figure


def _two_kinds(known: Sequence[float], unseen: Mapping[str, Sequence[float]], edges: Sequence[float]) -> Any:
    with styled():
        figure, axes = subplots(figsize=(6.4, 4.0))
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
        axes.set(ylabel="share of the names")
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        figure.legend(fontsize=8, loc="outside lower center")
        return figure
