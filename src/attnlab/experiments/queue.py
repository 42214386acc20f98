"""The trials of a sweep as a queue that several workers empty: each is run once, and none is lost.

A trial waits, runs, and ends complete, pruned or failed. The cells of a grid wait from the beginning; random and guided
search draw a new one when nothing waits. A trial whose worker was lost is requeued under the same number and with the
same run folders, so that it resumes at its checkpoint.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any, Literal

import optuna
from filelock import FileLock, Timeout
from optuna.trial import TrialState

from attnlab.base import console
from attnlab.base.errors import UserError
from attnlab.base.files import folder_name
from attnlab.config.axes import Settings, label_of
from attnlab.experiments.config import DEFAULT_TRIALS, SweepConfig
from attnlab.experiments.space import axes_of, grid, identity
from attnlab.experiments.store import distributions, errors_explained, open_store, pruner, sampler
from attnlab.jobs.registry import KINDS

STATES = {
    TrialState.WAITING: "waiting",
    TrialState.RUNNING: "running",
    TrialState.COMPLETE: "finished",
    TrialState.PRUNED: "pruned",
    TrialState.FAIL: "failed",
}
FOLDER = re.compile(r"(?!\.{1,2}$)[\w.-]*")  # below trials/, never outside; none until the trial is described
NOTHING_NEW = 20  # draws in a row that repeat earlier ones: the space is exhausted


@dataclass(frozen=True)
class QueuedTrial:
    """One trial: settings, the seeds to run them with, and the folder below trials/."""

    number: int
    settings: Settings
    seeds: tuple[int, ...]
    folder: str
    state: str
    reason: str
    repeats: bool
    """Settings that had a trial before: more seeds, or another try."""

    @classmethod
    def of(cls, trial: Any, names: Collection[str]) -> QueuedTrial:
        """`names` are those of the settings that the sweep varies."""
        attributes = trial.user_attrs
        _must_be_a_trial(trial.number, {"settings": trial.params, **attributes}, names)
        state = STATES[trial.state] if isinstance(trial, optuna.trial.FrozenTrial) else "running"
        return cls(
            trial.number,
            attributes.get("settings", trial.params),
            tuple(attributes.get("seeds", ())),
            attributes.get("folder", ""),
            state,
            attributes.get("reason", ""),
            attributes.get("repeats", False),
        )

    def path(self, root: Path, seed: int) -> Path:
        return root / "trials" / self.folder / f"seed-{seed}"

    @property
    def label(self) -> str:
        return label_of(self.settings)


def _must_be_a_trial(number: int, attributes: Mapping[str, Any], names: Collection[str]) -> None:
    """Raise a ValueError for what no sweep has written: a store can be damaged, or somebody else's."""
    settings, seeds = attributes["settings"], attributes.get("seeds", [])
    folder, reason = attributes.get("folder", ""), attributes.get("reason", "")
    if not isinstance(settings, dict) or not set(settings) <= set(names):
        raise ValueError(f"trial {number} has other settings than the sweep varies")
    if not all(value is None or isinstance(value, str | int | float) for value in settings.values()):
        raise ValueError(f"trial {number} has settings that are no values")
    if not isinstance(seeds, list) or not all(isinstance(seed, int) and seed >= 0 for seed in seeds):
        raise ValueError(f"trial {number} has seeds that are no numbers")
    if not isinstance(folder, str) or FOLDER.fullmatch(folder) is None:
        raise ValueError(f"trial {number} names the folder {str(folder)[:100]!r}, which is not one of this sweep")
    if not isinstance(reason, str):
        raise ValueError(f"trial {number} has a reason that is no text")


class Queue:
    """The study of a sweep, and the locks of its workers."""

    def __init__(self, root: Path, config: SweepConfig, study: str, new: bool = False) -> None:
        self.root, self.config, self.sweep = root, config, config.sweep
        self.axes = axes_of(config)
        self.storage = open_store(self.sweep.store, root, known=not new)
        self.claims = Claims(root / "claims")
        higher = KINDS[self.sweep.job].chooses_by.better == "higher"
        direction: Literal["maximize", "minimize"] = "maximize" if higher else "minimize"
        with errors_explained(self.sweep.store, root, UserError):
            if new:
                optuna.create_study(storage=self.storage, study_name=study, direction=direction)
            self.study = optuna.load_study(study_name=study, storage=self.storage, pruner=pruner(self.sweep.prune))
            self.study_id = self.storage.get_study_id_from_name(study)

    def errors_explained(self) -> AbstractContextManager[None]:
        return errors_explained(self.sweep.store, self.root)

    def trials(self) -> list[QueuedTrial]:
        """Every trial, oldest first."""
        with self.errors_explained():
            return [QueuedTrial.of(trial, self.axes) for trial in self.study.get_trials(deepcopy=False)]

    def fill(self) -> int:
        """Queue what is asked for and missing: cells of the grid, more seeds; returns their number."""
        with self.claims.turn:
            earlier = self.trials()
            done = {(identity(queued.settings), seed) for queued in earlier for seed in queued.seeds}
            folders = {identity(queued.settings): queued.folder for queued in earlier}
            given_up = {identity(queued.settings) for queued in earlier if queued.state in ("pruned", "failed")}
            cells = list(grid(self.axes)) if self.sweep.search == "grid" else _distinct(earlier)
            seeds = [[seed] for seed in range(self.sweep.seeds)]
            added = 0
            for some in seeds if self.sweep.search == "grid" else [[seed for (seed,) in seeds]]:
                for settings in cells:
                    cell = identity(settings)
                    missing = [seed for seed in some if (cell, seed) not in done]
                    if missing and cell not in given_up:
                        folder = folders.setdefault(cell, folder_name(label_of(settings), folders.values()))
                        self._add(settings, missing, folder, repeats=self.sweep.search != "grid")
                        added += 1
            return added

    def retry(self) -> int:
        """Requeue what failed; returns the number."""
        with self.claims.turn:
            last = {(identity(queued.settings), seed): queued for queued in self.trials() for seed in queued.seeds}
            failed = {queued.number: queued for queued in last.values() if queued.state == "failed"}
            for queued in failed.values():
                self._add(queued.settings, queued.seeds, queued.folder, repeats=True)
            return len(failed)

    def _add(self, settings: Mapping[str, Any], seeds: Sequence[int], folder: str, repeats: bool) -> None:
        fixed = {} if self.sweep.search == "grid" else dict(settings)
        attributes = {"settings": dict(settings), "seeds": list(seeds), "folder": folder, "repeats": repeats}
        with self.errors_explained():
            self.study.enqueue_trial(fixed, user_attrs=attributes)

    def claim(self) -> Claim | None:
        """The next trial for this process, or None if there is nothing to start."""
        with self.claims.turn:
            self._requeue_abandoned()
            for _ in range(NOTHING_NEW):
                earlier = self.trials()
                if not any(queued.state == "waiting" for queued in earlier) and not self._may_draw(earlier):
                    return None
                claim = self._ask(earlier)
                if claim is not None:
                    return claim
        if self.sweep.search != "grid":
            console.say("every setting of this space was tried.")
        return None

    def busy(self) -> bool:
        """Whether another worker is running: its trial may be requeued."""
        return any(queued.state in ("running", "waiting") for queued in self.trials())

    def _requeue_abandoned(self) -> None:
        """Requeue the trials of lost workers."""
        with self.errors_explained():
            for trial in self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
                if self.claims.abandoned(trial.number, trial.user_attrs.get("host")):
                    with suppress(optuna.exceptions.UpdateFinishedTrialError):  # its worker ended it in this moment
                        self.requeue(trial.number)
                        console.say(f"trial {trial.number} requeued: its worker was lost.")

    def requeue(self, number: int) -> None:
        trial_id = self.storage.get_trial_id_from_study_id_trial_number(self.study_id, number)
        self.storage.set_trial_state_values(trial_id, state=TrialState.WAITING)

    def _may_draw(self, earlier: Sequence[QueuedTrial]) -> bool:
        if self.sweep.search == "grid":
            return False
        limit = self.sweep.trials or (None if self.sweep.seconds else DEFAULT_TRIALS)
        return limit is None or sum(not queued.repeats for queued in earlier) < limit

    def _ask(self, earlier: Sequence[QueuedTrial]) -> Claim | None:
        """A waiting trial, or a new one; None if its result is earlier already."""
        drawn = {} if self.sweep.search == "grid" else distributions(self.axes)
        with self.errors_explained():
            self.study.sampler = sampler(self.sweep.search, self.sweep.search_seed, len(earlier))
            trial = self.study.ask(drawn)
            claim = Claim(self, trial, self.claims.take(trial.number))
            if "settings" not in trial.user_attrs:
                self._describe(trial, earlier)
            trial.set_user_attr("host", platform.node())
            claim.queued = QueuedTrial.of(trial, self.axes)
        return None if self._settled(claim, earlier) else claim

    def _describe(self, trial: optuna.Trial, earlier: Sequence[QueuedTrial]) -> None:
        """Store with a new trial what is to be run for it."""
        folder = folder_name(f"{trial.number:03d}-{label_of(trial.params)}", {queued.folder for queued in earlier})
        for name, value in {"seeds": list(range(self.sweep.seeds)), "folder": folder, "settings": trial.params}.items():
            trial.set_user_attr(name, value)

    def _settled(self, claim: Claim, earlier: Sequence[QueuedTrial]) -> bool:
        """Nothing to run: a seed of this cell was pruned, or the same settings were drawn and finished before."""
        cell, seeds = identity(claim.queued.settings), set(claim.queued.seeds)
        alike = [
            queued for queued in earlier if queued.number != claim.queued.number and identity(queued.settings) == cell
        ]
        pruned_before = next((queued for queued in alike if queued.state == "pruned"), None)
        before = next((queued for queued in alike if queued.state == "finished" and seeds <= set(queued.seeds)), None)
        if (other := pruned_before or before) is None:
            return False
        with self.errors_explained():
            claim.trial.set_user_attr("folder", other.folder)
            value = self.study.get_trials(deepcopy=False)[other.number].value
        if pruned_before is None and value is not None:
            claim.complete(value)
        else:
            claim.prune(other.reason or "pruned with another seed")
        return True


def _distinct(trials: Sequence[QueuedTrial]) -> list[Settings]:
    """The settings that have been tried."""
    return list({identity(queued.settings): queued.settings for queued in trials if queued.seeds}.values())


class Claim:
    """A trial this process runs: it ends in exactly one of the ways below."""

    queued: QueuedTrial

    def __init__(self, queue: Queue, trial: optuna.Trial, held: Held) -> None:
        self.queue, self.trial, self._held = queue, trial, held

    def complete(self, value: float) -> None:
        self._tell(TrialState.COMPLETE, value)

    def prune(self, reason: str) -> None:
        self._tell(TrialState.PRUNED, reason=reason)

    def fail(self, reason: str) -> None:
        self._tell(TrialState.FAIL, reason=reason)

    def requeue(self) -> None:
        """Another worker may resume it."""
        try:
            with self.queue.claims.turn, self.queue.errors_explained():
                self.queue.requeue(self.trial.number)
        finally:
            self.release()

    def release(self) -> None:
        """Without telling the store: the next worker finds it abandoned."""
        self._held.release()

    def _tell(self, state: TrialState, value: float | None = None, reason: str = "") -> None:
        try:
            with self.queue.errors_explained():
                if reason:
                    self.trial.set_user_attr("reason", reason)
                self.queue.study.tell(self.trial, value, state)
        finally:
            self.release()


BEAT = 15.0  # seconds between two signs of life
SILENCE = 120.0  # after so many without one, a worker on another machine is lost


class Claims:
    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.turn = FileLock(folder / "turn.lock")

    def take(self, number: int) -> Held:
        return Held(self._path(number))

    def abandoned(self, number: int, host: str | None) -> bool:
        """Whether no worker holds a trial that is recorded as running; to be called under `turn`."""
        path = self._path(number)
        lock = FileLock(path)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return False
        lock.release()
        return host in (None, platform.node()) or self._silent(path) > SILENCE

    def _silent(self, path: Path) -> float:
        """Seconds since the last sign of life, by the clock of the file system."""
        now = self.folder / f"clock-{platform.node()}-{os.getpid()}"
        now.touch()
        try:
            return now.stat().st_mtime - path.stat().st_mtime
        finally:
            now.unlink(missing_ok=True)

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:05d}.lock"


class Held:
    """A trial this process runs, until `release`."""

    def __init__(self, path: Path) -> None:
        self._lock = FileLock(path)
        self._lock.acquire(timeout=0)
        self._done = Event()
        self._beat = Thread(target=self._heartbeat, args=(path,), daemon=True)
        self._beat.start()

    def _heartbeat(self, path: Path) -> None:
        while True:
            with suppress(OSError):  # the network may be away for a moment
                os.utime(path)
            if self._done.wait(BEAT):
                return

    def release(self) -> None:
        self._done.set()
        self._beat.join()
        self._lock.release()
