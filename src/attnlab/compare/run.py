"""Run a comparison: every cell that is missing, one after the other, then the report.

    comparison/
        config.yaml, run.json, status.json    what was asked, with what, how it stands
        cells/VARIANT/seed-N/                 a run folder for each cell
        results.json, report.html, figures/

A cell that fails is a row with its reason; the others go on. What is finished is never run again.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from attnlab import console
from attnlab.attention import MixerShape, find_variant
from attnlab.attention.audit import sees_future
from attnlab.attention.positions import check_positions
from attnlab.compare.budget import steps_in
from attnlab.compare.cells import Cell, cells, language_config, steps_of, variants
from attnlab.compare.config import CompareConfig
from attnlab.config import check
from attnlab.errors import RunFailed, UserError
from attnlab.jobs.configs import LanguageConfig
from attnlab.jobs.job import RunOptions, run_job
from attnlab.jobs.language import LanguageJob
from attnlab.runs import RunFolder, is_run, read_config, read_record, read_status
from attnlab.training import setup
from attnlab.training.stop import Interrupted, listening

KIND = "compare"
AUDITED = 72  # tokens of the sequences in which the audit looks for the future


def run_comparison(config: CompareConfig, path: Path, overwrite: bool = False) -> Path:
    """A new comparison; returns its folder."""
    config = config.model_copy(deep=True)
    _check(config)
    config.machine = setup.resolve(config.machine)  # once, so that all cells run alike
    run = RunFolder.create(path, KIND, config.model_dump(mode="json"), 0, overwrite)
    return _run(config, run)


def resume_comparison(path: Path, config: CompareConfig) -> Path:
    """Go on with the cells that are missing; `config` is the saved one, or has more seeds."""
    _check(config)
    run = RunFolder.reopen(path)
    run.write_config(config.model_dump(mode="json"))
    return _run(config, run)


def saved_comparison(path: Path) -> CompareConfig:
    """What a comparison was told."""
    kind = read_record(path)["kind"]
    if kind != KIND:
        raise UserError(f"{path} is a {kind} run, not a comparison: use 'attnlab resume {path}'.")
    return check(CompareConfig, read_config(path))


def _check(config: CompareConfig) -> None:
    """Whatever is wrong for all variants is an error; what is wrong for one will be a row."""
    if config.batch.size == "auto":
        raise UserError("--batch-size auto would give each variant a batch of its own: name a number.")
    for variant in variants(config):
        find_variant(variant.attention)
        if variant.positions != "preset":
            check_positions(variant.positions)
        language_config(config, Cell(variant, 0), steps=1)  # refuses a change of something that is not there
    first = language_config(config, next(cells(config)), steps=1)
    stream = LanguageJob(first).read()
    first.model.shape(len(stream.vocabulary)).mixer()


def _run(config: CompareConfig, run: RunFolder) -> Path:
    from attnlab.compare.page import write_comparison_page
    from attnlab.compare.results import gather
    from attnlab.compare.results_file import write_results

    try:
        with listening() as stop:
            plan = _Plan(config, run)
            wanted = list(cells(config))
            for number, cell in enumerate(wanted, start=1):
                stop.check()
                plan.run(cell, f"{number}/{len(wanted)} {cell.variant.label}, seed {cell.seed}")
            stop.check()
        results = gather(run.path, config)
        write_results(run.path, results)
        write_comparison_page(run.path, results)
        if not results.finished:
            raise RunFailed(f"no variant could be run; the first says: {plan.last_reason}")
        run.set_status("finished", f"without {', '.join(results.failed)}" if results.failed else "")
    except Interrupted as interruption:
        run.set_status("interrupted", str(interruption))
        raise
    except BaseException as failure:
        run.set_status("failed", str(failure) or type(failure).__name__)
        raise
    finally:
        run.close()
    return run.path


class _Plan:
    """Trains cells, and keeps in run.json what is decided once for each variant.

    future     the evidence that it sees later tokens, or null
    steps      its budget
    failures   by seed, why it could not be trained
    """

    def __init__(self, config: CompareConfig, run: RunFolder) -> None:
        self.config, self.folder = config, run
        self.known: dict[str, dict[str, Any]] = read_record(run.path).get("variants", {})
        self.last_reason = ""

    def run(self, cell: Cell, label: str) -> None:
        """Train the cell, go on with it, or leave it alone when it is done; remember why it cannot be trained."""
        path = cell.path(self.folder.path)
        state = read_status(path)["state"] if is_run(path) else None
        if state == "finished":
            return
        if state is None and path.exists():
            shutil.rmtree(path)  # killed before there was anything to go on with
        known = self.known.setdefault(cell.variant.label, {"failures": {}})
        try:
            self._decide(cell, known)
            config = language_config(self.config, cell, known["steps"])
            again = f"attnlab compare --run {self.folder.path} --resume"
            job: Any = LanguageJob(config)
            run_job(job, RunOptions(path, resume=state is not None, label=label, again=again))
            known["failures"].pop(str(cell.seed), None)
        except Interrupted:
            raise
        except Exception as failure:
            told = isinstance(failure, UserError | RunFailed)
            self.last_reason = str(failure) if told else f"{type(failure).__name__}: {failure}"
            known["failures"][str(cell.seed)] = self.last_reason
            console.warn(f"{cell.variant.label}, seed {cell.seed}: {self.last_reason}")
        self.folder.update_record(variants=self.known)

    def _decide(self, cell: Cell, known: dict[str, Any]) -> None:
        if "steps" in known:
            return
        trial = language_config(self.config, cell, steps=1)
        known["future"] = sees_future(cell.variant.attention, _audited_shape(trial))
        seconds = self.config.budget.seconds
        known["steps"] = steps_of(self.config) if seconds is None else steps_in(seconds, trial)
        self.folder.update_record(variants=self.known)


def _audited_shape(config: LanguageConfig) -> MixerShape:
    """The mixer as it stands in the model, on sequences short enough for an exact look."""
    shape = config.model.shape(vocabulary=1).mixer()
    return replace(shape, context=min(shape.context, AUDITED), dropout=0.0)
