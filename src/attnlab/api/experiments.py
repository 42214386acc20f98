"""`lab.compare` and `lab.sweep`: many runs planned together, and their results as a table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnlab.api.gpt import GPT, attention_name
from attnlab.api.inputs import Inputs, keys_of
from attnlab.api.table import Table
from attnlab.api.train import ATTENTION, DATA, call_text, folder_settings, model_settings
from attnlab.base import html
from attnlab.config.axes import parse_axes
from attnlab.config.gpt import GPTSection
from attnlab.config.recipe import Key, check, leaves, load
from attnlab.config.sections import Section
from attnlab.experiments.config import CLASSIFIER_AXES, chosen_job, comparison_of, sweep_of
from attnlab.runs.folder import ROOT, RunFolder, called_from_python, fresh_path, read_record, read_status

if TYPE_CHECKING:
    from attnlab.api.train import Data
    from attnlab.experiments.results import ComparisonResults, ExperimentRow, SweepResults, TestScores
    from attnlab.stats.intervals import Measure


def compare(model: GPT | None = None, data: Data = None, **settings: Any) -> Comparison:
    """Run variants of a job with several seeds each, on the same data and budget.

    `attention` is a list of names, files or classes; `vary={"optimizer.lr": [1e-3, 1e-2]}`, `changes`, `arms`, `seeds`
    and the others are those of `attnlab compare --help-all`. `job` is language unless given; with `models`, `methods`
    or `optimizers` it is classify. Also `recipe`, `run` (the folder) and `overwrite`.
    """
    from attnlab.experiments.compare import run_comparison

    return Comparison(_start("compare", comparison_of, "language", run_comparison, model, data, settings))


def sweep(model: GPT | None = None, data: Data = None, **settings: Any) -> Sweep:
    """Search over the settings of a job: `vary={"optimizer.lr": [1e-3, 1e-2]}`; the winner on dev is scored on test.

    The settings are those of `attnlab sweep --help-all` and of the job, `job="language"` for example (without it,
    classify). Also `recipe`, `run` (the folder) and `overwrite`.
    """
    from attnlab.experiments.store import must_have_optuna

    must_have_optuna()
    from attnlab.experiments.sweep import run_sweep

    return Sweep(_start("sweep", sweep_of, "classify", run_sweep, model, data, settings))


def _start(
    name: str, config_of: Any, default: str, run_experiment: Any, model: Any, data: Any, settings: Mapping[str, Any]
) -> Path:
    """Check the settings, write what was handed in into the folder, and run the experiment."""
    options = dict(settings)
    recipe, run, overwrite = folder_settings(options)
    path = run or fresh_path(ROOT, name)
    implied: dict[Key, str] = {(name, axis): "classify" for axis in CLASSIFIER_AXES} if name == "compare" else {}
    chosen: dict[Key, Any] = {(name, word): options[word] for word in ("job", *CLASSIFIER_AXES) if word in options}
    job = chosen_job(name, recipe, chosen, implied, None, default)
    kind: type[Section] = config_of(job)
    inputs = Inputs(path, bool(overwrite))
    given = _of_model(model, job, name, kind) | keys_of(kind, options)
    if data is not None:
        given[DATA[job]] = list(data) if isinstance(data, Iterator) else data  # the settings are read twice
    given = {key: _named(key, value) for key, value in _varied(given, name).items()}
    config = load(kind, recipe, inputs.settings(kind, given, stream=job == "language"))
    stored = {
        key: _stored(key, value, partial(inputs.attention, section=_shape(config))) for key, value in given.items()
    }
    config = load(kind, recipe, inputs.settings(kind, stored, stream=job == "language"))
    with called_from_python(call_text(name, model, data, settings)), inputs.written():
        run_experiment(config, path, bool(overwrite))
    if inputs.notes:
        RunFolder.join(path).update_record(changes=inputs.notes)
    return path


def _of_model(model: Any, job: str, name: str, kind: type[Section]) -> dict[Key, Any]:
    """The settings of a GPT; a comparison of language models has its attention among what is compared."""
    given = model_settings(model, job)
    return {key if key in leaves(kind) else (name, key[-1]): value for key, value in given.items()}


def _varied(given: dict[Key, Any], name: str) -> dict[Key, Any]:
    """A list of attention, where a job has one setting for it, is a setting that varies."""
    several = given.get(ATTENTION)
    if not isinstance(several, list | tuple):
        return given
    axes = parse_axes(given.get((name, "vary"), {})) | {".".join(ATTENTION): list(several)}
    return {key: value for key, value in given.items() if key != ATTENTION} | {(name, "vary"): axes}


def _named(key: Key, value: Any) -> Any:
    """Classes and files by name, wherever a setting lists attention."""
    if key[-1] == "attention":
        several = isinstance(value, list | tuple)
        names = [attention_name(each) for each in (value if several else [value])]
        return names if several else names[0]
    if key[-1] == "vary" and isinstance(value, Mapping):
        return {axis: _named((axis.rpartition(".")[2],), values) for axis, values in value.items()}
    return value


def _stored(key: Key, value: Any, store: Any) -> Any:
    """The same with classes replaced by their files."""
    if key[-1] == "attention":
        return [store(each) for each in value] if isinstance(value, list) else store(value)
    if key[-1] == "vary" and isinstance(value, Mapping):
        return {axis: _stored((axis.rpartition(".")[2],), values, store) for axis, values in value.items()}
    return value


def _shape(config: Any) -> GPTSection:
    """The shape in which a mixer is tried: that of the experiment, as far as it has one."""
    section = getattr(config, "model", None)
    values = section.model_dump(exclude_unset=True) if section is not None else {}
    fields = {name: value for name, value in values.items() if name in GPTSection.model_fields}
    return check(GPTSection, {name: value for name, value in fields.items() if name not in ("attention", "positions")})


class Experiment(ABC):
    """What a comparison and a sweep have in common: a folder, a table, and sentences on what may be concluded."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        read_record(self.path)  # raises for a folder that is not a run

    @property
    def state(self) -> str:
        return str(read_status(self.path)["state"])

    @property
    def report(self) -> Path:
        """The page with figures, tables and how to reproduce it."""
        return self.path / "report.html"

    @property
    @abstractmethod
    def table(self) -> Table:
        """One row per variant or cell, the best first."""

    @property
    @abstractmethod
    def conclusions(self) -> list[str]:
        """What may be concluded from these seeds, in sentences."""

    @property
    def runs(self) -> Table:
        """One row per run of the experiment."""
        from attnlab.api.listing import runs

        return Table(row for row in runs(self.path) if row["run"] != str(self.path))

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame."""
        return self.table.to_pandas()

    def __fspath__(self) -> str:
        """An experiment is taken wherever its folder is."""
        return str(self.path)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r}, {self.state})"

    def _repr_html_(self) -> str:
        sentences = "".join(map(html.paragraph, self.conclusions))
        return html.heading(str(self.path)) + html.table(*self._printed()) + sentences + self._figure()

    @abstractmethod
    def _printed(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows as the commands print them."""

    def _figure(self) -> str:
        """The first figure of the report."""
        files = sorted((self.path / "figures").glob("*.png"), key=lambda file: file.stat().st_mtime_ns)
        return html.image(files[0].read_bytes(), files[0].stem) if files else ""


class Comparison(Experiment):
    """The results of `lab.compare`."""

    @property
    def table(self) -> Table:
        results = self._results()
        return Table(
            _facts(row, list(results.kind.measures))
            | {"difference": difference.mean if (difference := results.difference(row)) else None}
            | {"objection": row.objection, "failed": row.reason or None}
            for row in results.ordered
        )

    @property
    def conclusions(self) -> list[str]:
        from attnlab.experiments.compare import view_of
        from attnlab.experiments.views.view import verdicts

        results = self._results()
        return [*verdicts(results), *view_of(results.job).notes(results)]

    def resume(self) -> Comparison:
        """Run the cells that are missing."""
        from attnlab.experiments.compare import resume_comparison
        from attnlab.experiments.experiment import COMPARISON

        resume_comparison(self.path, COMPARISON.saved(self.path))
        return self

    def _results(self) -> ComparisonResults:
        from attnlab.experiments.compare import gather
        from attnlab.experiments.experiment import COMPARISON

        return gather(self.path, COMPARISON.saved(self.path))

    def _printed(self) -> tuple[list[str], list[list[str]]]:
        from attnlab.experiments.compare import view_of

        results = self._results()
        printed = view_of(results.job).table(results, brief=True)
        return printed.header, printed.rows


class Sweep(Experiment):
    """The results of `lab.sweep`."""

    @property
    def table(self) -> Table:
        results, _ = self._results()
        return Table(
            dict(row.settings) | _facts(row, [results.measure]) | {"state": row.state} for row in results.ordered
        )

    @property
    def best(self) -> dict[str, Any]:
        """The settings that were best on dev; empty if nothing is finished."""
        best = self._results()[0].best
        return {} if best is None else dict(best.settings)

    @property
    def test(self) -> dict[str, float]:
        """The test measures of the best, as means over its seeds; empty if the job has none."""
        results, tested = self._results()
        return {} if tested is None else {measure.name: tested.mean(measure).mean for measure in results.on_test}

    @property
    def conclusions(self) -> list[str]:
        from attnlab.experiments.sweep_page import verdicts

        return verdicts(*self._results())

    def resume(self, retry_failed: bool = False) -> Sweep:
        """Run the trials that are missing."""
        from attnlab.experiments.experiment import SWEEP
        from attnlab.experiments.sweep import resume_sweep

        resume_sweep(self.path, SWEEP.saved(self.path), retry_failed)
        return self

    def _results(self) -> tuple[SweepResults, TestScores | None]:
        from attnlab.experiments.sweep import sweep_results

        return sweep_results(self.path)

    def _printed(self) -> tuple[list[str], list[list[str]]]:
        from attnlab.experiments.sweep_page import table

        printed = table(self._results()[0])
        return printed.header, printed.rows


def _facts(row: ExperimentRow, measures: list[Measure]) -> dict[str, Any]:
    """A row of an experiment: each measure with its 95% interval over seeds, which one seed does not have."""
    facts: dict[str, Any] = {"variant": row.label, "seeds": len(row.runs)}
    for measure in measures:
        mean = row.mean(measure.name)
        low, high = mean.interval or (None, None)
        facts |= {measure.name: mean.mean if mean.count else None}
        facts |= {f"{measure.name}_low": low, f"{measure.name}_high": high}
    return facts | {"parameters": row.parameters or None, "steps": row.steps or None}
