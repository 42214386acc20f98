"""Cross-validation of a classifier: a run per fold, then one table in which every row of the file is test once.

run/
    config.yaml, run.json, report.html, predictions-test.jsonl    of all rows together
    folds/1, folds/2, ...                                         a run folder each, with its own model and report
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attnlab.base import console
from attnlab.base.errors import UserError
from attnlab.config.classify import ClassifyConfig
from attnlab.data.tasks.catalog import read_texts
from attnlab.jobs.classify import baselines
from attnlab.jobs.job import RunOptions
from attnlab.jobs.subruns import ending_recorded, run_subrun
from attnlab.report.page import Passage, Table, write_run_page
from attnlab.runs import RunFolder, fresh_path, read_record
from attnlab.runs.predictions import PredictedExample, read_examples, write_predictions
from attnlab.stats.intervals import Folds, Proportion

FOLDS = "folds"
HOW = (
    "Every row is in the test split of one fold and was not seen by the model of that fold, nor was any row with the "
    "same text. The interval over folds is Student's with the variance of Nadeau and Bengio (2003): folds share most "
    "of their training rows, so the plain one would be too narrow. Every fold chose its epoch on rows of its own dev "
    "split."
)


def is_cross_validation(config: ClassifyConfig) -> bool:
    """Whether this is the run of all folds, not one of them."""
    return config.data.folds is not None and config.data.fold is None


def check_folds(config: ClassifyConfig) -> None:
    """Raise for settings that make no folds."""
    data = config.data
    if data.fold is not None and data.folds is None:
        raise UserError("data.fold needs --folds: in how many parts the rows are split.")
    if data.folds is not None and data.fold is not None and data.fold > data.folds:
        raise UserError(f"data.fold is {data.fold}, and there are {data.folds} folds: give a smaller number.")
    if is_cross_validation(config) and config.watch.overfit is not None:
        raise UserError("--overfit memorizes a few rows and tests none: leave out --folds.")


def fold_config(config: ClassifyConfig, number: int) -> ClassifyConfig:
    """The configuration of one of the folds."""
    one = config.model_copy(deep=True)
    one.data.fold, one.data.score_test = number, True
    return one


def cross_validate(config: ClassifyConfig, options: RunOptions) -> Path:
    """Run every fold that is not finished, and gather them."""
    count = config.data.folds or 0
    read_texts(fold_config(config, 1).data)  # raises before the run begins
    run = _open(config, options)
    with ending_recorded(run):
        command = options.resume_command or f"attnlab resume {run.path}"
        label = f"{options.label}: " if options.label else ""
        for number in range(1, count + 1):
            run_subrun(
                "classify",
                fold_config(config, number),
                run.path / FOLDS / str(number),
                f"{label}fold {number} of {count}",
                command,
                options.callbacks,
            )
        _conclude(run, count)
    return run.path


def _open(config: ClassifyConfig, options: RunOptions) -> RunFolder:
    if options.resume:
        assert options.path is not None
        return RunFolder.reopen(options.path)
    settings = config.model_dump(mode="json")
    path = options.path or fresh_path(options.root, "classify")
    return RunFolder.create(
        path,
        "classify",
        settings,
        config.training.seed,
        options.overwrite,
        settings=settings,
        changes=list(options.changes),
    )


def _conclude(run: RunFolder, count: int) -> None:
    folds = [run.path / FOLDS / str(number) for number in range(1, count + 1)]
    records = [read_record(fold) for fold in folds]
    tested = [read_examples(fold, "test") or [] for fold in folds]
    write_predictions(run.path, "test", [example for examples in tested for example in examples])
    run.update_record(**_gathered(records, tested), baselines=_baselines(run.path, folds))
    if below := baselines.below(run.path, "test"):
        verdict = " ".join(f"{sentence[0].upper()}{sentence[1:]}." for sentence in below)
        console.warn(verdict)
        run.update_record(verdict=verdict)
    write_run_page(run.path, passages(run.path), {"state": "finished"})
    run.set_status("finished")


def _baselines(run: Path, folds: Sequence[Path]) -> dict[str, dict[str, Any]]:
    """Of all folds together: every row as the baseline of its fold predicted it, means of scores, sums of seconds."""
    found = {}
    for name in baselines.baselines_in(folds[0]):
        each = [baselines.baselines_in(fold)[name] for fold in folds]
        parts = [read_examples(fold / baselines.FOLDER / name, "test") or [] for fold in folds]
        (run / baselines.FOLDER / name).mkdir(parents=True, exist_ok=True)
        write_predictions(run / baselines.FOLDER / name, "test", [example for part in parts for example in part])
        sums = {key: math.fsum(one[key] or 0.0 for one in each) for key in each[0]}
        means = {key: total / len(folds) for key, total in sums.items()}
        found[name] = means | {"seconds": sums["seconds"], "parameters": each[0]["parameters"], "c": None}
    return found


def _gathered(records: Sequence[Mapping[str, Any]], tested: Sequence[Sequence[PredictedExample]]) -> dict[str, Any]:
    """The record of the whole, from those of its folds."""
    first = records[0]
    results = {
        name: math.fsum(record["results"][name] for record in records) / len(records)
        for name, value in first["results"].items()
        if isinstance(value, float) and all(isinstance(r["results"].get(name), float) for r in records)
    }
    accuracies = Folds(tuple(record["results"]["test_accuracy"] for record in records))
    low, high = accuracies.interval or (math.nan, math.nan)
    together = {"test_rows": sum(map(len, tested)), "test_interval_low": low, "test_interval_high": high}
    counted = [record["training"] for record in records]
    training = {name: sum(each[name] for each in counted) for name in ("step", "tokens", "positions", "seconds")}
    return {
        "results": results | together,
        "training": training,
        "steps": sum(record["steps"] for record in records),
        "data": {**first["data"], "examples": {"test": together["test_rows"]}},
        "changes": list(dict.fromkeys(change for record in records for change in record["changes"])),
        **{name: first[name] for name in ("parameters", "learning_parameters", "padding") if name in first},
    }


def passages(run: Path) -> list[Passage]:
    """What the page of a cross-validation shows; empty for one that is not finished."""
    from attnlab.jobs.classify.beside import baselines_passage  # loads matplotlib

    if (run / FOLDS).is_dir() and read_examples(run, "test") is not None:
        beside = baselines_passage(run, read_record(run))
        return [Passage("Folds", [HOW], [_table(run)]), *([beside] if beside is not None else [])]
    return []


def _table(run: Path) -> Table:
    folds = sorted((path for path in (run / FOLDS).iterdir() if path.name.isdigit()), key=lambda path: int(path.name))
    rows, accuracies, right, count = [], [], 0, 0
    for fold in folds:
        record, examples = read_record(fold), read_examples(fold, "test") or []
        correct = sum(example.label == example.predicted for example in examples)
        results, right, count = record["results"], right + correct, count + len(examples)
        accuracies.append(results["test_accuracy"])
        rows.append(
            [
                fold.name,
                *(f"{record['data']['examples'][split]:,}" for split in ("train", "dev", "test")),
                f"{results['dev_accuracy']:.1%}",
                str(Proportion(correct, len(examples))),
                f"{results['test_macro_f1']:.3f}",
                f"{results['test_baseline']:.1%}",
            ]
        )
    over = Folds(tuple(accuracies))
    low, high = over.interval or (math.nan, math.nan)
    rows.append(["mean, over folds (95%)", "", "", "", "", f"{over.mean:.1%} ({low:.1%} to {high:.1%})", "", ""])
    rows.append(["all rows (95%)", "", "", f"{count:,}", "", str(Proportion(right, count)), "", ""])
    header = ["fold", "train", "dev", "test", "dev accuracy", "test accuracy (95%)", "macro F1", "most common class"]
    return Table(header, rows)


def one_model(run: Path) -> None:
    """Raise for the folder of a cross-validation, which has a model per fold."""
    if (run / FOLDS).is_dir():
        raise UserError(
            f"{run} cross-validates: it has a model per fold, {run / FOLDS / '1'} and so on. Give one of these, or "
            "train one on all rows with the same command without --folds."
        )
