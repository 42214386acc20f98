"""Several workers on one store: every cell once, and none lost when one of them is killed."""

from __future__ import annotations

import getpass
import multiprocessing
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from attnlab.errors import UserError
from attnlab.runs import read_record, read_status
from attnlab.search import store
from attnlab.search.claims import Claims
from attnlab.search.run import found_by, join_sweep, resume_sweep, run_sweep, saved_sweep

Toy = Callable[..., Any]
FORK = multiprocessing.get_context("fork")  # what is imported is shared: a worker starts at once
SERVER = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
PATIENCE = 120.0


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of its own on the loopback, in a temporary folder."""
    pytest.importorskip("psycopg")
    if not SERVER:
        pytest.skip("PostgreSQL's server is not installed: apt-get install postgresql")
    folder, tools = tmp_path_factory.mktemp("postgres"), SERVER[-1].parent
    user = "postgres" if os.geteuid() == 0 else getpass.getuser()
    as_user = ["runuser", "-u", user, "--"] if os.geteuid() == 0 else []  # the server refuses to run as root
    for parent in [folder, *folder.parents]:
        if parent.owner() == getpass.getuser() and str(parent) not in ("/", "/tmp"):
            parent.chmod(0o711)
    data = folder / "data"
    data.mkdir()
    shutil.chown(data, user)
    port = random.randint(20000, 60000)
    run = {"check": True, "capture_output": True, "cwd": "/"}
    subprocess.run([*as_user, tools / "initdb", "-D", data, "-U", "lab", "-A", "trust", "-N"], **run)  # type: ignore[call-overload]
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={data} -c fsync=off"
    subprocess.run([*as_user, tools / "pg_ctl", "-D", data, "-w", "-l", data / "log", "-o", options, "start"],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/")  # fmt: skip
    yield f"postgresql://lab@127.0.0.1:{port}/postgres"
    subprocess.run([*as_user, tools / "pg_ctl", "-D", data, "-m", "immediate", "stop"], **run)  # type: ignore[call-overload]


def wait_for(what: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if found := what():
            return found
        time.sleep(0.01)
    raise AssertionError("it took too long")


def lines(path: Path, what: str) -> dict[str, list[int]]:
    """Who wrote what, by run."""
    return {file.parent.parent.name: [int(pid) for pid in file.read_text().split()]
            for file in path.glob(f"trials/*/*/{what}.txt")}  # fmt: skip


def sweep_and_kill(config: Any, path: Path) -> int:
    """Two workers on a grid; the one that started the sweep is killed within a run. Returns its process id."""
    first = FORK.Process(target=run_sweep, args=(config, path))
    first.start()
    wait_for(lambda: (path / "run.json").is_file() and read_record(path).get("study"))
    second = FORK.Process(target=join_sweep, args=(path,))
    second.start()
    wait_for(lambda: len(lines(path, "begun")) > 2)
    wait_for(lambda: any(first.pid in pids and name not in lines(path, "done")
                         for name, pids in lines(path, "begun").items()))  # fmt: skip
    os.kill(first.pid or 0, signal.SIGKILL)
    first.join()
    second.join(PATIENCE)
    assert second.exitcode == 0
    return first.pid or 0


@pytest.mark.parametrize("kind", ["journal", "sqlite", "postgres"])
def test_a_killed_workers_cell_goes_back_and_no_cell_is_done_twice(
    kind: str, toy: Toy, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    address = {"journal": "journal", "sqlite": f"sqlite:///{tmp_path / 'store.db'}"}.get(kind)
    address = address or request.getfixturevalue("postgres")
    path = tmp_path / "sweep"
    killed = sweep_and_kill(toy(vary="x=0,1,2,3,4,5,6,7", hill={"nap": 0.25}, store=address), path)
    done, begun = lines(path, "done"), lines(path, "begun")
    assert len(done) == 8 and all(len(pids) == 1 for pids in done.values())
    cut = [name for name, pids in begun.items() if len(pids) > 1]
    assert len(cut) == 1 and begun[cut[0]][0] == killed and done[cut[0]] == [begun[cut[0]][1]]
    results, _ = found_by(path)
    assert [row.state for row in results.rows] == ["finished"] * 8 and len({row.number for row in results.rows}) == 8
    assert read_status(path)["state"] == "finished", "the worker that was left writes the report"
    assert (path / "report.html").is_file()


def test_two_workers_share_a_grid_and_both_work(toy: Toy, tmp_path: Path) -> None:
    path = tmp_path / "sweep"
    first = FORK.Process(target=run_sweep, args=(toy(vary="x=0,1,2,3,4,5", hill={"nap": 0.3}), path))
    first.start()
    wait_for(lambda: (path / "run.json").is_file() and read_record(path).get("study"))
    with pytest.raises(UserError, match="--worker"):
        resume_sweep(path, saved_sweep(path))
    join_sweep(path)
    first.join(PATIENCE)
    begun = lines(path, "begun")
    assert sorted(map(len, begun.values())) == [1] * 6
    assert {pid for pids in begun.values() for pid in pids} == {os.getpid(), first.pid}
    assert read_status(path)["state"] == "finished"


def test_workers_draw_different_settings(toy: Toy, tmp_path: Path) -> None:
    path = tmp_path / "sweep"
    config = toy(vary="x=0..100", search="random", trials=8, hill={"nap": 0.2})
    first = FORK.Process(target=run_sweep, args=(config, path))
    first.start()
    wait_for(lambda: (path / "run.json").is_file() and read_record(path).get("study"))
    join_sweep(path)
    first.join(PATIENCE)
    results, _ = found_by(path)
    assert len({row.settings["hill.x"] for row in results.rows}) == 8


def test_a_trial_is_abandoned_when_its_lock_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import platform

    from attnlab.search import claims

    monkeypatch.setattr(claims, "SILENCE", 5.0)
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
        resume_sweep(path, saved_sweep(path))
