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


def reach(found: Reach) -> Figure:
    pairs = [one for one in found.sets if len(one.chosen) == 2]
    figure, panels = sheet(2 if pairs else 1, found.title, width=10 if pairs else 6.5, height=4.4)
    points = two_axes(found.keys)
    singles = {one.chosen[0]: one.reachable for one in found.sets if len(one.chosen) == 1}
    plane = panels[0]
    outline(plane, points)
    for one in pairs:
        first, second = points[list(one.chosen)]
        colour, style = (GOOD, "-") if one.reachable else (MUTED, ":")
        plane.plot(*zip(first, second, strict=True), color=colour, lw=2 if one.reachable else 1, ls=style, zorder=1)
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
    width = found.keys.shape[1]
    caption(plane, "Keys" if width <= 2 else f"Keys in {width} dimensions, seen along two", "", "")
    legend(plane, "upper center", columns=2)
    if pairs:
        grid(panels[1], found)
    return figure


def two_axes(keys: Array) -> Array:
    """The keys themselves in two dimensions, the two main axes of their spread in more."""
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
    except (QhullError, ValueError):  # fewer than three points, or all on a line: there is no area to shade
        return
    panel.fill(*corners.T, color=FAINT, alpha=0.6, zorder=0)


def grid(panel: Axes, found: Reach) -> None:
    """A key on the diagonal, a pair off it: green if some query makes exactly these win."""
    count = len(found.keys)
    panel.set_xlim(-0.5, count - 0.5)
    panel.set_ylim(count - 0.5, -0.5)
    size = 9 if count <= 9 else 6
    for one in found.sets:
        if len(one.chosen) > 2:
            continue
        row, column = one.chosen[0], one.chosen[-1]
        for x, y in {(column, row), (row, column)}:
            colour = GOOD if one.reachable else FAINT
            panel.fill([x - 0.46, x + 0.46, x + 0.46, x - 0.46], [y - 0.46, y - 0.46, y + 0.46, y + 0.46], color=colour)
            text = (
                f"{one.margin:.2g}" if one.reachable and np.isfinite(one.margin) else ("✓" if one.reachable else "no")
            )
            shade = "white" if one.reachable else INK
            panel.text(x, y, text, ha="center", va="center", fontsize=size, color=shade)
    panel.set_xticks(range(count), [f"k{i}" for i in range(count)])
    panel.set_yticks(range(count), [f"k{i}" for i in range(count)])
    panel.set_aspect("equal")
    caption(panel, "Select (diagonal) and average pairs: margin")
