"""Comparisons and sweeps from Python, and their results as tables."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from tests.api import test_own
from tests.api.conftest import FAST, SHAPE

import attnlab as lab
from attnlab.stats.intervals import Mean


def test_a_comparison_of_names_files_and_classes_is_a_table(small: lab.GPT, folder: Path) -> None:
    source = (test_own.trained(test_own.Mean).path / "attention.py").read_text()
    (folder / "mine.py").write_text(source)
    variants = ["vanilla", "mine.py", test_own.Mean]
    compared = lab.compare(small, "text.txt", attention=variants, steps=3, seeds=2, run="runs/compared", **FAST)
    rows = {row["variant"]: row for row in compared.table}
    assert set(rows) == {"vanilla", "mine", "Mean"}
    assert rows["mine"]["dev_loss"] == rows["Mean"]["dev_loss"]  # the same code with the same seeds
    assert rows["vanilla"]["difference"] is None and rows["Mean"]["seeds"] == 2
    runs = [row["dev_loss"] for row in compared.runs if "/Mean/" in row["run"]]
    mean = Mean(tuple(runs))
    assert (rows["Mean"]["dev_loss"], rows["Mean"]["dev_loss_low"]) == pytest.approx((mean.mean, mean.interval[0]))  # type: ignore[index]
    assert compared.report.is_file() and any("vanilla" in sentence for sentence in compared.conclusions)
    page = compared._repr_html_()
    assert "Mean" in page and "data:image/png;base64," in page and "<script" not in page
    assert repr(lab.load("runs/compared")) == "Comparison('runs/compared', finished)"


def test_a_sweep_varies_settings_and_classes(small: lab.GPT) -> None:
    pytest.importorskip("optuna")
    space, kinds = {"optimizer.lr": [1e-4, 1e-2]}, ["vanilla", test_own.Mean]
    swept = lab.sweep(small, "text.txt", vary=space, attention=kinds, job="language", steps=3, **FAST)
    assert len(swept.table) == 4 and swept.table[0]["dev_loss"] == min(row["dev_loss"] for row in swept.table)
    assert swept.best["optimizer.lr"] == 1e-2 and swept.test == {}
    assert {row["variant"] for row in swept.table} >= {"lr=0.01, attention=Mean", "lr=0.0001, attention=vanilla"}
    assert "lr" in swept._repr_html_() and repr(lab.load(swept.path)).startswith("Sweep(")


def test_a_comparison_that_lost_runs_is_resumed(small: lab.GPT) -> None:
    import shutil

    compared = lab.compare(small, "text.txt", attention=["linear", test_own.Mean], steps=2, seeds=1, **FAST)
    before = compared.table
    shutil.rmtree(compared.path / "cells" / "Mean")
    assert lab.load(compared.path).resume().table == before


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"attention": ["linaer"]}, "did you mean 'linear'"),
        ({"job": "langauge"}, "unknown job 'langauge'"),
        ({"stesp": 2}, "unknown setting 'stesp'"),
        ({"vary": {"optimizer.lrr": [1]}}, "lrr"),
        ({"seed": 3}, "unknown setting 'seed': did you mean"),
    ],
)
def test_a_mistake_is_one_sentence_and_leaves_nothing(settings: dict[str, Any], sentence: str, folder: Path) -> None:
    with pytest.raises(lab.UserError, match=sentence):
        lab.compare(lab.GPT(**SHAPE), "text.txt", **settings)
    assert not list(folder.glob("runs/*"))


def test_a_table_is_a_list_that_prints_and_escapes() -> None:
    table = lab.Table([{"variant": "<i>", "loss": 1.23456}, {"variant": "b", "seeds": 2}])
    assert table.columns == ["variant", "loss", "seeds"] and table[0]["loss"] == 1.23456
    assert str(table).splitlines() == ["variant  loss   seeds", "<i>      1.235", "b               2"]
    assert "<td>&lt;i&gt;</td><td>1.235</td><td></td>" in table._repr_html_()


def test_a_table_becomes_a_data_frame_where_pandas_is(monkeypatch: pytest.MonkeyPatch) -> None:
    table = lab.Table([{"a": 1}, {"a": 2, "b": "x"}])
    frame = table.to_pandas()
    assert (
        list(frame.columns) == ["a", "b"]
        and frame["a"].tolist() == [1, 2]
        and frame["b"].isna().tolist() == [True, False]
    )
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(lab.UserError, match="pandas is not installed"):
        table.to_pandas()
