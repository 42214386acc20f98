"""The questions that several courses ask about a classifier: does it learn at all, when does it overfit, which
settings and which model are best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from attnlab.base import console
from attnlab.base.errors import UserError
from attnlab.base.files import folder_name, read_json, write_json
from attnlab.jobs.classify.job import ClassifyJob
from attnlab.jobs.study.outcome import TOO_LARGE, UNREACHABLE, Outcome
from attnlab.jobs.study.study import FEW, Study
from attnlab.models.pretrained.source import ModelUnreachable, model_folder
from attnlab.report import figures
from attnlab.report.study_figures import paired_bars, panels
from attnlab.runs import read_config
from attnlab.stats.intervals import Proportion

NOT_HERE = "it is not on this machine, and the hub cannot be reached."
"""For results.json; the sentence that is printed has folders and addresses of this machine."""


def say(outcome: Outcome) -> None:
    """Print the scores in the format of the documents."""
    for split in ("dev", "test"):
        if f"{split}_accuracy" in outcome.scores:
            console.result(f" - Average {split.upper()} metrics: accuracy={{'accuracy': {outcome.accuracy(split)}}}")


def overfit(study: Study) -> None:
    """Memorize a few instances: does the set-up learn at all?"""
    study.only_one("model", "lr", "num_epochs")
    if study.asked.small_subset is False or study.asked.examples:
        raise UserError(f"--small_subset: this trains on {FEW} instances, to see whether anything is learned at all.")
    outcome = study.train("overfit", study.config(data={"examples": None}, watch={"overfit": FEW}), "run")
    accuracies = outcome.by_epoch("accuracy")
    title = f"{short(study.models[0])} on {FEW} instances of {study.task}"
    study.draw(figures.curves({"train": _curve(accuracies)}, title, "epoch", "training accuracy", percent=True))
    console.result(f" - Average TRAIN metrics: accuracy={{'accuracy': {outcome.accuracy('dev')}}}")


def full_training(study: Study) -> None:
    """All the data; accuracy on train and dev after every epoch, and the largest batch that fits."""
    study.only_one("model", "lr", "num_epochs")
    if isinstance(study.batch_size, str):
        study.extra["largest_batch"] = _largest_batch(study)
    outcome = study.train("full_training", study.config(), "run")
    config, record = read_config(outcome.path), outcome.record
    sample = min(config["watch"]["train_sample"], record["data"]["examples"]["train"])
    lines = {
        "dev": _curve(outcome.by_epoch("accuracy")),  # first, for the colour that it has in all figures
        f"train ({sample:,} of them)": _curve(outcome.by_epoch("train_accuracy")),
    }
    title = f"{short(study.models[0])} on {study.task}, batches of {config['batch']['size']:,}"
    if largest := study.extra.get("largest_batch"):
        title += f" (largest that fits: {largest['size']:,})"
    levels = {"most common class (dev)": study.majority["dev"]}
    study.draw(figures.curves(lines, title, "epoch", "accuracy", levels, True))
    say(outcome)


def _largest_batch(study: Study) -> dict[str, object]:
    """The largest batch that fits, searched for once per folder."""
    path = study.folder / "largest_batch.json"
    if not path.is_file():
        study.between_runs()
        with console.working("searching for the largest batch that fits ..."):
            found = ClassifyJob(study.config(batch={"size": "largest"})).search_batch_size()
        assert found is not None
        write_json(path, {**asdict(found), "sentence": found.sentence()})
    largest = read_json(path)
    console.result(f"the largest batch that fits: {largest['size']:,}")
    return largest


def search(study: Study, model: str, folder: str, head: str = "auto", score_test: bool = False) -> list[Outcome]:
    """A run per learning rate and epochs; after one that does not fit, none of the others is tried."""
    outcomes, size = [], study.batch_size
    for rate, count in study.pairs:
        config = study.config(
            model={"name": model, "head": head},
            data={"score_test": score_test},
            optimizer={"lr": rate},
            training={"epochs": count},
            batch={"size": size},
        )
        name = f"{short(model)}, lr={rate:g}, num_epochs={count}"
        outcomes.append(study.attempt(name, config, f"{folder}/lr-{rate:g}-epochs-{count}"))
        if outcomes[-1].state == TOO_LARGE:
            break
        if outcomes[-1].done and isinstance(size, int):
            size = read_config(outcomes[-1].path)["batch"]["size"]
    return outcomes


def choose(outcomes: Sequence[Outcome]) -> Outcome | None:
    """The best on dev, the first of equals; None if all failed."""
    done = [outcome for outcome in outcomes if outcome.done]
    return max(done, key=lambda outcome: outcome.accuracy("dev")) if done else None


def compare_models(study: Study, head: str = "auto") -> None:
    """The same search for every model: the best of each on dev is scored on test, and all are bars."""
    unreachable = _unreachable(study.models)
    best: dict[str, Outcome] = {}
    folders: list[str] = []
    for model in study.models:
        folders.append(folder_name(short(model), folders))
        if model in unreachable:
            best[folders[-1]] = study.add(Outcome(short(model), model, study.folder, UNREACHABLE, NOT_HERE))
            console.result(f"{model}: not reached, {unreachable[model]}")
            continue
        outcomes = search(study, model, folders[-1], head)
        chosen = choose(outcomes)
        best[folders[-1]] = outcome = study.score_test(chosen) if chosen else outcomes[-1]
        console.result(outcome.name if chosen else f"{model}: 0, {outcome.reason}")
        say(outcome)
    study.extra["chosen"] = [study.outcomes.index(outcome) for outcome in best.values()]
    draw_bars(study, best)


def _unreachable(models: Sequence[str]) -> dict[str, str]:
    """The models that have a name but cannot be had here, with the reason; a name nobody knows is an error."""
    reasons = {}
    for model in models:
        try:
            model_folder(model)
        except ModelUnreachable as error:
            reasons[model] = str(error)
    return reasons


def draw_bars(study: Study, outcomes: dict[str, Outcome], suffix: str = "") -> None:
    """Dev and test accuracy; one that could not be trained is at 0."""

    def score(outcome: Outcome, split: str) -> Proportion:
        return Proportion(round(outcome.accuracy(split) * study.counts[split]), study.counts[split])

    def row(outcome: Outcome) -> tuple[Proportion, Proportion] | str:
        if outcome.done:
            return score(outcome, "dev"), score(outcome, "test")
        return "not reached" if outcome.state == UNREACHABLE else f"0: {outcome.state}"

    levels = (study.majority["dev"], study.majority["test"])
    rows = {name: row(outcome) for name, outcome in outcomes.items()}
    study.draw(paired_bars(rows, levels, f"Accuracy on {study.task}"), suffix)


def draw_panels(study: Study, outcomes: dict[str, Outcome], suffix: str = "") -> None:
    """Accuracy on train and dev by epoch, a panel per classifier."""
    splits = {"train": "train_accuracy", "dev": "accuracy"}
    by_epoch = {
        name: {split: each.by_epoch(measure) for split, measure in splits.items()}
        for name, each in outcomes.items()
        if each.done
    }
    if by_epoch:
        study.draw(panels(by_epoch, study.majority["dev"]), suffix)


def _curve(values: Sequence[float]) -> tuple[list[float], Sequence[float]]:
    return [float(epoch) for epoch in range(1, len(values) + 1)], values


def short(model: str) -> str:
    """The name of a model, or of its folder, for figures and tables."""
    return Path(model).name
