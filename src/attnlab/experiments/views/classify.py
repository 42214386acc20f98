"""Classifiers on one task: models, ways of tuning, optimizers; dev and test as bars, cost beside quality."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attnlab.base.console import clock
from attnlab.base.errors import UserError, unknown
from attnlab.base.machine.facts import GIB
from attnlab.config.classify import BASELINES, EMBEDDINGS, MAJORITY, TFIDF, ClassifyConfig
from attnlab.config.recipe import Key
from attnlab.data.tasks.catalog import read_texts
from attnlab.experiments.config import CompareConfig
from attnlab.experiments.results import ComparisonResults, ExperimentRow, most_common_level
from attnlab.experiments.views.view import View, difference_title, ranked_cells, run_label
from attnlab.jobs.classify.memory import must_fit, needed, parameters_of
from attnlab.report.page import Figure, Passage, Table, draw
from attnlab.report.pairs import pair_details, pair_matrix, plain_pair
from attnlab.report.series import AccuracyCurve
from attnlab.runs import read_config, read_metrics
from attnlab.runs.paired import RunsOnTest, all_pairs, paired
from attnlab.runs.predictions import Prediction, read_predictions
from attnlab.stats.intervals import Mean, Measure, Proportion, plus_minus

MARK = "‡"
PANELS = 12
RATES = (
    "A rate that was not given is the usual one of the tuning method and optimizer (the column 'learning rate'), not "
    "one that was searched for: a variant that does badly may need another."
)
COST = (
    "Time is wall-clock time, in training steps and in the features of a frozen body, evaluations not counted: what "
    "else ran on the machine counts too. Memory is the peak of the whole process on a CPU, libraries included, and of "
    "its tensors on a GPU."
)
PAIRS = (
    "Differences are of test accuracy, the row minus the column, over all seeds; p is McNemar's exact test between the "
    "run of each that is best on dev, corrected after Holm for the number of pairs. * marks p ≤ 0.05 after that. A "
    "bootstrap over two or three seeds is rough: it knows no others."
)


class ClassifyView(View):
    rates = RATES

    def check(self, configs: Sequence[Any]) -> None:
        read_texts(configs[0].data)  # a task that does not exist concerns every variant

    def decide(self, config: CompareConfig, job_config: ClassifyConfig) -> dict[str, Any]:
        """The memory it needs; raises, before its weights are read, if that is not free."""
        if job_config.is_linear:
            return {"parameters": 0, "needed_bytes": 0}
        parameters, shape = parameters_of(job_config)
        need = needed(job_config, parameters, shape)
        must_fit(job_config, need)
        return {"parameters": parameters, "needed_bytes": need}

    def settings(self, config: CompareConfig, decided: Mapping[str, Any]) -> dict[Key, Any]:
        """The baselines are variants of the comparison: its runs need none of their own."""
        return {("watch", "baselines"): False}

    def first(self, results: ComparisonResults) -> list[str]:
        """Variants that are at chance or below a baseline."""
        return [*chance_notes(results), *below_notes(results)]

    def table(self, results: ComparisonResults, brief: bool = False) -> Table:
        """One row per variant, those with collapsed seeds marked, those that failed with their reason."""
        others = [measure for measure in self.measures if measure is not results.measure]
        titles = [measure.title for measure in others]
        header = ["variant", results.measure.title, difference_title(results), *titles, "macro F1 on test"]
        rows = []
        for row in results.ordered:
            if not row.runs:
                rows.append([row.label, f"0: {row.reason}", *[""] * (len(header) - 2)])
                continue
            seeds = collapsed(row)
            mark = f" {MARK} {len(seeds)} of {len(row.runs)} collapsed" if seeds else ""
            scores = [plus_minus(row.mean(measure.name), measure.form) for measure in others]
            f1 = plus_minus(row.mean("test_macro_f1"), ".1%")
            rows.append([run_label(row, results) + mark, *ranked_cells(row, results), *scores, f1])
        return Table(header, rows)

    def cost(self, results: ComparisonResults) -> Table:
        header = ["variant", "learning rate", "learning", "parameters", "steps", "time per run", "peak memory"]
        rows = [
            [
                *(row.label, ", ".join(f"{rate:g}" for rate in learning_rates(row)) or "fitted"),
                *(f"{number:,}" for number in (learning_parameters(row), row.parameters)),
                f"{row.steps:,}" if row.steps else "fitted",
                *(clock(row.mean("seconds").mean), peak_memory(row) or "not measured"),
            ]
            for row in results.ordered
            if row.runs
        ]
        return Table(header, rows)

    def figures(self, root: Path, results: ComparisonResults) -> list[Figure]:
        from attnlab.report import classifier_figures

        shown = [measure for measure in self.measures if any(row.by_seed(measure.name) for row in results.finished)]
        one_seed = "there is one seed: bars have no error bars"
        how = "error bars are 95% intervals over seeds, ticks the runs" if results.ranked else one_seed
        caption = f"Accuracy on dev and test; {how}; a bar at 0 could not be run."
        bars = classifier_figures.bars(results.ordered, shown, [row.label for row in results.rows if collapsed(row)])
        return [draw(root, "bars", bars, caption)]

    def passages(self, root: Path, results: ComparisonResults) -> list[Passage | None]:
        notes = collapse_notes(results)
        return [
            Passage("What collapsed", notes) if notes else None,
            self._cost_and_quality(root, results),
            self._curves(root, results),
            self._differences(results),
        ]

    def _cost_and_quality(self, root: Path, results: ComparisonResults) -> Passage | None:
        from attnlab.report import classifier_figures

        measure = self.tested(results)
        rows = [row for row in results.finished if row.by_seed(measure.name)]
        if len(rows) < 2:
            return None
        chosen = best_value(results)
        labels = [row.label for row in rows if collapsed(row)]
        drawn = classifier_figures.worth(rows, measure, chosen.label if chosen else None, labels)
        caption = f"{measure.title.capitalize()} against the time per run."
        figures = [draw(root, "worth", drawn, caption)]
        return Passage("Best for the money", [*best_value_notes(results), COST], figures=figures)

    def tested(self, results: ComparisonResults) -> Measure:
        """Test accuracy; where the test split was left alone, the one on dev."""
        measured = (m for m in results.on_test if any(row.by_seed(m.name) for row in results.finished))
        return next(measured, results.measure)

    def _curves(self, root: Path, results: ComparisonResults) -> Passage | None:
        """Accuracy by epoch; of very many variants the first."""
        from attnlab.report import classifier_figures

        stepwise = [row for row in results.finished if row.steps]
        curves = [curve for row in stepwise if (curve := accuracy_curve(row)).epochs][:PANELS]
        if not curves:
            return None
        drawn = classifier_figures.courses(curves, most_common_level(results.finished, "dev_baseline"))
        caption = "Accuracy on train (a part of it, dropout off) and dev by epoch; bands are 95% intervals over seeds."
        return Passage("The way there", figures=[draw(root, "courses", drawn, caption)])

    def _differences(self, results: ComparisonResults) -> Passage | None:
        """Every two variants against each other."""
        rows = [row for row in results.ordered if predictions(row)]
        if len(rows) < 2:
            return None
        heading, pairs = "Which differences are more than chance", all_pairs([runs_on_test(row) for row in rows])
        if not pairs:
            return Passage(heading, ["The variants were tested on different examples: no two of them are compared."])
        return Passage(heading, [PAIRS], [pair_matrix([row.label for row in rows], pairs), pair_details(pairs)])

    def notes(self, results: ComparisonResults) -> list[str]:
        return [*collapse_notes(results), *best_value_notes(results)]

    def plain(self, row: ExperimentRow, results: ComparisonResults) -> dict[str, Any]:
        return super().plain(row, results) | {
            "learning_parameters": learning_parameters(row),
            "learning_rates": learning_rates(row),
            "collapsed_seeds": collapsed(row),
        }

    def plain_extra(self, results: ComparisonResults) -> dict[str, Any]:
        chosen = best_value(results)
        return {
            "best_for_the_money": chosen.label if chosen else None,
            "pairs": [plain_pair(pair) for pair in all_pairs([runs_on_test(row) for row in results.ordered])],
        }

    def test_pair(self, results: ComparisonResults, labels: str) -> str:
        rows, names = results.rows, [name.strip() for name in labels.split(",")]
        if len(names) != 2:
            raise UserError(f"--pair {labels!r}: write two variants, such as '{rows[0].label},{rows[-1].label}'.")
        by_label = {row.label: row for row in rows}
        for name in names:
            if name not in by_label:
                raise UserError(f"--pair: {unknown('variant', name, by_label)}")
        return paired(runs_on_test(by_label[names[0]]), runs_on_test(by_label[names[1]])).sentence()


def collapsed(row: ExperimentRow) -> list[int]:
    """The seeds whose classifier predicts one class for nearly everything."""
    return [seed for seed, run in row.runs.items() if run.get("collapsed")]


def learning_parameters(row: ExperimentRow) -> int:
    return int(row.record.get("learning_parameters", 0))


def learning_rates(row: ExperimentRow) -> list[float]:
    """One, unless a collapse was answered with a lower one; none of what is fitted."""
    rates = [read_config(path)["optimizer"]["lr"] for path in row.paths.values()]
    return sorted({float(rate) for rate in rates if rate is not None}) if row.steps else []


def peak_memory(row: ExperimentRow) -> str:
    """The most that any of its runs held."""
    peaks = row.by_seed("peak_memory").values()
    return f"{max(peaks) / GIB:.2f} GiB" if peaks else ""


def predictions(row: ExperimentRow) -> dict[int, Prediction]:
    """On test, by seed."""
    read = {seed: read_predictions(path) for seed, path in row.paths.items()}
    return {seed: predicted for seed, predicted in read.items() if predicted is not None}


def accuracy_curve(row: ExperimentRow) -> AccuracyCurve:
    """The evaluations that all seeds have."""
    runs = [
        {line["step"]: line for line in read_metrics(path / "metrics.jsonl") if line.get("split") == "dev"}
        for path in row.paths.values()
    ]
    steps = sorted(set.intersection(*map(set, runs))) if runs else []
    by_split = {
        split: [Mean(tuple(lines[step][name] for lines in runs)) for step in steps]
        for split, name in {"train": "train_accuracy", "dev": "accuracy"}.items()
        if steps and name in runs[0][steps[0]]
    }
    title = f"{row.label}, rate {', '.join(f'{rate:g}' for rate in learning_rates(row))}"
    return AccuracyCurve(title, [step / _steps_per_epoch(row) for step in steps], by_split)


def _steps_per_epoch(row: ExperimentRow) -> float:
    """From the examples that were seen: a run may end within an epoch."""
    training = row.record["training"]
    return float(max(1.0, training["step"] * row.record["data"]["examples"]["train"] / max(1, training["examples"])))


def collapse_notes(results: ComparisonResults) -> list[str]:
    return [
        f"{row.label}: {len(seeds)} of {len(row.runs)} seed{'s' if len(row.runs) > 1 else ''} collapsed "
        f"(seed {', '.join(map(str, seeds))}): nearly every input gets one class, and its accuracy is that of "
        "always predicting the most common one."
        for row in results.finished
        if (seeds := collapsed(row))
    ]


def baseline_of(row: ExperimentRow) -> str | None:
    """Which baseline a row is, if it is one."""
    name = row.settings.get("model.name")
    return name if name in BASELINES else None


def chance_notes(results: ComparisonResults) -> list[str]:
    count = results.data.get("examples", {}).get("dev")
    return [
        f"{row.label} is at chance: {_dev(row):.1%} of dev, and always predicting the most common class gives "
        f"{row.mean('dev_baseline').mean:.1%}."
        for row in results.finished
        if baseline_of(row) != MAJORITY and not collapsed(row) and at_chance(row, count)
    ]


def below_notes(results: ComparisonResults) -> list[str]:
    """Who is below a baseline on the same rows and texts, by the measure that is reported."""
    measure = ClassifyView(results.job).tested(results)
    notes = []
    for baseline in (row for row in results.finished if baseline_of(row) in (TFIDF, EMBEDDINGS)):
        level = baseline.mean(measure.name)
        below = [
            f"{row.label} ({row.mean(measure.name).mean:.1%})"
            for row in results.finished
            if baseline_of(row) is None and _same_rows(row, baseline) and row.mean(measure.name).mean < level.mean
        ]
        if below:
            notes.append(f"Below {baseline.label}, {level.mean:.1%} by {measure.title}: {', '.join(below)}.")
    return notes


def _same_rows(row: ExperimentRow, baseline: ExperimentRow) -> bool:
    return all(row.settings.get(name) == value for name, value in baseline.settings.items() if name.startswith("data."))


def best_value(results: ComparisonResults) -> ExperimentRow | None:
    """The cheapest within one standard error of the best on dev (the rule of Breiman et al. 1984).

    None that collapsed, and none at chance: if there is no better one, no one is recommended.
    """
    count = results.data.get("examples", {}).get("dev")
    if len([row for row in results.finished if not collapsed(row)]) < 2 or not count:
        return None
    rows = [row for row in results.finished if not collapsed(row) and not at_chance(row, count)]
    if not rows:
        return None
    best = max(_dev(row) for row in rows)
    error = math.sqrt(best * (1 - best) / count)
    return min((row for row in rows if _dev(row) >= best - error), key=lambda row: row.mean("seconds").mean)


def at_chance(row: ExperimentRow, count: int | None) -> bool:
    """Whether the interval of its accuracy, on `count` examples of dev, reaches down to the most common class."""
    level = row.mean("dev_baseline")
    if not level.count or not count:
        return False
    low, _ = Proportion(round(_dev(row) * count), count).interval
    return low <= level.mean


def _dev(row: ExperimentRow) -> float:
    return row.mean("dev_accuracy").mean


def best_value_notes(results: ComparisonResults) -> list[str]:
    chosen, count = best_value(results), results.data.get("examples", {}).get("dev")
    if chosen is None:
        hopeless = count and len(results.finished) > 1 and all(at_chance(row, count) for row in results.finished)
        return ["Best for the money: none. No variant is better on dev than chance explains."] if hopeless else []
    best = max((row for row in results.finished if not collapsed(row)), key=_dev)
    test = plus_minus(chosen.mean("test_accuracy"), ".1%") + " on test" if chosen.by_seed("test_accuracy") else ""
    costs = ", ".join(filter(None, [test, f"{clock(chosen.mean('seconds').mean)} per run", peak_memory(chosen)]))
    if chosen is best:
        return [f"Best for the money: {chosen.label} ({costs}). It is the best on dev, and nothing near it is cheaper."]
    return [
        f"Best for the money: {chosen.label} ({costs}), the cheapest within one standard error of the best on dev, "
        f"{best.label} ({_dev(best):.1%} against {_dev(chosen):.1%}; {clock(best.mean('seconds').mean)} per run)."
    ]


def runs_on_test(row: ExperimentRow) -> RunsOnTest:
    scores = row.by_seed("dev_accuracy")
    return RunsOnTest(row.label, predictions(row), scores, row.reason or "its test split was left alone.")
