"""The page of an evaluation: accuracy, confidence, and which answers were made up."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attnlab.base.files import write_text
from attnlab.evaluation import figures
from attnlab.report.figures import reliability, save
from attnlab.report.page import Figure, Passage, Table, write_page
from attnlab.stats.calibration import Area
from attnlab.stats.intervals import Proportion


def write_evaluation_page(folder: Path, results: Mapping[str, Any]) -> None:
    """Write report.html and figures/ into `folder` from the contents of results.json."""
    (folder / "figures").mkdir()
    passages = [
        Passage("Accuracy", accuracy_lines(results), figures=_coverage_figure(folder, results)),
        Passage("Confidence", _confidence_paragraphs(results), figures=_reliability_figure(folder, results)),
        Passage('Abstaining: the effect of "I don\'t know"', *_abstention(results)),
        Passage("Unseen names", *_unseen_names(folder, results)),
        Passage("Retrieved or made up", *_origins(results)),
        Passage("Limits", _limits(results)),
        Passage("How to reproduce it", printed=results["command"]),
    ]
    lead = f"{results['run']} was asked {results['accuracy']['count']} questions: {results['source']}."
    write_page(folder / "report.html", "Which answers are made up?", lead, passages)


def accuracy_lines(results: Mapping[str, Any]) -> list[str]:
    """Accuracy and baseline, for the page and for the terminal."""
    accuracy = f"accuracy: {_proportion(results['accuracy'])} of {results['accuracy']['count']} questions"
    baseline = results["baseline"]
    if baseline is None:
        return [accuracy, "most common place: unknown, because there are no training questions"]
    return [accuracy, f"most common place ({baseline['answer']}): {_proportion(baseline)}"]


def confidence_lines(results: Mapping[str, Any]) -> list[str]:
    """How well the confidence separates right from wrong answers and known from unseen names."""
    lines = [
        f"confidence, right against wrong: AUC {_area(results['right_against_wrong'])}",
        f"expected calibration error: {results['calibration_error']:.3f}",
    ]
    for kind in results["unseen"]["kinds"] if results["unseen"] else []:
        if kind["known_against_unseen"]:
            what = f"{kind['count']} unseen names ({kind['kind']})"
            lines.append(f"confidence, known against {what}: AUC {_area(kind['known_against_unseen'])}")
        if results["names"] and kind["names_known_against_unseen"]:
            lines.append(f"name, known against {what}: AUC {_area(kind['names_known_against_unseen'])}")
    return lines


def name_lines(results: Mapping[str, Any]) -> list[str]:
    """What withholding answers about names that were never read does, on the questions and on the unseen names."""
    names = results["names"]
    if names is None:
        return []
    chosen = names["threshold"]
    lines = [
        f"names below {chosen['value']:.3g} count as never read (chosen on {chosen['known']} names of training "
        f"questions and {chosen['unseen']} recombined ones, of which it keeps {chosen['sensitivity']:.0%} and "
        f"{1 - chosen['specificity']:.0%})",
        f"--abstain: {_effect(names['abstention'])}",
    ]
    for kind in names["withheld"]:
        lines.append(f"--abstain: no answer for {kind['withheld']} of {kind['count']} unseen names ({kind['kind']})")
    return lines


def abstention_line(abstention: Mapping[str, Any]) -> str:
    """The effect of one threshold on one set of answers."""
    return f"threshold {abstention['threshold']:.3f}: {_effect(abstention)}"


def _effect(abstention: Mapping[str, Any]) -> str:
    given = Proportion(abstention["right"], abstention["answered"])
    accuracy = f", accuracy {given}" if given.count else ""
    return (
        f"{abstention['answered']} of {abstention['questions']} answers given{accuracy}; "
        f"{abstention['wrong_avoided']} wrong answers avoided, {abstention['right_lost']} right ones lost"
    )


def dev_threshold_lines(results: Mapping[str, Any]) -> list[str]:
    """The threshold chosen on dev, and its effect on the evaluated questions."""
    choice = results["chosen_on_dev"]
    if choice is None:
        return []
    target = f"target accuracy {choice['wished']:.0%}"
    if choice["threshold"] is None:
        return [f"{target}: no threshold reaches it on dev"]
    return [
        f"{target}, chosen on dev ({choice['dev']['questions']} questions): {abstention_line(choice['dev'])}",
        f"the same threshold on the evaluated questions: {abstention_line(choice['reported'])}",
    ]


def _proportion(part: Mapping[str, Any]) -> Proportion:
    return Proportion(part["right"], part["count"])


def _area(values: Mapping[str, float]) -> Area:
    return Area(**values)


def _figure(folder: Path, name: str, drawing: Any, caption: str) -> Figure:
    svg = save(drawing, folder / "figures" / f"{name}.png")
    write_text(folder / "figures" / f"{name}.svg", svg)
    return Figure(svg, caption)


def _coverage_figure(folder: Path, results: Mapping[str, Any]) -> list[Figure]:
    baseline = results["baseline"]
    drawing = figures.coverage(results["coverage"], baseline["share"] if baseline else None)
    caption = "Accuracy of the most confident answers, by the share of questions answered; few answers are at the left."
    return [_figure(folder, "coverage", drawing, caption)]


def _confidence_paragraphs(results: Mapping[str, Any]) -> list[str]:
    return [
        f"The confidence is {results['confidence_meaning']}. An AUC of 0.5 means no separation, an AUC of 1 perfect "
        "separation of right from wrong answers; intervals are 95%, by bootstrap over questions.",
        *confidence_lines(results),
    ]


def _reliability_figure(folder: Path, results: Mapping[str, Any]) -> list[Figure]:
    caption = "Accuracy by confidence with 95% Wilson intervals, and the number of answers per bin."
    return [_figure(folder, "reliability", reliability(results["bins"]), caption)]


def _abstention(results: Mapping[str, Any]) -> tuple[list[str], list[Table]]:
    rows = []
    if results["abstention"]:
        rows.append(["--abstain-below", *_abstention_row(results["abstention"])])
    if results["names"]:
        rows.append(["--abstain (by the name)", *_abstention_row(results["names"]["abstention"])])
    choice = results["chosen_on_dev"]
    if choice and choice["threshold"] is not None:
        rows.append([f"chosen on dev for {choice['wished']:.0%}: dev", *_abstention_row(choice["dev"])])
        rows.append(["the same on the evaluated questions", *_abstention_row(choice["reported"])])
    paragraphs = [] if rows else ["No threshold was given (--abstain-below), and none could be chosen on a dev set."]
    if choice:
        paragraphs = ["The threshold was chosen on dev and only then applied to the evaluated questions."]
        if choice["threshold"] is None:
            paragraphs = [f"No threshold reaches an accuracy of {choice['wished']:.0%} on dev."]
    header = ["", "threshold", "answers given", "accuracy (95% interval)", "wrong avoided", "right lost"]
    return paragraphs, [Table(header, rows)] if rows else []


def _abstention_row(abstention: Mapping[str, Any]) -> list[str]:
    given = Proportion(abstention["right"], abstention["answered"])
    return [
        f"{abstention['threshold']:.3f}",
        f"{abstention['answered']} of {abstention['questions']}",
        str(given) if given.count else "",
        str(abstention["wrong_avoided"]),
        str(abstention["right_lost"]),
    ]


def _unseen_names(folder: Path, results: Mapping[str, Any]) -> tuple[list[str], list[Table], list[Figure]]:
    unseen = results["unseen"]
    if unseen is None:
        return (
            ["No unseen name was asked about, or the corpus is missing and unseen names cannot be identified."],
            [],
            [],
        )
    paragraphs = [
        "None of these names occurs in pretraining or in fine-tuning, so the model cannot have learned anything about "
        f"them. It answers all the same: {unseen['count']} names, {unseen['different_answers']} different answers, "
        f"{unseen['answers_from_training']:.0%} of the time a place from the fine-tuning questions."
    ]
    if any(kind["not_in_vocabulary"] for kind in unseen["kinds"]):
        paragraphs.append(
            "Names with words that are not in the vocabulary all look alike to the model, so they are easy to "
            "distinguish from known ones. Recombined names are the harder test; but both halves were trained on, "
            "which may make the model more confident about them."
        )
    if results["names"]:
        paragraphs.append(
            f"The probability of a name is {results['name_meaning']}. It is what --abstain uses: "
            + "; ".join(name_lines(results))
            + "."
        )
    common = [
        [each["answer"], f"{each['share']:.1%}", f"{each['share_in_training']:.1%}"]
        for each in unseen["common_answers"]
    ]
    examples = [
        [each["name"], each["answer"], f"{each['confidence']:.2f}"]
        for kind in unseen["kinds"]
        for each in kind["examples"]
    ]
    tables = [
        Table(
            ["names", "count", "not in the vocabulary", "mean confidence", "AUC by confidence", "AUC by the name"],
            [
                ["known people", str(unseen["known"]), "", _mean(unseen["mean_confidence_known"]), "", ""],
                *(_kind_row(kind) for kind in unseen["kinds"]),
            ],
        ),
        Table(["answer for unseen names", "share", "share of the training answers"], common),
        Table(["unseen name", "answer", "confidence"], examples),
    ]
    drawing = figures.known_and_unseen(
        unseen["confidence_known"], {kind["kind"]: kind["confidence"] for kind in unseen["kinds"]}
    )
    caption = "Confidence for known people and for unseen names."
    if unseen["known_against_unseen"]:
        caption += f" Known against all unseen names: AUC {_area(unseen['known_against_unseen'])}."
    drawn = [_figure(folder, "unseen-names", drawing, caption)]
    if results["names"] and unseen["name_probabilities_known"]:
        by_kind = {kind["kind"]: kind["name_probabilities"] for kind in unseen["kinds"]}
        threshold = results["names"]["threshold"]["value"]
        drawing = figures.name_probabilities(unseen["name_probabilities_known"], by_kind, threshold)
        caption = "Probability of the name, by which --abstain distinguishes them."
        drawn.append(_figure(folder, "name-probabilities", drawing, caption))
    return paragraphs, tables, drawn


def _kind_row(kind: Mapping[str, Any]) -> list[str]:
    areas = [kind["known_against_unseen"], kind["names_known_against_unseen"]]
    return [
        kind["kind"],
        str(kind["count"]),
        str(kind["not_in_vocabulary"]),
        _mean(kind["mean_confidence"]),
        *(str(_area(area)) if area else "" for area in areas),
    ]


def _mean(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _origins(results: Mapping[str, Any]) -> tuple[list[str], list[Table]]:
    if results["categories"] is None:
        return ["The answers were not traced: the pretraining text or the names in the questions are missing."], []
    paragraphs = [
        "Retrieved: the answer occurs in a line of the pretraining text that names the person. Made up: lines name the "
        "person, but none contains the answer. This is read from the text; it does not show how the model arrived at "
        "the answer."
    ]
    counts, examples = [], []
    for category in results["categories"]:
        verdict = "right" if category["right"] else "wrong"
        mean = _mean(category["mean_confidence"])
        counts.append([verdict, category["kind"], str(category["count"]), mean, str(category["expected_in_lines"])])
        examples += [
            [
                verdict,
                category["kind"],
                example["question"],
                example["expected"],
                example["answer"],
                f"{example['confidence']:.2f}",
                _line_numbers(example["named_in"]),
                _line_numbers(example["answer_in"]),
            ]
            for example in category["examples"]
        ]
    header = ["", "origin", "questions", "mean confidence", "expected answer is in the lines"]
    columns = [
        "",
        "origin",
        "question",
        "expected",
        "answer",
        "confidence",
        "lines naming the person",
        "with the answer",
    ]
    return paragraphs, [Table(header, counts), Table(columns, examples)]


def _line_numbers(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:6]))
    return shown + (f" and {len(numbers) - 6} more" if len(numbers) > 6 else "")


def _limits(results: Mapping[str, Any]) -> list[str]:
    return ["One model, one seed: the intervals are over questions, not over seeds.", *results["notes"]]
