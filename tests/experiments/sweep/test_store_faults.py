"""A store that was left locked, cut short or damaged, or that is away for a while: no trial is lost, nothing hangs."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from optuna.exceptions import StorageInternalError, UpdateFinishedTrialError
from sqlalchemy.exc import OperationalError, PendingRollbackError
from tests.experiments.sweep.database import running
from tests.experiments.sweep.test_workers import FORK, PATIENCE, lines, two_at_work, wait_for

from attnlab.base.errors import RunFailed, UserError
from attnlab.base.interrupts import Interrupted
from attnlab.experiments import retrying
from attnlab.experiments.experiment import SWEEP
from attnlab.experiments.journal import HERE, JournalLock, cut_torn_line
from attnlab.experiments.store import StoreFailed, errors_explained
from attnlab.experiments.sweep import resume_sweep, run_sweep, sweep_results
from attnlab.runs import read_status

Toy = Callable[..., Any]


def states(path: Path) -> list[str]:
    return [row.state for row in sweep_results(path)[0].rows]


@pytest.mark.parametrize("left", [HERE, "sweep/journal.log", "another-machine", "/gone/journal.log"])
def test_a_lock_that_a_killed_worker_left_is_taken_over(
    left: str, toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(JournalLock.__init__, "__defaults__", (0.1,))
    path = run_sweep(toy(vary="x=0,1"), tmp_path / "sweep")
    os.symlink(left, path / "journal.log.lock")
    resume_sweep(path, toy(vary="x=0,1,2"))
    assert states(path) == ["finished"] * 3
    assert not os.path.lexists(path / "journal.log.lock")


def test_a_lock_of_another_machine_is_respected_for_a_while(tmp_path: Path) -> None:
    journal = tmp_path / "journal.log"
    journal.touch()
    link = journal.with_name("journal.log.lock")
    os.symlink("another-machine", link)
    start = time.monotonic()
    lock = JournalLock(journal, grace=0.3)
    lock.acquire()
    assert time.monotonic() - start >= 0.3 and os.readlink(link) == HERE
    lock.release()
    assert not os.path.lexists(link)


def test_the_lock_excludes_other_processes(tmp_path: Path) -> None:
    journal, turns = tmp_path / "journal.log", tmp_path / "turns"
    journal.touch()

    def work(name: str) -> None:
        for _ in range(20):
            lock = JournalLock(journal)
            lock.acquire()
            with turns.open("a") as file:
                file.write(f"{name} in\n")
                file.flush()
                time.sleep(0.001)
                file.write(f"{name} out\n")
            lock.release()

    workers = [FORK.Process(target=work, args=(name,)) for name in "abc"]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(PATIENCE)
    entries = turns.read_text().splitlines()
    assert len(entries) == 120
    assert all(a.split()[0] == b.split()[0] for a, b in zip(entries[::2], entries[1::2], strict=True))


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (b"", b""),
        (b"whole\n", b"whole\n"),
        (b"whole\ntorn", b"whole\n"),
        (b"torn", b""),
        (b"whole\n\0\0", b"whole\n"),
        (b"whole\n" + b"x" * 200_000, b"whole\n"),
    ],
)
def test_a_torn_line_is_cut_and_no_other(text: bytes, kept: bytes, tmp_path: Path) -> None:
    file = tmp_path / "journal.log"
    file.write_bytes(text)
    cut_torn_line(file)
    assert file.read_bytes() == kept


def test_a_sweep_with_a_torn_journal_is_resumed_again_and_again(toy: Toy, tmp_path: Path) -> None:
    path = run_sweep(toy(vary="x=0,1"), tmp_path / "sweep")
    journal = path / "journal.log"
    for more in ("0,1,2", "0,1,2,4", "0,1,2,4,5"):
        with journal.open("ab") as file:
            file.write(b'{"op_code":4,"worker_id":"a1')  # a worker was killed while it wrote
        resume_sweep(path, toy(vary=f"x={more}"))
        assert states(path) == ["finished"] * len(more.split(","))
    assert all(json.loads(line) for line in journal.read_text().splitlines())


def test_wherever_a_journal_is_cut_the_sweep_is_finished(toy: Toy, tmp_path: Path) -> None:
    path = run_sweep(toy(vary="x=0,1"), tmp_path / "sweep")
    journal = path / "journal.log"
    content = journal.read_bytes()
    first = content.index(b"\n") + 1  # without the study there is no sweep
    for end in range(first, len(content), len(content) // 12):
        journal.write_bytes(content[:end])
        resume_sweep(path, SWEEP.saved(path))
        assert states(path) == ["finished"] * 2


class Away:
    """A storage of which each operation fails a number of times."""

    def __init__(self, times: int, error: Exception | None = None) -> None:
        self.left, self.error, self.calls = times, error or away(), 0

    def __getattr__(self, name: str) -> Callable[..., str]:
        def operation(*arguments: Any, **named: Any) -> str:
            self.calls += 1
            if self.left > 0:
                self.left -= 1
                raise self.error
            return name

        return operation


def away() -> Exception:
    error = StorageInternalError("commit")
    error.__cause__ = OperationalError("select", {}, Exception("the connection is lost"))
    return error


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses asked for; time passes by them alone."""
    taken: list[float] = []
    monkeypatch.setattr(retrying, "pause", taken.append)
    monkeypatch.setattr(retrying.time, "monotonic", lambda: sum(taken))
    return taken


def test_a_database_that_comes_back_is_asked_again_with_growing_pauses(
    pauses: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    storage = retrying.retrying(Away(4))  # type: ignore[arg-type]
    assert storage.get_all_studies() == "get_all_studies"
    assert pauses == [0.5, 1.0, 2.0, 4.0]
    told = capsys.readouterr().err
    assert told.count("does not answer") == 1 and told.count("answers again") == 1


def test_a_session_whose_transaction_was_cut_off_is_forgotten(pauses: list[float]) -> None:
    refused, resets = PendingRollbackError("Can't reconnect until invalid transaction is rolled back."), list[int]()
    storage = retrying.retrying(Away(2, refused), reset=lambda: resets.append(1))  # type: ignore[arg-type]
    assert storage.get_all_studies() == "get_all_studies"
    assert len(resets) == 2 and len(pauses) == 2


def test_one_that_stays_away_is_given_up_after_a_bounded_time(pauses: list[float]) -> None:
    storage = retrying.retrying(Away(10**6), seconds=60.0)  # type: ignore[arg-type]
    with pytest.raises(StorageInternalError):
        storage.get_all_studies()
    assert sum(pauses) == pytest.approx(60.0)
    with (
        pytest.raises(StoreFailed, match=r"the store .* cannot be used .*Its trials are kept"),
        errors_explained("sqlite:///x", Path()),
    ):
        storage.get_all_studies()


def test_an_error_that_is_not_about_the_connection_is_not_repeated(pauses: list[float]) -> None:
    broken = Away(1, ValueError("no such table"))
    with pytest.raises(ValueError, match="no such table"):
        retrying.retrying(broken).get_all_studies()  # type: ignore[arg-type]
    assert broken.calls == 1 and not pauses


def test_a_trial_whose_end_was_written_before_the_answer_was_lost_has_ended(pauses: list[float]) -> None:
    class Ends(Away):
        def set_trial_state_values(self, *arguments: Any, **named: Any) -> bool:
            self.calls += 1
            raise away() if self.calls == 1 else UpdateFinishedTrialError

    storage = retrying.retrying(Ends(0))  # type: ignore[arg-type]
    assert storage.set_trial_state_values(0, 1) is True  # type: ignore[arg-type]


def test_a_worker_that_is_asked_to_stop_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    import signal

    from attnlab.base.interrupts import listening

    storage = retrying.retrying(Away(10**6))  # type: ignore[arg-type]
    with listening() as stop, pytest.raises(Interrupted):
        stop.received = signal.SIGTERM
        storage.get_all_studies()


@pytest.mark.slow
def test_a_restarted_database_ends_no_worker_and_loses_no_trial(toy: Toy, tmp_path: Path) -> None:
    path = tmp_path / "sweep"
    with running() as database:
        config = toy(vary="x=0,1,2,3,4,5,6,7", hill={"gate": True}, store=database.address)
        workers = two_at_work(config, path)
        database.stop("immediate")
        (path / "open").touch()
        time.sleep(12)
        database.start()
        for worker in workers:
            worker.join(PATIENCE)
            assert worker.exitcode == 0
        assert states(path) == ["finished"] * 8
        assert all(len(pids) == 1 for pids in lines(path, "done").values())
    assert read_status(path)["state"] == "finished"


@pytest.mark.slow
def test_a_database_that_does_not_come_back_is_one_sentence_and_the_trial_is_kept(
    toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retrying, "LONGEST_WAIT", 2.0)
    path = tmp_path / "sweep"
    with running() as database:
        config = toy(vary="x=0,1,2", hill={"gate": True}, store=database.address)
        worker = FORK.Process(target=run_sweep, args=(config, path))
        worker.start()
        wait_for(lambda: lines(path, "begun"))
        database.stop()
        (path / "open").touch()
        worker.join(PATIENCE)
        status = read_status(path)
        assert worker.exitcode == 1 and status["state"] == "failed" and "the store postgresql" in status["reason"]
        database.start()
        resume_sweep(path, SWEEP.saved(path))
        assert states(path) == ["finished"] * 3


def damaged_config(path: Path) -> None:
    (path / "config.yaml").write_text("hill: {x: 1}\n")


def damage(file: str, change: Callable[[str], str]) -> Callable[[Path], None]:
    def apply(path: Path) -> None:
        target = next(iter(path.glob(file)))
        target.write_text(change(target.read_text()))

    return apply


def record(**values: Any) -> Callable[[str], str]:
    return lambda text: json.dumps({**json.loads(text), **values})


def trial(**attributes: Any) -> Callable[[str], str]:
    """A journal whose first trial has other attributes."""

    def change(text: str) -> str:
        entries = [json.loads(line) for line in text.splitlines()]
        next(entry for entry in entries if "user_attrs" in entry)["user_attrs"].update(attributes)
        return "".join(json.dumps(entry) + "\n" for entry in entries)

    return change


DAMAGES = {
    "no section": (damaged_config, "'sweep' is no group of settings"),
    "section": (damage("config.yaml", lambda _: "sweep: [1, 2]\n"), "'sweep' is no group of settings"),
    "job": (damage("config.yaml", lambda text: text.replace("job: toy", "job: toi")), "unknown job 'toi'"),
    "no vary": (damage("config.yaml", lambda _: "sweep: {job: toy}\n"), "--vary is missing"),
    "study": (damage("run.json", record(study=["a"])), r"run\.json is damaged: study"),
    "tested": (damage("run.json", record(tested=[{"folder": 1}])), r"run\.json: tested\.0\.folder"),
    "versions": (damage("run.json", record(versions=None)), r"run\.json is damaged: versions"),
    "results": (damage("trials/x-1*/seed-0/run.json", record(results={"dev_accuracy": "x"})), "dev_accuracy"),
    "training": (damage("trials/x-1*/seed-0/run.json", record(training=None)), "training"),
    "journal lines": (damage("journal.log", lambda text: "[]\n" + text), "cannot be used"),
    "journal text": (damage("journal.log", lambda text: '"x"\n' + text), "cannot be used"),
    "journal codes": (damage("journal.log", lambda text: text.replace('"op_code":', '"op_code":9')), "cannot be used"),
    "journal empty": (damage("journal.log", lambda _: ""), "cannot be used"),
    "journal gone": (lambda path: (path / "journal.log").unlink(), "cannot be used"),
    "settings": (damage("journal.log", trial(settings=[1])), "trial 0 has other settings"),
    "other settings": (damage("journal.log", trial(settings={"seed": 1})), "trial 0 has other settings"),
    "deep settings": (damage("journal.log", trial(settings={"hill.x": {"a": 1}})), "trial 0 has settings"),
    "seeds": (damage("journal.log", trial(seeds=["../x"])), "trial 0 has seeds"),
    "folder": (damage("journal.log", trial(folder="../../../outside")), "trial 0 names the folder"),
    "dots": (damage("journal.log", trial(folder="..")), "trial 0 names the folder"),
    "absolute": (damage("journal.log", trial(folder="/tmp/outside")), "trial 0 names the folder"),
    "reason": (damage("journal.log", trial(reason=3)), "trial 0 has a reason"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_sweep_is_one_sentence(name: str, toy: Toy, tmp_path: Path) -> None:
    apply, sentence = DAMAGES[name]
    path = run_sweep(toy(vary="x=0,1"), tmp_path / "sweep")
    apply(path)
    with pytest.raises((UserError, RunFailed), match=sentence) as told:
        resume_sweep(path, SWEEP.saved(path))
    assert "\n" not in str(told.value)
