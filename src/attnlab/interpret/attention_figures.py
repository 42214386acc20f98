"""Attention on a text as figures: all heads of all layers, or one of them large with its tokens."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.figure import Figure
from torch import Tensor

from attnlab.explore.figures import canvas
from attnlab.interpret.attention_page import label
from attnlab.interpret.maps import AttentionMap, AttentionMaps

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

COLOURS = "Blues"
LONGEST_LABEL = 14
MOST_LABELS = 80


def grid_figure(maps: AttentionMaps) -> Figure:
    """A row per attention, a panel per head; one panel of influence for a mixer without weights."""
    rows = [_panels(each) for each in maps.attentions]
    columns = max(len(row) for row in rows)
    figure = Figure(figsize=(1.3 + 1.05 * columns, 0.7 + 1.15 * len(rows)), dpi=150, layout="constrained")
    figure.suptitle(_title(maps), fontsize=11, color=canvas.INK, parse_math=False)
    grid = figure.subplots(len(rows), columns, squeeze=False)
    for each, row, axes in zip(maps.attentions, rows, grid, strict=True):
        for panel in axes[len(row) :]:
            panel.set_axis_off()
        for (title, matrix), panel in zip(row, axes, strict=False):
            _image(panel, matrix)
            panel.set_title(title, fontsize=8, color=canvas.INK, pad=2)
            panel.set_xticks([])
            panel.set_yticks([])
        name = each.name.removesuffix(".attention")
        axes[0].set_ylabel(name, fontsize=8, color=canvas.INK, rotation=0, ha="right", va="center")
    return figure


def head_figure(attention: AttentionMap, head: int | None = None) -> Figure:
    """The weights of one head with the tokens; without `head`, the influence."""
    if head is None:
        assert attention.influence is not None
        title, matrix = f"{attention.name}, influence, each row divided by its sum", _shares(attention)
    else:
        title, matrix = f"{attention.name}, head {head}: weights", attention.head(head)
    side = min(12.0, 2.5 + 0.22 * max(matrix.shape))
    figure = Figure(figsize=(side + 0.8, side), dpi=150, layout="constrained")
    panel = figure.subplots()
    image = _image(panel, matrix)
    panel.set_title(title, fontsize=11, color=canvas.INK)
    panel.xaxis.tick_top()
    for axis, tokens in ((panel.yaxis, attention.queries.tokens), (panel.xaxis, attention.keys.tokens)):
        step = -(-len(tokens) // MOST_LABELS)
        places = range(0, len(tokens), step)
        axis.set_ticks(list(places), [_short(tokens[n]) for n in places], fontsize=8, parse_math=False)
    panel.tick_params(axis="x", rotation=90)
    panel.set_ylabel("query", color=canvas.INK)
    panel.set_xlabel("key", color=canvas.INK)
    bar = figure.colorbar(image, ax=panel, shrink=0.6)
    bar.set_label("square-root scale", fontsize=8)
    return figure


def save_figure(path: Path, maps: AttentionMaps, place: int | None = None, head: int | None = None) -> Path:
    """All of `maps`, or one head, or the influence of one attention, to a file; its suffix selects the format."""
    with _missing_letters_as_boxes():
        return canvas.save(
            lambda: grid_figure(maps) if place is None else head_figure(maps.attentions[place], head), path
        )


def _panels(attention: AttentionMap) -> list[tuple[str, Tensor]]:
    if attention.weights is None:
        return [("influence", _shares(attention))]
    return [(f"{attention.layer}.{head}", matrix) for head, matrix in enumerate(attention.weights)]


def _shares(attention: AttentionMap) -> Tensor:
    """Influence with rows that sum to 1, as weights do."""
    assert attention.influence is not None
    matrix = attention.influence.matrix
    return matrix / matrix.sum(-1, keepdim=True).clamp_min(1e-30)


def _image(panel: Axes, matrix: Tensor) -> AxesImage:
    """Colours go with the square root, so that small weights can be seen."""
    from matplotlib.colors import PowerNorm

    panel.spines[:].set_color(canvas.MUTED)
    return panel.imshow(matrix.float().cpu().numpy(), cmap=COLOURS, norm=PowerNorm(0.5, 0.0, 1.0), aspect="auto")


def _title(maps: AttentionMaps) -> str:
    text = " ".join(maps.reading.text.split())
    return f"{Path(maps.model).name}: {text if len(text) <= 60 else f'{text[:59]}…'}"


def _short(token: str) -> str:
    shown = label(token)
    return shown if len(shown) <= LONGEST_LABEL else f"{shown[: LONGEST_LABEL - 1]}…"


@contextmanager
def _missing_letters_as_boxes() -> Iterator[None]:
    """A token may have letters that the font has not; matplotlib draws a box and warns per letter."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield
