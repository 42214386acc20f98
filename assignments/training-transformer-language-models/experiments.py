"""The experiments of the documents by name: which classifiers are trained, and which results are shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnlab.base import console
from attnlab.base.errors import UserError
from attnlab.base.files import write_text
from attnlab.config import check
from attnlab.config.classify import ClassifyConfig
from attnlab.data.tasks.catalog import read_texts
from attnlab.data.tasks.labelled import LabelledSet
from attnlab.jobs.classify.job import ClassifyJob
from attnlab.report import figures
from attnlab.runs import fresh_path
from attnlab.training.setup import resolve_device
from outcomes import Outcome, attempt, train
from pictures import heat_map, paired_bars

FEW = 10
PREFIX = 128
TYPES = {"full": "full", "head": "head", "prefix": "prompt"}
"""The document's names. Its prefix is 128 embeddings before the text, 128·d parameters: the lab's prompt."""
RATES, EPOCHS = [1e-4, 5e-4, 1e-3], [5, 7, 9]
ENCODERS = [
    "distilbert-base-uncased",
    "bert-base-uncased",
    "bert-large-uncased",
    "bert-large-cased",
    "roberta-base",
    "roberta-large",
]
T5 = ["t5-small", "t5-base", "t5-large"]


@dataclass(frozen=True)
class Asked:
    """The options as given; None: the document's value for the experiment."""

    experiment: str
    task: str | None = None
    model: list[str] | None = None
    small_subset: bool | None = None
    type: str | None = None
    batch_size: int | str | None = None
    lr: list[float] | None = None
    num_epochs: list[int] | None = None
    device: str = "auto"
    seed: int = 0
    output: Path | None = None


@dataclass(frozen=True)
class Experiment:
    about: str
    run: Callable[[Setting], dict[str, Any]]
    task: str = "boolq"
    models: tuple[str, ...] = ("distilbert-base-uncased",)
    batch: int | str = 32
    rates: tuple[float, ...] = (1e-4,)
    epochs: tuple[int, ...] = (20,)


class Setting:
    """An experiment with every value filled in; builds the configurations of its runs."""

    def __init__(self, asked: Asked, folder: Path) -> None:
        default = EXPERIMENTS[asked.experiment]
        self.name, self.type, self.seed, self.device = asked.experiment, asked.type, asked.seed, asked.device
        self.folder = folder
        self.task = asked.task or default.task
        self.models = asked.model or list(default.models)
        self.small_subset, self.few = asked.small_subset, bool(asked.small_subset)
        self.batch = asked.batch_size or default.batch
        self.rates, self.epochs = asked.lr or list(default.rates), asked.num_epochs or list(default.epochs)
        self.data = read_texts(self.config().data)
        self.majority = max(self.data.counts("dev")) / len(self.data.splits["dev"])

    def config(self, **changes: dict[str, Any]) -> ClassifyConfig:
        """The job of one run; `changes` by section."""
        type = self.type or "full"
        values: dict[str, dict[str, Any]] = {
            "data": {"task": self.task, "examples": FEW if self.few else None},
            "model": {"name": self.models[0]} | ({} if type == "full" else {"head": "linear"}),
            "tuning": {"method": TYPES[type], "length": PREFIX},
            "optimizer": {"lr": self.rates[0], "weight_decay": 0.01, "beta2": 0.999},
            "batch": {"size": self.batch},
            "training": {"epochs": self.epochs[0], "seed": self.seed, "keep": 1},
            "machine": {"device": self.device},
        }
        for section, more in changes.items():
            values[section] = values.get(section, {}) | more
        config: ClassifyConfig = check(ClassifyConfig, values)
        return config

    def only(self, *names: str) -> None:
        """Refuse several values for these settings."""
        for name, values in (("model", self.models), ("lr", self.rates), ("num_epochs", self.epochs)):
            if name in names and len(values) > 1:
                raise UserError(
                    f"--{name}: {self.name} takes one value: several are for parameter_tuning, cross_model and t5."
                )

    def draw(self, figure: Any) -> None:
        path = self.folder / f"{self.name}.png"
        figures.save(figure, path)
        console.result(f"figure: {path}")


def run_experiment(asked: Asked) -> Path:
    """Run one experiment; all its output is in one folder."""
    resolve_device(asked.device)  # an error before anything is read or trained
    folder = asked.output or fresh_path(Path("runs"), f"classification-{asked.experiment}")
    setting = Setting(asked, folder)
    console.result(chance(setting.data))
    folder.mkdir(parents=True, exist_ok=True)
    summary = EXPERIMENTS[asked.experiment].run(setting)
    write_text(folder / "results.json", json.dumps(summary, indent=1) + "\n")
    console.result(f"results: {folder / 'results.json'}")
    return folder


def chance(data: LabelledSet) -> str:
    """The scores of guessing and of the most common class."""
    parts = [f"random chance on {data.name}: {1 / len(data.classes):.1%}"]
    for split in [name for name in ("dev", "test") if name in data.splits]:
        counts = data.counts(split)
        parts.append(f"always {data.classes[counts.index(max(counts))]!r}: {max(counts) / sum(counts):.1%} of {split}")
    return "; ".join(parts)


def say(outcome: Outcome, splits: tuple[str, ...] = ("dev", "test")) -> None:
    """Print the scores in the format of the document."""
    for split in splits:
        if f"{split}_accuracy" in outcome.results:
            console.out.print(
                f" - Average {split.upper()} metrics: accuracy={{'accuracy': {outcome.score(split)}}}", markup=False
            )


def overfit(setting: Setting) -> dict[str, Any]:
    """Memorize a few instances: does the set-up learn at all?"""
    setting.only("model", "lr", "num_epochs")
    if setting.small_subset is False:
        raise UserError(f"--small_subset False: overfit trains on {FEW} instances; for all of them use full_training.")
    outcome = train(setting.config(data={"examples": None}, watch={"overfit": FEW}), setting.folder / "run", "overfit")
    setting.draw(
        figures.curves(
            {"train": outcome.by_epoch("accuracy")},
            f"{setting.models[0]} on {FEW} instances",
            "epoch",
            "training accuracy",
            percent=True,
        )
    )
    accuracy = outcome.score("dev")  # the instances themselves
    console.out.print(f" - Average TRAIN metrics: accuracy={{'accuracy': {accuracy}}}", markup=False)
    return {"run": str(outcome.path), "train_accuracy": accuracy}


def full_training(setting: Setting) -> dict[str, Any]:
    """All the data; accuracy on train and dev after every epoch."""
    setting.only("model", "lr", "num_epochs")
    config = setting.config()
    outcome = train(config, setting.folder / "run", "full_training")
    sample = min(config.watch.train_sample, FEW if setting.few else len(setting.data.splits["train"]))
    lines = {f"train ({sample:,} of them)": outcome.by_epoch("train_accuracy"), "dev": outcome.by_epoch("accuracy")}
    levels = {"most common class (dev)": setting.majority}
    setting.draw(figures.curves(lines, f"{setting.models[0]} on {setting.task}", "epoch", "accuracy", levels, True))
    say(outcome)
    return {"run": str(outcome.path), **outcome.results}


def parameter_tuning(setting: Setting) -> dict[str, Any]:
    """Every learning rate with every number of epochs; the best on dev is scored on test, once."""
    setting.only("model")
    cells = grid(setting, setting.models[0])
    best = choose(cells)
    if best is None:
        raise UserError(next(iter(cells.values())).reason)
    outcome = tested(cells[best])
    scores = {key: each.score("dev") for key, each in cells.items()}
    title = f"Dev accuracy of {setting.models[0]} on {setting.task}"
    setting.draw(heat_map(scores, setting.rates, setting.epochs, best, title))
    console.result(f"chosen on dev: lr={best[0]:g}, num_epochs={best[1]}")
    say(outcome)
    return {
        "lr": best[0],
        "num_epochs": best[1],
        "run": str(outcome.path),
        **outcome.results,
        "dev": {f"lr={rate:g}, num_epochs={count}": score for (rate, count), score in scores.items()},
    }


def cross_model(setting: Setting) -> dict[str, Any]:
    """The same search for every model; one that is not available or does not fit is a bar of height 0."""
    found: dict[str, Outcome] = {}
    for name in setting.models:
        cells = grid(setting, name)
        best = choose(cells)
        found[name] = next(iter(cells.values())) if best is None else tested(cells[best])
        at = "" if best is None else f" (lr={best[0]:g}, num_epochs={best[1]})"
        console.result(f"{name}{at}" + (f": 0, {found[name].reason}" if best is None else ""))
        say(found[name])
    names = {name: Path(name).name for name in found}
    bars = {names[name]: (each.score("dev"), each.score("test")) for name, each in found.items()}
    absent = [names[name] for name, each in found.items() if each.reason]
    setting.draw(paired_bars(bars, absent, setting.majority, f"Accuracy on {setting.task}"))
    return {
        name: {"dev_accuracy": each.score("dev"), "test_accuracy": each.score("test"), "reason": each.reason}
        for name, each in found.items()
    }


def grid(setting: Setting, model: str) -> dict[tuple[float, int], Outcome]:
    """A run per learning rate and number of epochs; if the model is not available, only the first, with the reason."""
    cells: dict[tuple[float, int], Outcome] = {}
    shown = Path(model).name
    settings = {"name": model} | ({"head": "words"} if setting.name == "t5" and not setting.type else {})
    for rate in setting.rates:
        for count in setting.epochs:
            config = setting.config(
                model=settings, data={"score_test": False}, optimizer={"lr": rate}, training={"epochs": count}
            )
            path = setting.folder / shown / f"lr-{rate:g}-epochs-{count}"
            cells[rate, count] = attempt(config, path, f"{shown}, lr {rate:g}, {count} epochs")
            if not path.exists():
                return cells  # nothing was started: another rate will not help
    return cells


def choose(cells: dict[tuple[float, int], Outcome]) -> tuple[float, int] | None:
    """The best on dev; the first of equals."""
    done = {key: each for key, each in cells.items() if not each.reason}
    return max(done, key=lambda key: done[key].score("dev")) if done else None


def tested(outcome: Outcome) -> Outcome:
    scores = ClassifyJob.score_test(outcome.path)
    return Outcome(outcome.path, outcome.results | scores, outcome.learning)


def peft(setting: Setting) -> dict[str, Any]:
    """All parameters, the head alone, or 128 embeddings before the text and the head."""
    setting.only("model", "lr", "num_epochs")
    lines, summary = {}, {}
    for type in [setting.type] if setting.type else list(TYPES):
        config = setting.config(
            model={"name": setting.models[0], "head": "linear"}, tuning={"method": TYPES[type], "length": PREFIX}
        )
        outcome = train(config, setting.folder / type, type)
        lines[f"{type}, train"], lines[f"{type}, dev"] = (
            outcome.by_epoch(name) for name in ("train_accuracy", "accuracy")
        )
        console.result(f"{type}: {parameters(type, outcome.learning, len(setting.data.classes))}")
        console.result(f"lr={setting.rates[0]:g}, num_epochs={setting.epochs[0]}, batch_size={setting.batch}")
        say(outcome)
        summary[type] = {"run": str(outcome.path), "tuned_parameters": outcome.learning, **outcome.results}
    levels = {"most common class (dev)": setting.majority}
    setting.draw(figures.curves(lines, f"{setting.models[0]} on {setting.task}", "epoch", "accuracy", levels, True))
    return summary


def parameters(type: str, count: int, classes: int) -> str:
    """The number of tuned parameters, also as a formula in the width d if it is one: a head has classes·(d + 1)."""
    rows = {"head": classes, "prefix": classes + PREFIX}.get(type)
    text = f"{count:,} tuned parameters"
    if rows and (count - classes) % rows == 0:
        text += f" = {rows}d + {classes} with d = {(count - classes) // rows}"
    return text


def optimizers(setting: Setting) -> dict[str, Any]:
    """The same training by AdamW and two others, in one figure."""
    setting.only("model", "lr", "num_epochs")
    lines, summary = {}, {}
    for name in ("adamw", "sgd", "adagrad"):
        config = setting.config(optimizer={"name": name, "momentum": 0.0})
        outcome = train(config, setting.folder / name, name)
        lines[f"{name}, train"], lines[f"{name}, dev"] = (
            outcome.by_epoch(measure) for measure in ("train_accuracy", "accuracy")
        )
        console.result(name)
        say(outcome)
        summary[name] = {"run": str(outcome.path), **outcome.results}
    title = f"{setting.models[0]} on {setting.task}, learning rate {setting.rates[0]:g}"
    setting.draw(figures.curves(lines, title, "epoch", "accuracy", percent=True))
    return summary


EXPERIMENTS = {
    "overfit": Experiment("10 instances memorized", overfit, batch=64),
    "full_training": Experiment("all the data, train and dev by epoch", full_training, batch="auto", epochs=(30,)),
    "parameter_tuning": Experiment(
        "the best of learning rates by epochs", parameter_tuning, rates=tuple(RATES), epochs=tuple(EPOCHS)
    ),
    "cross_model": Experiment(
        "the same search for six encoders",
        cross_model,
        models=tuple(ENCODERS),
        rates=tuple(RATES),
        epochs=tuple(EPOCHS),
    ),
    "t5": Experiment(
        "the same search for T5 of three sizes", cross_model, models=tuple(T5), rates=tuple(RATES), epochs=tuple(EPOCHS)
    ),
    "peft": Experiment("full, head and prefix tuning", peft, batch=64),
    "optimizers": Experiment(
        "AdamW, SGD and Adagrad",
        optimizers,
        task="sst2",
        models=("roberta-base",),
        batch=64,
        rates=(5e-5,),
        epochs=(10,),
    ),
}
