"""Names in a figure are text; the numbers of its axes are still written as powers of ten."""

from __future__ import annotations

from pathlib import Path

from matplotlib.text import Text

from attnlab.base.figure_text import show_as_written
from attnlab.report import figures

FORMULAS = ("$\\frac", "$x_$ and $", "$a$", "100 $")


def test_a_dollar_is_a_dollar_wherever_a_name_can_be(tmp_path: Path) -> None:
    for formula in FORMULAS:
        lines = {f"{formula}{n}": ([1.0, 2.0], [10.0, 1000.0]) for n in range(2)}
        drawing = figures.curves(lines, formula, formula, formula, {formula: 20.0})
        figures.save(drawing, tmp_path / "curves.png")
        shares = {
            f"{formula}{n} $": (0.5, (0.4, 0.6)) for n in range(2)
        }  # on the axis, where an even number is a formula
        figures.save(figures.bars(shares, formula, formula), tmp_path / "bars.png")


def test_powers_of_ten_stay_formulas() -> None:
    drawing = figures.curves({"$x$": ([1.0, 2.0], [10.0, 1000.0])}, "title", "x", "y")
    axes = drawing.axes[0]
    axes.set_yscale("log")
    show_as_written(drawing)
    assert all(label.get_parse_math() for label in axes.get_yticklabels())
    texts = [text for text in drawing.findobj(Text) if text.get_text() in ("$x$", "title")]
    assert texts and not any(text.get_parse_math() for text in texts)
