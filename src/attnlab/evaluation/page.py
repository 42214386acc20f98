"""The page of an evaluation: what came out, how sure the model is, and what it made up."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attnlab.evaluation import figures
from attnlab.report.figures import save
from attnlab.report.page import Figure, Passage, Table, write_page
from attnlab.stats.calibration import Area
from attnlab.stats.intervals import Proportion


def write_evaluation_page(folder: Path, found: Mapping[str, Any]) -> None:
    """Write report.html and figures/ into `folder` from what results.json holds."""
    (folder / "figures").mkdir()
    passages = [
        Passage("What came out", outcome(found), figures=_answering(folder, found)),
        Passage("How sure it is", _sureness(found), figures=_reliability(folder, found)),
        Passage('What "I don\'t know" buys', *_abstaining(found)),
        Passage("Names it has never seen", *_strangers(folder, found)),
        Passage("Retrieved or made up", *_origins(found)),
        Passage("Read with care", _cautions(found)),
        Passage("How to do it again", printed=found["command"]),
    ]
    lead = f"{found['run']} asked {found['accuracy']['count']} questions: {found['source']}."
    write_page(folder / "report.html", "Knowing when the answer is made up", lead, passages)


def outcome(found: Mapping[str, Any]) -> list[str]:
    """Accuracy beside the baseline, for the page and for the terminal."""
    told = [f"right: {_proportion(found['accuracy'])} of {found['accuracy']['count']} questions"]
    base = found["baseline"]
    if base is None:
        return [*told, "most common place: unknown, as there are no training questions to count"]
    return [*told, f"most common place ({base['answer']}): {_proportion(base)}"]


def separation(found: Mapping[str, Any]) -> list[str]:
    """What the confidence is worth, in a few lines."""
    told = [
        f"confidence, right against wrong: AUC {_area(found['right_against_wrong'])}",
        f"expected calibration error: {found['calibration_error']:.3f}",
    ]
    for kind in found["unseen"]["kinds"] if found["unseen"] else []:
        if kind["known_against_unseen"]:
            what = f"{kind['count']} names never seen ({kind['kind']})"
            told.append(f"confidence, known against {what}: AUC {_area(kind['known_against_unseen'])}")
    return told


def abstaining(what: Mapping[str, Any]) -> str:
    """One threshold on one set of answers."""
    given = Proportion(what["right"], what["answered"])
    among = f", {given} of them right" if given.count else ""
    return (
        f"below {what['threshold']:.3f} it does not answer: {what['answered']} of {what['questions']} answers given"
        f"{among}; {what['wrong_avoided']} wrong answers avoided, {what['right_lost']} right ones lost"
    )


def chosen(found: Mapping[str, Any]) -> list[str]:
    """The threshold dev chose, and what it does here."""
    choice = found["chosen_on_dev"]
    if choice is None:
        return []
    wish = f"for {choice['wished']:.0%} right among the answers given"
    if choice["threshold"] is None:
        return [f"{wish}, dev offers no threshold"]
    return [
        f"{wish}, chosen on dev ({choice['dev']['questions']} questions): {abstaining(choice['dev'])}",
        f"that threshold on the reported questions: {abstaining(choice['reported'])}",
    ]


def _proportion(part: Mapping[str, Any]) -> Proportion:
    return Proportion(part["right"], part["count"])


def _area(values: Mapping[str, float]) -> Area:
    return Area(**values)


def _figure(folder: Path, name: str, drawn: Any, caption: str) -> Figure:
    svg = save(drawn, folder / "figures" / f"{name}.png")
    (folder / "figures" / f"{name}.svg").write_text(svg, encoding="utf-8")
    return Figure(svg, caption)


def _answering(folder: Path, found: Mapping[str, Any]) -> list[Figure]:
    base = found["baseline"]
    drawn = figures.answered_share(found["coverage"], base["share"] if base else None)
    caption = "Accuracy among the surest answers, by the share of questions answered; towards the left few remain."
    return [_figure(folder, "coverage", drawn, caption)]


def _sureness(found: Mapping[str, Any]) -> list[str]:
    return [
        f"The confidence is {found['confidence_meaning']}. An AUC of 0.5 says nothing, of 1 parts right answers from "
        "wrong ones without a mistake; intervals are 95%, over questions drawn with replacement.",
        *separation(found),
    ]


def _reliability(folder: Path, found: Mapping[str, Any]) -> list[Figure]:
    caption = "Right answers by confidence, with 95% Wilson intervals, and how many answers each bin holds."
    return [_figure(folder, "reliability", figures.reliability(found["bins"]), caption)]


def _abstaining(found: Mapping[str, Any]) -> tuple[list[str], list[Table]]:
    rows = []
    if found["abstention"]:
        rows.append(["asked for", *_abstention_row(found["abstention"])])
    choice = found["chosen_on_dev"]
    if choice and choice["threshold"] is not None:
        rows.append([f"chosen on dev for {choice['wished']:.0%}: dev", *_abstention_row(choice["dev"])])
        rows.append(["the same on the reported questions", *_abstention_row(choice["reported"])])
    told = [] if rows else ["No threshold was asked for (--abstain-below), and none could be chosen on a dev set."]
    if choice:
        told = ["The threshold was chosen on dev and only then applied to the reported questions."]
        if choice["threshold"] is None:
            told = [f"No threshold makes {choice['wished']:.0%} of the answers on dev right."]
    header = ["threshold", "", "answers given", "right among them (95% interval)", "wrong avoided", "right lost"]
    return told, [Table(header, rows)] if rows else []


def _abstention_row(what: Mapping[str, Any]) -> list[str]:
    given = Proportion(what["right"], what["answered"])
    return [
        f"{what['threshold']:.3f}",
        f"{what['answered']} of {what['questions']}",
        str(given) if given.count else "",
        str(what["wrong_avoided"]),
        str(what["right_lost"]),
    ]


def _strangers(folder: Path, found: Mapping[str, Any]) -> tuple[list[str], list[Table], list[Figure]]:
    unseen = found["unseen"]
    if unseen is None:
        return ["Nobody unseen was asked about, or without the corpus it cannot be told who is."], [], []
    told = [
        "Nobody of these occurs in pretraining or in fine-tuning, so nothing about them can have been learned. The "
        f"model answers all the same: {unseen['count']} names, {unseen['different_answers']} different answers, "
        f"{unseen['answers_from_training']:.0%} of the time a place that fine-tuning taught."
    ]
    if any(kind["not_in_vocabulary"] for kind in unseen["kinds"]):
        told.append(
            "Names with words the vocabulary does not have all look alike to the model, which makes them easy to tell "
            "from known ones. Recombined names are the harder test; their halves, though, were trained on, which may "
            "make the model surer of them."
        )
    prior = [
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
            ["names", "how many", "not in the vocabulary", "mean confidence", "AUC, known against these"],
            [
                ["people it has met", str(unseen["known"]), "", _mean(unseen["mean_confidence_known"]), ""],
                *(_kind_row(kind) for kind in unseen["kinds"]),
            ],
        ),
        Table(["what it says about strangers", "share", "share of the training answers"], prior),
        Table(["stranger", "answer", "confidence"], examples),
    ]
    drawn = figures.known_and_unseen(unseen["confidence_known"], {k["kind"]: k["confidence"] for k in unseen["kinds"]})
    caption = "Confidence for people it has met, and for names that occur nowhere."
    if unseen["known_against_unseen"]:
        caption += f" Known against all of these: AUC {_area(unseen['known_against_unseen'])}."
    return told, tables, [_figure(folder, "strangers", drawn, caption)]


def _kind_row(kind: Mapping[str, Any]) -> list[str]:
    apart = str(_area(kind["known_against_unseen"])) if kind["known_against_unseen"] else ""
    return [kind["kind"], str(kind["count"]), str(kind["not_in_vocabulary"]), _mean(kind["mean_confidence"]), apart]


def _mean(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _origins(found: Mapping[str, Any]) -> tuple[list[str], list[Table]]:
    if found["categories"] is None:
        return ["The answers were not traced: the text of pretraining, or the names in the questions, are missing."], []
    told = [
        "Retrieved: the answer stands in a line of pretraining that names the person. Made up: lines name the person, "
        "and none holds the answer. This is told from the text, afterwards; it does not show how the model came to it."
    ]
    counts, examples = [], []
    for each in found["categories"]:
        verdict = "right" if each["right"] else "wrong"
        mean = _mean(each["mean_confidence"])
        counts.append([verdict, each["kind"], str(each["count"]), mean, str(each["expected_in_lines"])])
        examples += [
            [
                verdict,
                each["kind"],
                one["question"],
                one["expected"],
                one["answer"],
                f"{one['confidence']:.2f}",
                _lines(one["named_in"]),
                _lines(one["answer_in"]),
            ]
            for one in each["examples"]
        ]
    header = ["", "answer", "questions", "mean confidence", "expected answer is in the lines"]
    more = ["", "answer", "question", "expected", "said", "confidence", "lines that name the person", "with the answer"]
    return told, [Table(header, counts), Table(more, examples)]


def _lines(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:6]))
    return shown + (f" and {len(numbers) - 6} more" if len(numbers) > 6 else "")


def _cautions(found: Mapping[str, Any]) -> list[str]:
    return ["One model, one seed: the intervals are over questions and say nothing about other seeds.", *found["notes"]]
