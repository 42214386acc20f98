"""The trials of a sweep as a queue that several workers empty: each is done once, and none is lost.

A trial waits, runs, and ends complete, pruned or failed. The cells of a grid wait from the beginning; random and guided
search draw a new one when nothing waits. A trial whose worker is gone waits again, under the same number and with the
same run folders, so that it goes on at its checkpoint.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
from optuna.trial import TrialState

from attnlab.base import console
from attnlab.base.errors import UserError
from attnlab.jobs.measures import ranking
from attnlab.experiments.sweep.claims import Claims, Held
from attnlab.experiments.sweep.config import DEFAULT_TRIALS
from attnlab.experiments.sweep.samplers import distributions, pruner, sampler
from attnlab.experiments.sweep.space import Settings, axes_of, grid, identity, label_of
from attnlab.experiments.sweep.store import open_store, told
from attnlab.jobs.registry import config_of
from attnlab.jobs.several import folder_name

STATES = {
    TrialState.WAITING: "waiting",
    TrialState.RUNNING: "running",
    TrialState.COMPLETE: "finished",
    TrialState.PRUNED: "pruned",
    TrialState.FAIL: "failed",
}
NOTHING_NEW = 20  # draws in a row that were known already: the space is exhausted


@dataclass(frozen=True)
class Unit:
    """One trial: settings, the seeds to run them with, and the folder below trials/."""

    number: int
    settings: Settings
    seeds: tuple[int, ...]
    folder: str
    state: str
    reason: str
    repeats: bool  # settings that had a trial before: more seeds, or another try

    @classmethod
    def of(cls, trial: Any) -> Unit:
        said = trial.user_attrs
        state = STATES[trial.state] if isinstance(trial, optuna.trial.FrozenTrial) else "running"
        return cls(
            trial.number,
            said.get("settings", trial.params),
            tuple(said.get("seeds", ())),
            said.get("folder", ""),
            state,
            said.get("reason", ""),
            said.get("repeats", False),
        )

    def path(self, root: Path, seed: int) -> Path:
        return root / "trials" / self.folder / f"seed-{seed}"

    @property
    def label(self) -> str:
        return label_of(self.settings)


class Queue:
    """The study of a sweep, and the locks that say who works on what."""

    def __init__(self, root: Path, config: Any, study: str, new: bool = False) -> None:
        self.root, self.config, self.sweep = root, config, config.sweep
        self.axes = axes_of(config)
        self.storage = open_store(self.sweep.store, root)
        self.claims = Claims(root / "claims")
        measure = ranking(config_of(self.sweep.job).headlines)
        direction: Any = "maximize" if measure.better == "higher" else "minimize"
        with told(self.sweep.store, root, UserError):
            if new:
                optuna.create_study(storage=self.storage, study_name=study, direction=direction)
            self.study = optuna.load_study(study_name=study, storage=self.storage, pruner=pruner(self.sweep.prune))
            self.study_id = self.storage.get_study_id_from_name(study)

    def told(self) -> AbstractContextManager[None]:
        return told(self.sweep.store, self.root)

    def units(self) -> list[Unit]:
        """Every trial, oldest first."""
        with self.told():
            return [Unit.of(trial) for trial in self.study.get_trials(deepcopy=False)]

    def fill(self) -> int:
        """Let wait what is asked for and not there yet: cells of the grid, more seeds; how many that is."""
        with self.claims.turn:
            known = self.units()
            done = {(identity(unit.settings), seed) for unit in known for seed in unit.seeds}
            folders = {identity(unit.settings): unit.folder for unit in known}
            hopeless = {identity(unit.settings) for unit in known if unit.state in ("pruned", "failed")}
            cells = list(grid(self.axes)) if self.sweep.search == "grid" else _distinct(known)
            seeds = [[seed] for seed in range(self.sweep.seeds)]
            added = 0
            for some in seeds if self.sweep.search == "grid" else [[seed for (seed,) in seeds]]:
                for settings in cells:
                    cell = identity(settings)
                    missing = [seed for seed in some if (cell, seed) not in done]
                    if missing and cell not in hopeless:
                        folder = folders.setdefault(cell, folder_name(label_of(settings), folders.values()))
                        self._add(settings, missing, folder, repeats=self.sweep.search != "grid")
                        added += 1
            return added

    def retry(self) -> int:
        """Let wait again what failed; how many that is."""
        with self.claims.turn:
            last = {(identity(unit.settings), seed): unit for unit in self.units() for seed in unit.seeds}
            failed = {unit.number: unit for unit in last.values() if unit.state == "failed"}
            for unit in failed.values():
                self._add(unit.settings, unit.seeds, unit.folder, repeats=True)
            return len(failed)

    def _add(self, settings: Mapping[str, Any], seeds: Sequence[int], folder: str, repeats: bool) -> None:
        fixed = {} if self.sweep.search == "grid" else dict(settings)
        said = {"settings": dict(settings), "seeds": list(seeds), "folder": folder, "repeats": repeats}
        with self.told():
            self.study.enqueue_trial(fixed, user_attrs=said)

    def claim(self) -> Claim | None:
        """The next trial for this process, or None if there is nothing to begin."""
        with self.claims.turn:
            self._take_back()
            for _ in range(NOTHING_NEW):
                known = self.units()
                if not any(unit.state == "waiting" for unit in known) and not self._may_draw(known):
                    return None
                claim = self._ask(known)
                if claim is not None:
                    return claim
        if self.sweep.search != "grid":
            console.say("nothing new is left to try in this space.")
        return None

    def busy(self) -> bool:
        """Whether some other worker is at work: what it has may come back."""
        return any(unit.state in ("running", "waiting") for unit in self.units())

    def _take_back(self) -> None:
        """Trials of workers that are gone wait again."""
        with self.told():
            for trial in self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
                if self.claims.abandoned(trial.number, trial.user_attrs.get("host")):
                    console.say(f"trial {trial.number}: its worker is gone, it goes back.")
                    self.put_back(trial.number)

    def put_back(self, number: int) -> None:
        trial_id = self.storage.get_trial_id_from_study_id_trial_number(self.study_id, number)
        self.storage.set_trial_state_values(trial_id, state=TrialState.WAITING)

    def _may_draw(self, known: Sequence[Unit]) -> bool:
        if self.sweep.search == "grid":
            return False
        limit = self.sweep.trials or (None if self.sweep.seconds else DEFAULT_TRIALS)
        return limit is None or sum(not unit.repeats for unit in known) < limit

    def _ask(self, known: Sequence[Unit]) -> Claim | None:
        """A trial that waits, or a new one; None if it had been settled already."""
        drawn = {} if self.sweep.search == "grid" else distributions(self.axes)
        with self.told():
            self.study.sampler = sampler(self.sweep.search, self.sweep.search_seed, len(known))
            trial = self.study.ask(drawn)
            claim = Claim(self, trial, self.claims.take(trial.number))
            if "settings" not in trial.user_attrs:
                self._describe(trial, known)
            trial.set_user_attr("host", platform.node())
        claim.unit = Unit.of(trial)
        return None if self._settled(claim, known) else claim

    def _describe(self, trial: optuna.Trial, known: Sequence[Unit]) -> None:
        """Write down beside a new trial what is to be run for it."""
        folder = folder_name(f"{trial.number:03d}-{label_of(trial.params)}", {unit.folder for unit in known})
        for name, value in {"seeds": list(range(self.sweep.seeds)), "folder": folder, "settings": trial.params}.items():
            trial.set_user_attr(name, value)

    def _settled(self, claim: Claim, known: Sequence[Unit]) -> bool:
        """Nothing to run: a seed of this cell was hopeless, or the same settings were drawn and finished before."""
        cell, seeds = identity(claim.unit.settings), set(claim.unit.seeds)
        alike = [unit for unit in known if unit.number != claim.unit.number and identity(unit.settings) == cell]
        hopeless = next((unit for unit in alike if unit.state == "pruned"), None)
        before = next((unit for unit in alike if unit.state == "finished" and seeds <= set(unit.seeds)), None)
        if (one := hopeless or before) is None:
            return False
        with self.told():
            claim.trial.set_user_attr("folder", one.folder)
            value = self.study.get_trials(deepcopy=False)[one.number].value
        if hopeless is None and value is not None:
            claim.complete(value)
        else:
            claim.prune(one.reason or "pruned with another seed")
        return True


def _distinct(units: Sequence[Unit]) -> list[Settings]:
    """The settings that have been tried."""
    return list({identity(unit.settings): unit.settings for unit in units if unit.seeds}.values())


class Claim:
    """A trial this process has: it ends by exactly one of the four ways below."""

    unit: Unit

    def __init__(self, queue: Queue, trial: optuna.Trial, held: Held) -> None:
        self.queue, self.trial, self._held = queue, trial, held

    def complete(self, value: float) -> None:
        self._tell(TrialState.COMPLETE, value)

    def prune(self, reason: str) -> None:
        self._tell(TrialState.PRUNED, reason=reason)

    def fail(self, reason: str) -> None:
        self._tell(TrialState.FAIL, reason=reason)

    def give_back(self) -> None:
        """Somebody else may go on with it."""
        try:
            with self.queue.claims.turn, self.queue.told():
                self.queue.put_back(self.trial.number)
        finally:
            self.let_go()

    def let_go(self) -> None:
        """Without a word to the store: whoever looks next finds it abandoned."""
        self._held.release()

    def _tell(self, state: TrialState, value: float | None = None, reason: str = "") -> None:
        try:
            with self.queue.told():
                if reason:
                    self.trial.set_user_attr("reason", reason)
                self.queue.study.tell(self.trial, value, state)
        finally:
            self.let_go()
