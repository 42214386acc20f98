"""An experiment: many runs of one job, planned together in one folder. A comparison and a sweep are both this.

    EXPERIMENT/
        config.yaml, run.json, status.json    what was asked, with what, its state
        cells/VARIANT/seed-N/                 of a comparison: one run folder per cell
        trials/CELL/seed-N/                   of a sweep: one run folder per cell and seed
        precision.txt                         the precision of all runs, where 'auto' chose it
        results.json, report.html, figures/

A run that fails is a row with its reason; the others continue. What is finished is never run again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from attnlab.base.errors import UserError, unknown
from attnlab.base.files import write_json
from attnlab.base.machine.facts import within_free_memory
from attnlab.config.recipe import check
from attnlab.config.sections import Section, machine_of
from attnlab.experiments.config import (
    CompareConfig,
    SweepConfig,
    comparison_of,
    must_fix_the_batch,
    must_leave_seeds_open,
    sweep_of,
)
from attnlab.jobs.registry import measured
from attnlab.jobs.subruns import keep_only_weights, run_subrun, set_machine, store_precision, with_precision
from attnlab.runs import RunFolder, read_config, read_record
from attnlab.training import setup
from attnlab.training.callbacks import Callback

C = TypeVar("C", bound=Section)


@dataclass(frozen=True)
class Experiment(Generic[C]):
    """One kind of experiment: what its folders have in common, whatever the job."""

    name: str
    """Its command, its section in a configuration, and its kind in run.json."""
    title: str
    config_of: Callable[[str], type[C]]
    default_job: str

    def check(self, config: C, job: str) -> None:
        """Mistakes that concern every run are errors; what is wrong with one will be its row."""
        must_fix_the_batch(config)
        must_leave_seeds_open(config, job, self.title)

    def create(self, config: C, path: Path, overwrite: bool = False) -> RunFolder:
        return RunFolder.create(path, self.name, stored(config), 0, overwrite)

    def resolved(self, config: C) -> C:
        """With every 'auto' of the machine resolved once, so that all runs are made alike."""
        config = config.model_copy(deep=True)
        machine = machine_of(config)
        setup.must_be_together(machine)
        set_machine(config, setup.resolve(machine))
        return config

    def saved(self, path: Path) -> C:
        """What an experiment was asked to do."""
        kind = read_record(path).get("kind")
        if kind != self.name:
            raise UserError(f"{path} is a {kind} run, not a {self.title}: use 'attnlab resume {path}'.")
        values = read_config(path)
        section = values.get(self.name)
        if not isinstance(section, Mapping):
            raise UserError(f"{path / 'config.yaml'}: {self.name!r} is no group of settings: restore the file.")
        job = str(section.get("job", self.default_job))
        if job not in measured():
            raise UserError(f"{path / 'config.yaml'}: {unknown('job', job, measured())}")
        return check(self.config_of(job), values)

    def resume_command(self, path: Path) -> str:
        return f"attnlab {self.name} --run {path} --resume"

    def train(
        self, root: Path, job: str, config: Section, path: Path, label: str, callbacks: tuple[Callback, ...] = ()
    ) -> None:
        """Train one run, resume it, or skip it when it is finished; one that does not fit harms no other."""
        must_be_inside(root, path)
        with within_free_memory():
            run_subrun(job, with_precision(root, config), path, label, self.resume_command(root), callbacks)
        keep_only_weights(path)
        store_precision(root, path)


def must_be_inside(root: Path, path: Path) -> None:
    """Raise for the folder of a run that is elsewhere, by its name or by a link."""
    if not path.resolve().is_relative_to(root.resolve()):
        raise UserError(f"{path} is outside {root}: a run of an experiment is stored inside its folder.")


COMPARISON = Experiment[CompareConfig]("compare", "comparison", comparison_of, "language")
SWEEP = Experiment[SweepConfig]("sweep", "sweep", sweep_of, "classify")


def stored(config: Section) -> dict[str, Any]:
    """What was given, without the defaults: a job may take what is left out from a run it starts from."""
    return config.model_dump(mode="json", exclude_unset=True)


def write_results(root: Path, content: Mapping[str, Any], config: Section, record: Mapping[str, Any]) -> None:
    """results.json: the numbers, the configuration, and what they were measured with."""
    provenance = {name: record[name] for name in ("command", "started", "machine", "versions", "git")}
    write_json(root / "results.json", {**content, "config": config.model_dump(mode="json"), **provenance})
