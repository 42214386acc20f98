"""A user's text in a figure: `$` in a name of a class or a run is a dollar, not the beginning of a formula."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnlab.base.console import visible

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.text import Text


def show_as_written(figure: Figure) -> Figure:
    """Switch off formulas in every text of a figure but the numbers of its axes, which are written as powers of ten."""
    from matplotlib.text import Text

    numbers = {id(label) for axes in figure.axes for axis in (axes.xaxis, axes.yaxis) for label in _numbers(axis)}
    for text in figure.findobj(Text):
        if isinstance(text, Text) and id(text) not in numbers:
            text.set_parse_math(False)
            text.set_text(visible(text.get_text()))
    return figure


def _numbers(axis: Axis) -> list[Text]:
    """The labels of an axis that matplotlib made; those that were given to it are texts like others."""
    from matplotlib.ticker import FixedFormatter, FuncFormatter

    made: list[Text] = []
    for minor, formatter in ((False, axis.get_major_formatter()), (True, axis.get_minor_formatter())):
        if not isinstance(formatter, FixedFormatter | FuncFormatter):
            made += axis.get_ticklabels(minor=minor)
    return made
