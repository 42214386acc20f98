"""The tables of the notebook, computed from the stored results. `python docs/notebook/tables.py` prints them all.

`data/NAME.json` is the `results.json` of a comparison, without its curves. A test checks that the pages show
these tables.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from attnlab.experiments.views.language import shown_perplexity as perplexity
from attnlab.experiments.views.view import signed
from attnlab.report.numbers import plus_minus
from attnlab.stats.intervals import Mean, Proportion, paired_difference

DATA = Path(__file__).parent / "data"


def variants(name: str) -> list[dict[str, Any]]:
    return list(json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))["variants"])


def mean(row: dict[str, Any], measure: str) -> Mean:
    return Mean(tuple(row[measure]["by_seed"].values()))


def reference(name: str) -> dict[str, Any]:
    """The variant that others are compared with."""
    label = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))["reference"]
    return next(row for row in variants(name) if row["label"] == label)


def against(row: dict[str, Any], base: dict[str, Any], measure: str) -> str:
    if row["label"] == base["label"]:
        return ""
    return signed(paired_difference(row[measure]["by_seed"], base[measure]["by_seed"]))


def quality(name: str) -> Iterator[str]:
    """One line per variant: losses, perplexity, difference to the reference."""
    base = reference(name)
    yield f"| variant | training loss | validation loss | perplexity | loss against {base['label']} |"
    yield "| --- | --- | --- | --- | --- |"
    for row in variants(name):
        mark = " †" if row["sees_future"] else ""
        difference = "not comparable †" if mark else against(row, base, "dev_loss")
        cells = [
            row["label"] + mark,
            plus_minus(mean(row, "train_loss")),
            plus_minus(mean(row, "dev_loss")),
            perplexity(mean(row, "dev_loss")) + mark,
            difference,
        ]
        yield f"| {' | '.join(cells)} |"


def futures(name: str) -> Iterator[str]:
    """The same validation blocks, measured in one pass and prefix by prefix."""
    base = reference(name)
    yield f"| variant | perplexity in one pass | prefix by prefix | honest loss against {base['label']} |"
    yield "| --- | --- | --- | --- |"
    for row in variants(name):
        mark = " †" if row["sees_future"] else ""
        two = [perplexity(mean(row, "sample_loss")), perplexity(mean(row, "prefix_loss"))]
        yield f"| {' | '.join([row['label'] + mark, *two, against(row, base, 'prefix_loss')])} |"


def cost(name: str) -> Iterator[str]:
    yield "| variant | parameters | tokens per second | memory of one step | seconds per run |"
    yield "| --- | --- | --- | --- | --- |"
    for row in variants(name):
        memory = f"{mean(row, 'step_memory_mib').mean:.1f} MiB"
        speed, seconds = plus_minus(mean(row, "tokens_per_second"), ",.0f"), f"{mean(row, 'seconds').mean:.0f}"
        yield f"| {row['label']} | {row['parameters']:,} | {speed} | {memory} | {seconds} |"


def lengths(*names: str) -> Iterator[str]:
    """Loss by the length of the test blocks."""
    rows = [(name, row) for name in names for row in variants(name)]
    tested = list(rows[0][1]["lengths"])
    yield f"| positions | {' | '.join(f'{length} tokens' for length in tested)} |"
    yield "| --- |" + " --- |" * len(tested)
    for name, row in rows:
        shown = [_at(row["lengths"][length]) for length in tested]
        label = row["label"] if name == names[0] else f"{row['positions']}, {LONGER[name]}"
        yield f"| {label} | {' | '.join(shown)} |"


def _at(loss: dict[str, Any]) -> str:
    if "reason" in loss:
        return f"cannot: {loss['reason']}"
    low, high = loss["interval"]
    return f"{loss['mean']:.3f} ± {(high - low) / 2:.3f}"


def accuracies(name: str, setting: str, title: str) -> Iterator[str]:
    """Accuracies by the value of one setting."""
    measures = {
        "test_accuracy": "test people",
        "dev_accuracy": "dev people",
        "train_accuracy": "people of fine-tuning",
        "told_accuracy": "place known in the text",
    }
    yield f"| {title} | {' | '.join(measures.values())} |"
    yield "| --- |" + " --- |" * len(measures)
    for row in sorted(variants(name), key=lambda row: float(row["settings"][setting])):
        shown = [plus_minus(mean(row, measure), ".1%") for measure in measures]
        yield f"| {row['settings'][setting]} | {' | '.join(shown)} |"


def classifiers(name: str) -> Iterator[str]:
    """Accuracy on dev and test, trained parameters, and the cost of a run."""
    yield "| variant | trained parameters | learning rate | dev accuracy | test accuracy | test macro-F1 | seconds |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for row in variants(name):
        collapsed = len(row["collapsed_seeds"])
        mark = f" ({collapsed} of {len(row['dev_accuracy']['by_seed'])} collapsed)" if collapsed else ""
        measures = ("dev_accuracy", "test_accuracy", "test_macro_f1")
        shown = [plus_minus(mean(row, measure), ".1%") for measure in measures]
        rate = ", ".join(f"{rate:g}" for rate in row["learning_rates"])
        seconds = f"{mean(row, 'seconds').mean:,.0f}"
        yield f"| {row['label']}{mark} | {row['learning_parameters']:,} | {rate} | {' | '.join(shown)} | {seconds} |"


def beside_trainer() -> Iterator[str]:
    """SST-2 in the lab and in transformers' Trainer, per seed."""
    rows = _sst2()["beside_trainer"]
    yield "| seed | dev, lab | dev, Trainer | difference | examples per second, lab | Trainer | ratio |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for row in rows:
        accuracies = f"{row['lab']:.2%} | {row['trainer']:.2%} | {row['lab'] - row['trainer']:+.2%}"
        speeds = f"{row['lab_rate']:.1f} | {row['trainer_rate']:.1f} | {row['lab_rate'] / row['trainer_rate']:.2f}"
        yield f"| {row['seed']} | {accuracies} | {speeds} |"
    lab, trainer = (Mean(tuple(row[side] for row in rows)) for side in ("lab", "trainer"))
    gain = Mean(tuple(row["lab"] - row["trainer"] for row in rows))
    yield f"| mean | {plus_minus(lab, '.2%')} | {plus_minus(trainer, '.2%')} | {signed(gain, '.2%')} | | | |"


def tries() -> Iterator[str]:
    yield "| what | dev accuracy after each epoch |"
    yield "| --- | --- |"
    for row in _sst2()["tries"]:
        yield f"| {row['what']} | {', '.join(f'{value:.1%}' for value in row['dev'])} |"


def sst2_recipe() -> Iterator[str]:
    """The recipe, per seed: the best weights on dev are kept."""
    yield "| seed | after each epoch | kept | minutes |"
    yield "| --- | --- | --- | --- |"
    rows = _sst2()["recipe"]
    for row in rows:
        epochs = ", ".join(f"{value:.2%}" for value in row["dev"])
        yield f"| {row['seed']} | {epochs} | {max(row['dev']):.2%} | {row['minutes']:.0f} |"
    last, kept = Mean(tuple(row["dev"][-1] for row in rows)), Mean(tuple(max(row["dev"]) for row in rows))
    yield f"| mean | last: {plus_minus(last, '.2%')} | {plus_minus(kept, '.2%')} | |"


def _sst2() -> dict[str, Any]:
    results: dict[str, Any] = json.loads((DATA / "sst2.json").read_text(encoding="utf-8"))
    return results


def by_labels(name: str) -> dict[int, dict[str, dict[str, Any]]]:
    """The rows of a comparison by the number of labels, then by arm, both in the recipe's order."""
    rows = {row["label"]: row for row in variants(name)}
    plan = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))["config"]["compare"]
    return {
        labels: {arm: rows[f"{arm} + examples={labels}"] for arm in plan["arms"]}
        for labels in plan["vary"]["data.examples"]
    }


def few_labels(name: str, measure: str) -> Iterator[str]:
    """Each arm by the number of labels, and its gain over the classifier alone, paired by seed."""
    rows_by_labels = by_labels(name)
    alone, *others = arms = list(rows_by_labels[min(rows_by_labels)])
    yield f"| labels | seeds | {' | '.join(arms)} | {' | '.join(f'{arm} − {alone}' for arm in others)} |"
    yield "| --- |" + " --- |" * (1 + len(arms) + len(others))
    scores = {
        arm: {
            (labels, seed): score
            for labels, rows in rows_by_labels.items()
            for seed, score in rows[arm][measure]["by_seed"].items()
        }
        for arm in arms
    }
    for labels in [*rows_by_labels, None]:
        of = {arm: {key: score for key, score in scores[arm].items() if labels in (key[0], None)} for arm in arms}
        means = [plus_minus(Mean(tuple(of[arm].values())), ".1%") if labels else "" for arm in arms]
        gains = [signed(paired_difference(of[arm], of[alone]), ".1%") for arm in others]
        yield f"| {f'{labels:,}' if labels else 'together'} | {len(of[alone])} | {' | '.join([*means, *gains])} |"


def few_labels_cost(*names: str) -> Iterator[str]:
    """Minutes per seed: the median, because some shared their core with other work."""
    arms = list(next(iter(by_labels(names[0]).values())))
    yield f"| model | labels | {' | '.join(f'{arm}, minutes' for arm in arms)} |"
    yield "| --- | --- |" + " --- |" * len(arms)
    for name in names:
        for labels, rows in by_labels(name).items():
            minutes = [median(rows[arm]["seconds"]["by_seed"].values()) / 60 for arm in arms]
            model = name.removeprefix("few-labels-")
            yield f"| {model} | {labels:,} | {' | '.join(f'{value:.1f}' for value in minutes)} |"


def all_labels() -> Iterator[str]:
    """Single runs with every label of Yelp: dev after each epoch, and test with the best epoch on dev."""
    yield "| model | seed | tokens | rate | dev after each epoch | test (95% over reviews) | minutes of training |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for row in json.loads((DATA / "yelp.json").read_text(encoding="utf-8"))["runs"]:
        epochs = ", ".join(f"{value:.1%}" for value in row["dev"])
        settings = f"{row['model']} | {row['seed']} | {row['tokens']} | {row['rate']:g}"
        yield f"| {settings} | {epochs} | {Proportion(row['test_right'], row['test'])} | {row['minutes']:.0f} |"


FEW = ("few-labels-minilm", "few-labels-tinybert-4l-312d")
LONGER = {"positions-table-400": "a table of 400"}
TABLES = {
    "attention-comparison.md": [
        lambda: quality("attention"),
        lambda: futures("attention"),
        lambda: cost("attention"),
        lambda: quality("masks"),
        lambda: futures("masks"),
    ],
    "positions.md": [lambda: quality("positions"), lambda: lengths("positions", "positions-table-400")],
    "modern-shape.md": [lambda: quality("modern")],
    "classification.md": [
        beside_trainer,
        tries,
        sst2_recipe,
        lambda: classifiers("encoders-boolq"),
        lambda: classifiers("tuning-boolq"),
        lambda: classifiers("tuning-yelp"),
        lambda: classifiers("encoders-yelp"),
        lambda: classifiers("optimizers"),
    ],
    "few-labels.md": [
        all_labels,
        *(partial(few_labels, name, measure) for name in FEW for measure in ("dev_accuracy", "test_accuracy")),
        lambda: few_labels_cost(*FEW),
    ],
    "paraphrases.md": [lambda: accuracies("paraphrases", "world.paraphrases", "wordings per person")],
}

if __name__ == "__main__":
    for page, tables in TABLES.items():
        print(f"{page}\n")
        for table in tables:
            print("\n".join(table()), end="\n\n")
