"""A study: the runs of one experiment of a course in one folder, with its figures and `results.json`.

    FOLDER/
        results.json         settings, machine, cost, and a row per run: scores with intervals, accuracy by epoch
        EXPERIMENT.png       the figures
        RUN/                 one run folder per classifier

The same command with the same folder resumes where it was stopped and trains nothing twice.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from attnlab.base import console
from attnlab.base.errors import DoesNotFit, RunFailed, UserError
from attnlab.base.files import folder_name, write_json
from attnlab.base.interrupts import Interrupted, StopRequest, listening
from attnlab.base.machine import facts
from attnlab.base.machine.facts import is_out_of_memory, within_free_memory
from attnlab.config import check
from attnlab.config.classify import ClassifyConfig
from attnlab.data.tasks.catalog import read_texts
from attnlab.data.tasks.labelled import LabelledSet
from attnlab.jobs.classify.job import ClassifyJob
from attnlab.jobs.classify.memory import must_fit, needed, parameters_of
from attnlab.jobs.study.options import Pair
from attnlab.jobs.study.outcome import FAILED, TOO_LARGE, Outcome, train
from attnlab.report import figures
from attnlab.runs import fresh_path, read_config
from attnlab.training.setup import resolve_device

FEW = 10
"""Instances of a small subset."""


@dataclass(frozen=True)
class Experiment:
    """What is run, and the document's value of every option that is not given."""

    about: str
    run: Callable[[Study], None]
    task: str = "boolq"
    models: tuple[str, ...] = ("distilbert-base-uncased",)
    batch_size: int | str = 32
    rates: tuple[float, ...] = (1e-4,)
    epochs: tuple[int, ...] = (20,)
    pairs: tuple[Pair, ...] = ()
    """Learning rates with their epochs, instead of every rate with every number."""


class Study:
    """An experiment with every value filled in: trains its classifiers, draws, and collects the results."""

    def __init__(
        self,
        name: str,
        default: Experiment,
        asked: argparse.Namespace,
        folder: Path,
        stop: StopRequest,
        changes: Sequence[str] = (),
    ) -> None:
        self.name, self.default, self.asked, self.folder, self.stop = name, default, asked, folder, stop
        self.changes = tuple(changes)
        self.task = asked.task or default.task
        self.models = asked.model or list(default.models)
        self.rates, self.epochs = asked.lr or list(default.rates), asked.num_epochs or list(default.epochs)
        self.pairs = self._pairs()
        self.batch_size = asked.batch_size or default.batch_size
        self.few = bool(asked.small_subset)
        if self.few and asked.examples:
            raise UserError(f"--small_subset True trains on {FEW} instances, --examples on others: give only one.")
        self.data = read_texts(self.config().data)
        self.counts = {split: len(examples) for split, examples in self.data.splits.items()}
        self.majority = {
            split: max(self.data.counts(split)) / count for split, count in self.counts.items() if split != "train"
        }
        self.outcomes: list[Outcome] = []
        self.extra: dict[str, Any] = {}
        """Further entries of results.json."""
        self.figures: list[str] = []

    def config(self, **changes: Mapping[str, Any]) -> ClassifyConfig:
        """The job of one run; `changes` by section."""
        asked = self.asked
        values: dict[str, dict[str, Any]] = {
            "data": {
                "task": self.task,
                "data_folder": asked.data_folder,
                "examples": FEW if self.few else asked.examples,
                "eval_examples": asked.eval_examples,
                "max_tokens": asked.max_length or 128,
            },
            "model": {"name": self.models[0]},
            "optimizer": {"lr": self.rates[0], "weight_decay": 0.01, "beta2": 0.999},
            "batch": {"size": self.batch_size},
            "training": {"epochs": self.epochs[0], "seed": asked.seed, "keep": 1},
            "watch": {"train_sample": asked.eval_examples or 1000, "baselines": False},
            "machine": {"device": asked.device},
        }
        for section, more in changes.items():
            values[section] = values.get(section, {}) | dict(more)
        config: ClassifyConfig = check(ClassifyConfig, values)
        return config

    def _pairs(self) -> list[Pair]:
        """Learning rates with epochs: as given or the document's, else every rate with every number."""
        asked = self.asked
        typed: list[Pair] | None = getattr(asked, "pairs", None)
        if typed and (asked.lr or asked.num_epochs):
            raise UserError("--pairs already has learning rates and epochs: leave out --lr and --num_epochs.")
        if typed or (self.default.pairs and not (asked.lr or asked.num_epochs)):
            return typed or list(self.default.pairs)
        return list(product(self.rates, self.epochs))

    def only_one(self, *names: str) -> None:
        """Raise if several values are given for these options."""
        for name, values in (("model", self.models), ("lr", self.rates), ("num_epochs", self.epochs)):
            if name in names and len(values) > 1:
                raise UserError(f"--{name}: {self.name} takes one value, got {len(values)}.")

    @property
    def command(self) -> str:
        """The command that resumes the study and finishes its figures."""
        words = sys.argv if self.asked.output else [*sys.argv, "--output", str(self.folder)]
        return shlex.join(["python", *words])

    def between_runs(self) -> None:
        """Stop here if a signal asked for it while no run was active."""
        try:
            self.stop.check()
        except Interrupted:
            console.say(f"stopped between two runs; finish the figure with: {self.command}")
            raise

    def train(self, name: str, config: ClassifyConfig, folder: str | None = None) -> Outcome:
        """Train one classifier; its failure ends the study."""
        self.between_runs()
        path = self.folder / (folder or folder_name(name, ()))
        return self.add(train(name, config, path, self.command, self.changes))

    def attempt(self, name: str, config: ClassifyConfig, folder: str | None = None) -> Outcome:
        """The same, but a run that fails is an outcome, and one that does not fit is tried with smaller batches."""
        folder, tried = folder or folder_name(name, ()), []
        while True:
            size = config.batch.size
            tried.append(size)
            try:
                must_fit(config, needed(config, *parameters_of(config)))
                with within_free_memory():
                    return self.train(name, config, folder if size == self.batch_size else f"{folder}-batch-{size}")
            except RunFailed as failure:
                return self.give_up(name, config, FAILED, str(failure))
            except (DoesNotFit, RuntimeError, MemoryError) as failure:
                if not isinstance(failure, DoesNotFit) and not is_out_of_memory(failure):
                    raise
            if not isinstance(size, int) or size == 1:
                sizes = f" with batches of {', '.join(map(str, tried))}" if isinstance(size, int) else ""
                return self.give_up(name, config, TOO_LARGE, f"it does not fit into memory{sizes}.")
            console.warn(f"{name}: batches of {size} do not fit into memory, trying {size // 2}.")
            config = config.model_copy(update={"batch": config.batch.model_copy(update={"size": size // 2})})

    def give_up(self, name: str, config: ClassifyConfig, state: str, reason: str) -> Outcome:
        console.warn(f"{name}: {reason}")
        return self.add(Outcome(name, config.model.name, self.folder / folder_name(name, ()), state, reason))

    def add(self, outcome: Outcome) -> Outcome:
        self.outcomes.append(outcome)
        return outcome

    def score_test(self, outcome: Outcome) -> Outcome:
        """The same with its test scores, computed now: only for what was chosen on dev."""
        self.between_runs()
        scored = replace(outcome, scores=outcome.scores | ClassifyJob.score_test(outcome.path))
        self.outcomes[self.outcomes.index(outcome)] = scored
        return scored

    def draw(self, figure: Any, suffix: str = "") -> None:
        path = self.folder / f"{self.name}{suffix}.png"
        figures.save(figure, path)
        self.figures.append(path.name)
        console.result(f"figure: {path}")

    def results(self) -> dict[str, Any]:
        """For results.json: paths are relative, so that the file can be kept elsewhere."""
        done = [outcome for outcome in self.outcomes if outcome.done]
        rows = [outcome.row(self.counts) for outcome in self.outcomes]
        changes = [change for outcome in done for change in outcome.record["changes"]]
        config = read_config(done[0].path) if done else self.config().model_dump(mode="json")
        examples = {**self.counts, **(done[0].record["data"]["examples"] if done else {})}
        shares = {"guess": 1 / len(self.data.classes), **self.majority}
        if memorized := config["watch"]["overfit"]:
            examples, shares = {"train": memorized}, {"guess": shares["guess"]}
        return {
            "experiment": self.name,
            "command": shlex.join(["python", Path(sys.argv[0]).name, *sys.argv[1:]]),
            "instead": self.instead(),
            "task": self.task,
            "seed": self.asked.seed,
            "max_tokens": config["data"]["max_tokens"],
            "examples": examples,
            "chance": shares,
            "machine": {
                "device": config["machine"]["device"],
                "precision": config["machine"]["precision"],
                "threads": config["machine"]["threads"],
                **{name: facts.describe()[name] for name in ("cpu", "cores", "memory_gib", "devices")},
            },
            "minutes": round(sum(row.get("minutes", 0.0) for row in rows), 2),
            "changes": list(dict.fromkeys(changes)),
            "figures": self.figures,
            "runs": rows,
            **self.extra,
        }

    def instead(self) -> list[list[str]]:
        """What was given, each with the document's value."""
        default, asked = self.default, self.asked
        values: dict[str, tuple[Any, Sequence[Any]]] = {
            "--model": (asked.model, default.models),
            "--batch_size": (asked.batch_size and [asked.batch_size], [default.batch_size]),
            "--lr": (asked.lr, default.rates),
            "--num_epochs": (asked.num_epochs, default.epochs),
            "--pairs": (getattr(asked, "pairs", None), default.pairs),
        }
        return [
            [f"{option} {','.join(map(_plain, given))}", f"{option} {','.join(map(_plain, document))}"]
            for option, (given, document) in values.items()
            if given and list(given) != list(document)
        ]


def _plain(value: Any) -> str:
    if isinstance(value, tuple):
        return "/".join(map(_plain, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def run_study(name: str, experiment: Experiment, asked: argparse.Namespace, changes: Sequence[str] = ()) -> Path:
    """Run an experiment into one folder; `changes` were printed already and are recorded in every run."""
    asked.device = resolve_device(asked.device)  # an error before anything is read or trained
    folder = asked.output or fresh_path(Path("runs"), name)
    with listening() as stop:
        study = Study(name, experiment, asked, folder, stop, changes)
        console.result(chance(study.data))
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"--output: {folder} cannot be created: {error.strerror}.") from None
        try:
            experiment.run(study)
        finally:
            with suppress(OSError):
                folder.rmdir()  # where nothing was trained; a folder with a run in it stays
        write_json(folder / "results.json", study.results())
    console.result(f"results: {folder / 'results.json'}")
    return folder


def chance(data: LabelledSet) -> str:
    """The scores of guessing and of the most common class."""
    parts = [f"random chance on {data.name}: {1 / len(data.classes):.1%}"]
    for split in [name for name in ("dev", "test") if name in data.splits]:
        counts = data.counts(split)
        parts.append(f"always {data.classes[counts.index(max(counts))]!r}: {max(counts) / sum(counts):.1%} of {split}")
    return "; ".join(parts)
