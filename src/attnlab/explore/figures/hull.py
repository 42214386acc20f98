"""The keys, their hull, and which of them can win."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attnlab.explore.attend import Array
from attnlab.explore.figures.canvas import CHOSEN, FAINT, GOOD, INK, MUTED, OTHER, caption, headroom, legend, sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from attnlab.explore.reaching import Reach


def reach(result: Reach) -> Figure:
    pairs = [key_set for key_set in result.sets if len(key_set.chosen) == 2]
    figure, panels = sheet(2 if pairs else 1, result.title, width=10 if pairs else 6.5, height=4.4)
    points = two_axes(result.keys)
    singles = {key_set.chosen[0]: key_set.reachable for key_set in result.sets if len(key_set.chosen) == 1}
    plane = panels[0]
    outline(plane, points)
    for key_set in pairs:
        first, second = points[list(key_set.chosen)]
        colour, style = (GOOD, "-") if key_set.reachable else (MUTED, ":")
        plane.plot(*zip(first, second, strict=True), color=colour, lw=2 if key_set.reachable else 1, ls=style, zorder=1)
    drawn = (
        (GOOD, "o", "can be selected", [i for i in singles if singles[i]]),
        (CHOSEN, "X", "cannot be selected", [i for i in singles if not singles[i]]),
        (OTHER, "o", "key", [i for i in range(len(points)) if i not in singles]),
    )
    for colour, marker, name, rows in drawn:
        if rows:
            plane.scatter(
                points[rows, 0],
                points[rows, 1],
                s=110,
                color=colour,
                marker=marker,
                edgecolors="white",
                zorder=3,
                label=name,
            )
    for index, point in enumerate(points):
        away = point - points.mean(axis=0)
        shift = 15 * away / (np.linalg.norm(away) or 1.0)  # out of the hull, where no edge crosses the label
        plane.annotate(
            f"k{index}",
            point,
            (shift[0], shift[1]),
            textcoords="offset points",
            fontsize=9,
            color=INK,
            ha="center",
            va="center",
        )
    plane.margins(0.15)
    headroom(plane, 0.15)
    width = result.keys.shape[1]
    caption(plane, "Keys" if width <= 2 else f"Keys: 2 principal axes of {width} dimensions", "", "")
    legend(plane, "upper center", columns=2)
    if pairs:
        grid(panels[1], result)
    return figure


def two_axes(keys: Array) -> Array:
    """The keys themselves in two dimensions, their first two principal components in more."""
    if keys.shape[1] == 2:
        return keys
    if keys.shape[1] == 1:
        return np.c_[keys, np.zeros(len(keys))]
    centred = keys - keys.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    return np.asarray(centred @ axes[:2].T)


def outline(panel: Axes, points: Array) -> None:
    from scipy.spatial import ConvexHull, QhullError

    try:
        corners = points[ConvexHull(points).vertices]
    except (QhullError, ValueError):  # fewer than three points, or all on a line: no area to fill
        return
    panel.fill(*corners.T, color=FAINT, alpha=0.6, zorder=0)


def grid(panel: Axes, result: Reach) -> None:
    """Keys on the diagonal, pairs off it: green if some query makes exactly these win."""
    count = len(result.keys)
    panel.set_xlim(-0.5, count - 0.5)
    panel.set_ylim(count - 0.5, -0.5)
    size = 9 if count <= 9 else 6
    for key_set in result.sets:
        if len(key_set.chosen) > 2:
            continue
        row, column = key_set.chosen[0], key_set.chosen[-1]
        for x, y in {(column, row), (row, column)}:
            colour = GOOD if key_set.reachable else FAINT
            panel.fill([x - 0.46, x + 0.46, x + 0.46, x - 0.46], [y - 0.46, y - 0.46, y + 0.46, y + 0.46], color=colour)
            reached = f"{key_set.margin:.2g}" if np.isfinite(key_set.margin) else "✓"
            text = reached if key_set.reachable else "no"
            shade = "white" if key_set.reachable else INK
            panel.text(x, y, text, ha="center", va="center", fontsize=size, color=shade)
    panel.set_xticks(range(count), [f"k{i}" for i in range(count)])
    panel.set_yticks(range(count), [f"k{i}" for i in range(count)])
    panel.set_aspect("equal")
    caption(panel, "Margin: keys (diagonal) and pairs")
