"""A sweep from end to end: every cell once, more of them later, chosen on dev, the winner alone on test."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from attnlab.base.errors import RunFailed, UserError
from attnlab.base.interrupts import Interrupted
from attnlab.cli.sweep import REQUEST, _grown
from attnlab.experiments.experiment import SWEEP
from attnlab.experiments.queue import Queue
from attnlab.experiments.sweep import resume_sweep, run_sweep, study_of, sweep_results
from attnlab.experiments.sweep_page import table, verdicts
from attnlab.runs import read_record, read_status

Toy = Callable[..., Any]


def found(path: Path) -> dict[str, Any]:
    return dict(json.loads((path / "results.json").read_text(encoding="utf-8")))


def begun(path: Path) -> dict[str, int]:
    """How often each run was begun."""
    return {
        str(file.parent.relative_to(path / "trials")): len(file.read_text().split())
        for file in sorted(path.rglob("begun.txt"))
    }


def more(path: Path, **sweep: Any) -> Path:
    """The same sweep with more asked of it, as the command line asks."""
    flags = {("sweep", name): value for name, value in sweep.items()}
    saved = SWEEP.saved(path)
    return resume_sweep(path, _grown(saved, REQUEST.config(None, flags, [], saved.sweep.job), None, flags, []))


def test_a_grid_is_the_sum_of_its_cells(toy: Toy, tmp_path: Path, drawn: None) -> None:
    path = run_sweep(toy(vary="x=0,1,2; y=0,5"), tmp_path / "sweep")
    results = found(path)
    assert len(results["cells"]) == 6 and set(begun(path).values()) == {1} and len(begun(path)) == 6
    for cell in results["cells"]:
        x, y = cell["settings"]["hill.x"], cell["settings"]["hill.y"]
        assert cell["state"] == "finished" and cell["dev"]["mean"] == pytest.approx(0.9 - 0.1 * abs(x - 1) - 0.01 * y)
    assert results["best"]["settings"] == {"hill.x": 1.0, "hill.y": 0}
    assert results["seconds"] == 6 * 1.5 and results["edges"] == {"hill.y": "lowest"}
    for name in ("landscape", "parallel"):
        assert (path / "figures" / f"{name}.png").stat().st_size > 0
    page = (path / "report.html").read_text(encoding="utf-8")
    assert "the lowest that was tried" in page and read_status(path)["state"] == "finished"


def test_chosen_on_dev_and_nobody_else_is_shown_on_test(toy: Toy, tmp_path: Path, drawn: None) -> None:
    """x=3 is the best on test by far; x=1 is on dev."""
    path = run_sweep(toy(vary="x=1,2,3"), tmp_path / "sweep")
    results, tested = sweep_results(path)
    assert results.best is not None and results.best.settings == {"hill.x": 1.0}
    assert tested is not None and tested.scores == {0: {"test_accuracy": pytest.approx(0.7)}}
    shown = (path / "report.html").read_text() + (path / "results.json").read_text() + str(table(results))
    assert "70.0%" in shown and "90.0% (" not in shown.split("on test")[1]
    assert "80.0%" not in verdicts(results, tested)[-1] and "55.7% to 80.9%" not in shown
    assert set(found(path)["test"]) == {"folder", "reason", "test_accuracy"}
    assert all("test" not in str(cell) for cell in found(path)["cells"])


def test_a_job_that_can_leaves_test_alone_and_scores_the_winner_once(toy: Toy, tmp_path: Path) -> None:
    path = run_sweep(toy("coy", vary="x=1,2"), tmp_path / "sweep")
    records = [read_record(run.parent) for run in path.rglob("begun.txt")]
    assert all(set(record["results"]) == {"dev_accuracy"} for record in records)
    assert found(path)["test"]["test_accuracy"]["mean"] == 0.42
    assert [str(file.parent.relative_to(path)) for file in path.rglob("tested.txt")] == ["trials/x-1/seed-0"]
    resume_sweep(path, SWEEP.saved(path))
    assert (path / "trials/x-1/seed-0/tested.txt").read_text().count("\n") == 1
    low, high = found(path)["test"]["test_accuracy"]["over_examples"]
    assert low == pytest.approx(0.2938, abs=1e-4) and high == pytest.approx(0.5577, abs=1e-4)  # Wilson, 21 of 50


def test_more_values_and_more_seeds_run_only_what_is_new(toy: Toy, tmp_path: Path) -> None:
    path = run_sweep(toy(vary="x=0,1; y=0,1"), tmp_path / "sweep")
    before = {file: file.stat().st_mtime_ns for file in path.glob("trials/*/*/run.json")}
    more(path, vary="hill.x=0.5,1.0")
    assert len(before) == 4 and len(begun(path)) == 6 and set(begun(path).values()) == {1}
    assert {name for name in begun(path) if "0.5" in name} == {"x-0.5-y-0/seed-0", "x-0.5-y-1/seed-0"}
    more(path, seeds="3")
    assert len(begun(path)) == 18 and set(begun(path).values()) == {1}
    assert all(file.stat().st_mtime_ns == when for file, when in before.items())
    best = found(path)["best"]
    assert best["dev"]["by_seed"] == {"0": 0.9, "1": 0.901, "2": 0.902}
    assert best["dev"]["interval"][0] < 0.901 < best["dev"]["interval"][1]
    assert "± 0.2%" in str(table(sweep_results(path)[0]).rows[0])
    more(path)
    assert set(begun(path).values()) == {1}


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ({"vary": "shape=flat,steep"}, "keeps its settings"),
        ({"search": "random"}, "sweep.search is 'grid' there"),
        ({"seeds": "1"}, "sweep.seeds is 2 there"),
    ],
)
def test_a_resumed_sweep_only_grows(toy: Toy, tmp_path: Path, flags: dict[str, str], sentence: str) -> None:
    path = run_sweep(toy(vary="x=0", seeds=2), tmp_path / "sweep")
    with pytest.raises(UserError, match=sentence):
        more(path, **flags)


def test_a_cell_that_fails_is_a_row_and_can_be_tried_again(toy: Toy, tmp_path: Path) -> None:
    path = run_sweep(toy(vary="x=1,13,2"), tmp_path / "sweep")
    rows = {cell["settings"]["hill.x"]: cell for cell in found(path)["cells"]}
    assert [rows[x]["state"] for x in (1.0, 13.0, 2.0)] == ["finished", "failed", "finished"]
    assert rows[13.0]["reasons"] == {"0": "13 is unlucky"}
    assert "failed" in read_status(path)["reason"]
    more(path)
    assert begun(path)["x-13/seed-0"] == 1
    (path / "mended").touch()
    resume_sweep(path, SWEEP.saved(path), retry_failed=True)
    assert begun(path) == {"x-1/seed-0": 1, "x-13/seed-0": 2, "x-2/seed-0": 1}
    assert [cell["state"] for cell in found(path)["cells"]] == ["finished"] * 3
    with pytest.raises(RunFailed, match="no cell could be run; the first failed: 13 is unlucky"):
        run_sweep(toy(vary="x=13"), tmp_path / "other")


def test_it_goes_on_after_an_interruption(toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first signal comes within the third cell: that cell goes back at once, and two are never run again."""
    import signal

    from attnlab.experiments import experiment

    real, calls = experiment.run_subrun, []

    def interrupted(*args: Any) -> None:
        calls.append(args)
        if len(calls) == 3:
            raise Interrupted(signal.SIGTERM)
        real(*args)

    monkeypatch.setattr(experiment, "run_subrun", interrupted)
    with pytest.raises(Interrupted):
        run_sweep(toy(vary="x=0,1,2,3"), tmp_path / "sweep")
    path = tmp_path / "sweep"
    assert read_status(path)["state"] == "interrupted" and len(begun(path)) == 2
    units = Queue(path, SWEEP.saved(path), study_of(path)).trials()
    assert [unit.state for unit in units] == ["finished", "finished", "waiting", "waiting"]
    more(path)
    assert list(begun(path).values()) == [1] * 4 and found(path)["best"]["settings"] == {"hill.x": 1.0}


@pytest.mark.parametrize("search", ["random", "guided"])
def test_a_seeded_search_draws_the_same_and_stays_in_its_space(toy: Toy, search: str, tmp_path: Path) -> None:
    ask = {"vary": "x=0.1..10 log; y=0..3; shape=flat,steep", "search": search}
    first = run_sweep(toy(**ask, trials=12), tmp_path / "first")
    second = run_sweep(toy(**ask, trials=9), tmp_path / "second")
    more(second, trials="12")
    cells = [sorted(found(path)["cells"], key=lambda cell: cell["trial"]) for path in (first, second)]
    assert [cell["settings"] for cell in cells[0]] == [cell["settings"] for cell in cells[1]]
    drawn = [cell["settings"] for cell in cells[0]]
    assert all(0.1 <= each["hill.x"] <= 10 and each["hill.y"] in range(4) for each in drawn) and len(drawn) == 12
    assert {each["hill.shape"] for each in drawn} == {"flat", "steep"}


def test_the_report_of_a_guided_search_shows_the_way_and_what_matters(toy: Toy, tmp_path: Path, drawn: None) -> None:
    ask = {"vary": "x=0.1..20 log; y=0..3; shape=flat,steep", "search": "guided", "trials": 14}
    path = run_sweep(toy(**ask, hill={"nap": 0}), tmp_path / "sweep")
    importance = found(path)["importance"]
    assert set(importance) == {"hill.x", "hill.y", "hill.shape"} and max(importance, key=importance.get) == "hill.x"
    for name in ("history", "landscape", "parallel", "importance"):
        assert (path / "figures" / f"{name}.png").stat().st_size > 0
    assert "the best over 1 more" in (path / "report.html").read_text(encoding="utf-8")


def test_guided_search_learns_where_the_hill_is(toy: Toy, tmp_path: Path) -> None:
    path = run_sweep(toy(vary="x=-20..20", search="guided", trials=24), tmp_path / "sweep")
    cells = sorted(found(path)["cells"], key=lambda cell: cell["trial"])
    away = [abs(cell["settings"]["hill.x"] - 1) for cell in cells]
    assert median(away[12:]) < median(away[:8]) / 2, "the first eight are drawn at random"


def test_a_small_space_is_not_searched_twice(toy: Toy, tmp_path: Path) -> None:
    path = run_sweep(toy(vary="y=0,1", search="random", trials=10), tmp_path / "sweep")
    cells = found(path)["cells"]
    assert len(cells) == 2 and set(begun(path).values()) == {1} and len(begun(path)) == 2
    assert [cell["dev"]["mean"] for cell in cells] == pytest.approx([0.8, 0.79])


def test_a_drawn_cell_is_run_with_every_seed_and_more_can_be_added(toy: Toy, tmp_path: Path) -> None:
    path = run_sweep(toy(vary="x=0..2", search="random", trials=3, seeds=2), tmp_path / "sweep")
    more(path, seeds="3")
    assert len(begun(path)) == 9 and set(begun(path).values()) == {1}
    assert [len(cell["dev"]["by_seed"]) for cell in found(path)["cells"]] == [3] * 3
    assert sweep_results(path)[1] is not None and len(read_record(path)["tested"]) == 2


def test_nothing_is_begun_when_the_time_is_used_up(toy: Toy, tmp_path: Path) -> None:
    path = run_sweep(toy(vary="x=0,1,2", seconds=0.01, hill={"nap": 0.05}), tmp_path / "sweep")
    assert len(begun(path)) == 1 and "waiting" in read_status(path)["reason"]
    more(path, seconds="60")
    assert len(begun(path)) == 3 and read_status(path)["reason"] == ""
