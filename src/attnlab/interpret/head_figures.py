"""Pictures of head scores: layer × head with one panel per kind, and by step of training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from attnlab.interpret.head_history import HeadHistory
from attnlab.interpret.heads import KINDS, HeadReport, KindScores
from attnlab.report.figures import COLOURS, FRAMELESS, styled, subplots


def head_map(report: HeadReport) -> Figure:
    """One panel per kind, one row of panels per source; colour is the score, from 0 to 1."""
    sources = list(report.draws)
    kinds = [kind for kind in KINDS if any(scores.kind == kind for scores in report.kinds)]
    layers, heads = (1 + max(place[axis] for place in report.kinds[0].heads) for axis in (0, 1))
    with styled(FRAMELESS):
        side = max(1.9, 0.32 * heads)
        size = (side * len(kinds) + 1.2, (0.5 + max(1.0, 0.32 * layers)) * len(sources) + 0.7)
        figure, grid = subplots(len(sources), len(kinds), figsize=size, squeeze=False)
        shown: Any = None
        for row, source in zip(grid, sources, strict=True):
            for panel, kind in zip(row, kinds, strict=True):
                scores = next((s for s in report.kinds if (s.kind, s.source) == (kind, source)), None)
                if scores is None:
                    panel.axis("off")
                    continue
                shown = _panel(panel, scores, layers, heads)
            row[0].set_ylabel(f"on {source}\nlayer")
        for panel in grid[-1]:
            panel.set_xlabel("head")
        figure.colorbar(shown, ax=grid, label="score", shrink=0.8)
        figure.suptitle(f"Heads of {report.name}")
        return figure


def _panel(panel: Any, scores: KindScores, layers: int, heads: int) -> Any:
    values = np.full((layers, heads), np.nan)
    for (layer, head), mean in scores.heads.items():
        values[layer, head] = mean.mean
    shown = panel.imshow(values, vmin=0, vmax=1, cmap="Blues", aspect="auto")
    panel.set_title(f"{scores.kind}\nchance {scores.chance:.2f}", fontsize=9)
    panel.set_xticks(range(0, heads, 1 + heads // 9))
    panel.set_yticks(range(0, layers, 1 + layers // 9))
    panel.tick_params(length=0)
    if heads <= 8 and layers <= 8:
        for (layer, head), mean in scores.heads.items():
            colour = "white" if mean.mean > 0.6 else "#1a202c"
            panel.text(head, layer, f"{mean.mean:.2f}", ha="center", va="center", fontsize=7, color=colour)
    return shown


def head_curves(history: HeadHistory, kinds: Sequence[str] = ("previous", "induction")) -> Figure:
    """Validation loss by step, and below it the score of the strongest head of each kind."""
    with styled():
        figure, (upper, lower) = subplots(2, 1, figsize=(6.4, 5.2), sharex=True)
        upper.plot(*history.loss, color=COLOURS[5], linewidth=1.8)
        upper.set(title=history.name, ylabel="validation loss")
        for kind, colour in zip(kinds, COLOURS, strict=False):
            lower.plot(history.steps, history.strongest(kind), color=colour, linewidth=1.8, label=kind)
            chance = history.reports[-1].scores(kind).chance
            lower.axhline(chance, color=colour, linestyle=":", linewidth=1)
        lower.set(xlabel="step", ylabel="score of the strongest head", ylim=(0, 1.02))
        lower.legend(title="dotted: chance")
        return figure
