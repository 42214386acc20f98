"""Several workers on one store: every cell once, and none lost when one of them is killed."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.experiments.sweep.database import Database, running

from attnlab.base.errors import UserError
from attnlab.experiments import store
from attnlab.experiments.experiment import SWEEP
from attnlab.experiments.queue import Claims
from attnlab.experiments.sweep import join_sweep, resume_sweep, run_sweep, sweep_results
from attnlab.runs import read_record, read_status

Toy = Callable[..., Any]
FORK = multiprocessing.get_context("fork")  # what is imported is shared: a worker starts at once
PATIENCE = 120.0


@pytest.fixture(scope="module")
def postgres() -> Iterator[Database]:
    with running() as database:
        yield database


def wait_for(what: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if found := what():
            return found
        time.sleep(0.01)
    raise AssertionError("it took too long")


def lines(path: Path, what: str) -> dict[str, list[int]]:
    """Who wrote what, by run."""
    return {
        file.parent.parent.name: [int(pid) for pid in file.read_text().split()]
        for file in path.glob(f"trials/*/*/{what}.txt")
    }


def two_at_work(config: Any, path: Path) -> tuple[Any, Any]:
    """Two processes, each within a run it cannot leave before the gate is opened."""
    first = FORK.Process(target=run_sweep, args=(config, path))
    first.start()
    wait_for(lambda: (path / "run.json").is_file() and read_record(path).get("study"))
    second = FORK.Process(target=join_sweep, args=(path,))
    second.start()
    wait_for(lambda: {first.pid, second.pid} == {pid for pids in lines(path, "begun").values() for pid in pids})
    return first, second


@pytest.mark.parametrize("kind", ["journal", "sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def test_a_killed_workers_cell_goes_back_and_no_cell_is_done_twice(
    kind: str, toy: Toy, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    address = {"journal": "journal", "sqlite": f"sqlite:///{tmp_path / 'store.db'}"}.get(kind)
    address = address or request.getfixturevalue("postgres").address
    path = tmp_path / "sweep"
    first, second = two_at_work(toy(vary="x=0,1,2,3,4,5", hill={"gate": True}, store=address), path)
    os.kill(first.pid, signal.SIGKILL)
    first.join()
    (path / "open").touch()
    second.join(PATIENCE)
    assert second.exitcode == 0
    done, begun = lines(path, "done"), lines(path, "begun")
    assert len(done) == 6 and all(len(pids) == 1 for pids in done.values())
    cut = [name for name, pids in begun.items() if len(pids) > 1]
    assert len(cut) == 1 and begun[cut[0]] == [first.pid, second.pid]
    results, _ = sweep_results(path)
    assert [row.state for row in results.rows] == ["finished"] * 6 and len({row.number for row in results.rows}) == 6
    assert read_status(path)["state"] == "finished", "the worker that was left writes the report"
    assert (path / "report.html").is_file()


def test_two_workers_share_a_grid_and_both_work(toy: Toy, tmp_path: Path) -> None:
    path = tmp_path / "sweep"
    first, second = two_at_work(toy(vary="x=0,1,2,3", hill={"gate": True}), path)
    with pytest.raises(UserError, match="--worker"):
        resume_sweep(path, SWEEP.saved(path))
    (path / "open").touch()
    for process in (first, second):
        process.join(PATIENCE)
        assert process.exitcode == 0
    assert sorted(map(len, lines(path, "begun").values())) == [1] * 4
    assert read_status(path)["state"] == "finished"


def test_a_finished_sweep_is_left_as_it_is(toy: Toy, tmp_path: Path) -> None:
    path = run_sweep(toy(vary="x=0,1"), tmp_path / "sweep")
    before = {file: file.stat().st_mtime_ns for file in path.rglob("*") if file.is_file() and file.suffix != ".lock"}
    join_sweep(path)
    assert {file: file.stat().st_mtime_ns for file in before} == before
    assert read_status(path)["state"] == "finished" and "resumed" not in read_record(path)


def test_workers_draw_different_settings(toy: Toy, tmp_path: Path) -> None:
    path = tmp_path / "sweep"
    workers = two_at_work(toy(vary="x=0..100", search="random", trials=5, hill={"gate": True}), path)
    (path / "open").touch()
    for process in workers:
        process.join(PATIENCE)
    results, _ = sweep_results(path)
    assert len({row.settings["hill.x"] for row in results.rows}) == len(results.rows) == 5


def test_a_trial_is_abandoned_when_its_lock_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import platform

    from attnlab.experiments import queue

    monkeypatch.setattr(queue, "SILENCE", 5.0)
    here, there = platform.node(), "another-machine"
    known = Claims(tmp_path)
    held = known.take(3)
    assert not known.abandoned(3, here) and not known.abandoned(3, there)
    held.release()
    assert known.abandoned(3, here) and not known.abandoned(3, there), "a lock may not reach that far"
    os.utime(tmp_path / "00003.lock", (time.time() - 60, time.time() - 60))
    assert known.abandoned(3, there)


def test_a_store_that_cannot_be_used_is_one_sentence(toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "WAIT", 1)
    (tmp_path / "text.db").write_text("no database " * 200)
    nowhere = "postgresql://lab@127.0.0.1:1/none"
    locked = sqlite3.connect(tmp_path / "locked.db")
    locked.execute("create table t (x)")
    locked.execute("begin exclusive")
    for address, sentence in (
        (f"sqlite:///{tmp_path / 'text.db'}", "not a database"),
        (f"sqlite:///{tmp_path / 'none' / 'x.db'}", "unable to open"),
        (f"sqlite:///{tmp_path / 'locked.db'}", "is locked"),
        (nowhere, "127.0.0.1"),
    ):
        if address == nowhere:
            pytest.importorskip("psycopg")
        with pytest.raises(UserError, match=sentence) as told:
            run_sweep(toy(vary="x=1,2", store=address), tmp_path / "never")
        assert "\n" not in str(told.value) and not (tmp_path / "never").exists()
    locked.close()
    path = run_sweep(toy(vary="x=1"), tmp_path / "sweep")
    journal = path / "journal.log"
    journal.write_text("{broken\n" + journal.read_text())
    with pytest.raises(UserError, match=r"journal\.log cannot be used"):
        resume_sweep(path, SWEEP.saved(path))
