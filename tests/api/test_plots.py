"""The plots of a notebook are its user's: our figures change no backend, no setting and no open figure of theirs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import matplotlib
from tests.api.conftest import FAST, SHAPE

from attnlab.base import html
from attnlab.report import figures

USE = f"""
import attnlab as lab
run = lab.train(lab.GPT(**{SHAPE}), "text.txt", steps=2, **{FAST})
assert "data:image/png" in run._repr_html_() and run.report.is_file()
assert "data:image/png" in run.heads(draws=2)._repr_html_()
assert "data:image/png" in lab.explore.select([[1, 0], [0, 1]], [[1, 2], [3, 4]], 0)._repr_html_()
"""


def test_the_backend_the_settings_and_the_open_figures_of_a_notebook_stay(folder: Path) -> None:
    before = """
import matplotlib
matplotlib.use("svg")
from matplotlib import pyplot
pyplot.style.use("dark_background")
pyplot.rcParams["font.size"] = 17
mine = pyplot.figure()
settings = dict(matplotlib.rcParams)
"""
    after = """
assert matplotlib.get_backend() == "svg"
assert dict(matplotlib.rcParams) == settings
assert pyplot.get_fignums() == [1] and pyplot.gcf() is mine
"""
    subprocess.run([sys.executable, "-c", before + USE + after], cwd=folder, check=True, capture_output=True)


def test_no_backend_is_chosen_for_a_script_without_plots(folder: Path) -> None:
    code = f"{USE}\nimport sys\nassert 'matplotlib.pyplot' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True, capture_output=True)


def test_our_figures_do_not_depend_on_the_settings_of_a_notebook(tmp_path: Path) -> None:
    def drawn(name: str) -> tuple[bytes, str]:
        figure = figures.curves({"train": ([1, 2], [0.5, 0.25])}, "loss", "step", "loss")
        page = figures.save(figure, tmp_path / name)
        return (tmp_path / name).read_bytes(), page

    plain = drawn("plain.png")
    with matplotlib.style.context("dark_background"), matplotlib.rc_context({"savefig.bbox": "tight", "font.size": 20}):
        assert drawn("dark.png") == plain


def test_a_picture_in_a_notebook_is_that_of_a_report() -> None:
    def shown() -> str:
        return html.picture(figures.bars({"a": (0.5, (0.25, 0.75))}, "accuracy", "share"), "accuracy")

    plain = shown()
    with matplotlib.rc_context({"savefig.facecolor": "black", "savefig.bbox": "tight"}):
        assert shown() == plain
