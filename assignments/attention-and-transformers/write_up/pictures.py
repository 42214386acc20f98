"""The figures of the write-up, drawn from the results that the notebooks leave behind."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from pathlib import Path

from matplotlib.ticker import LogLocator, NullFormatter

from attnlab.report import figures
from write_up.store import Results

WINDOW = 20  # steps in a moving mean
MASK_FIGURES = {
    "training-loss": "Training loss",
    "training-perplexity": "Smoothed training perplexity",
    "validation-perplexity": "Smoothed validation perplexity",
}
"""Two of each, in the document's order: 1, 3, 5 with the normal mask, 2, 4, 6 with the naive one."""


def mask_figure_name(kind: str, mask: str, tokens: str) -> str:
    number = 1 + 2 * list(MASK_FIGURES).index(kind) + (mask == "naive")
    return f"{tokens}-{number}-{kind}-{mask}.png"


def moving_mean(values: Sequence[float], window: int) -> list[float]:
    """The mean of each value and up to `window` - 1 values before it."""
    return [sum(part) / len(part) for n in range(len(values)) for part in [values[max(0, n + 1 - window) : n + 1]]]


def draw_masks(results: Results, folder: Path) -> list[Path]:
    """The document's figures 1 to 6: one line per seed, both masks on the same scale."""
    paths = []
    for kind, title in MASK_FIGURES.items():
        lines = {mask: _mask_lines(runs, kind) for mask, runs in results["runs"].items()}
        values = [value for by_seed in lines.values() for _, ys in by_seed.values() for value in ys]
        for mask, by_seed in lines.items():
            measure = "loss, nats per token" if kind == "training-loss" else "perplexity per token"
            shown = figures.curves(by_seed, f"{title} with {mask} causal masking", "step", measure)
            axes = shown.axes[0]
            if kind != "training-loss" and max(values) > 3 * min(values):
                axes.set_yscale("log")
                axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
                axes.yaxis.set_major_formatter("{x:,g}")
                axes.yaxis.set_minor_formatter(NullFormatter())
            axes.set_ylim(min(values) * 0.95, max(values) * 1.05)
            paths.append(folder / mask_figure_name(kind, mask, results["data"]["tokens"]))
            figures.save(shown, paths[-1])
    return paths


def _mask_lines(runs: Results, kind: str) -> dict[str, figures.Curve]:
    lines: dict[str, figures.Curve] = {}
    for seed, run in runs.items():
        if kind == "validation-perplexity":
            steps = [step for step, _ in run["validation"]]
            values = moving_mean([exp(loss) for _, loss in run["validation"]], 2)
        else:
            steps = list(range(1, len(run["training"]) + 1))
            values = list(run["training"])
            if kind == "training-perplexity":
                values = moving_mean([exp(loss) for loss in values], WINDOW)
        lines[f"seed {seed}"] = (steps, values)
    return lines


def draw_curves(trainings: Sequence[Results], measure: str, path: Path) -> Path:
    """Accuracy or loss by epoch, train and dev in one figure; of several seeds, the mean."""
    first = trainings[0]
    epochs = range(1, len(first["curve"]) + 1)
    lines: dict[str, figures.Curve] = {
        split: (
            list(epochs),
            [
                sum(training["curve"][epoch - 1][split][measure] for training in trainings) / len(trainings)
                for epoch in epochs
            ],
        )
        for split in ("train", "dev")
    }
    settings = first["settings"]
    seeds = f", mean of {len(trainings)} seeds" if len(trainings) > 1 else ""
    title = f"{settings['model']}, {settings['optimizer']}, η = {settings['rate']:g}{seeds}"
    figures.save(figures.curves(lines, title, "epoch", measure, percent=measure == "accuracy"), path)
    return path
