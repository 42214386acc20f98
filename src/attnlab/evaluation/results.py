"""Everything an evaluation reports about the answers, as plain numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from attnlab.evaluation.abstaining import Abstaining, NameThreshold
from attnlab.evaluation.answer_trace import MADE_UP, NEVER_NAMED, RETRIEVED, contains_words
from attnlab.evaluation.answers import AnsweredQuestion, AskedModel
from attnlab.evaluation.sources import Sources
from attnlab.evaluation.unseen_names import FROM_QUESTIONS, INVENTED, RECOMBINED, UnseenName, unseen_in_questions
from attnlab.models.asking import most_common
from attnlab.stats.calibration import Abstention, Area, bins, calibration_error, coverage, threshold_for
from attnlab.stats.intervals import Proportion

EXAMPLES = 3
COMMON_ANSWERS = 8


def evaluation_results(
    answered: Sequence[AnsweredQuestion],
    invented: Sequence[UnseenName],
    dev: Sequence[AnsweredQuestion],
    sources: Sources,
    asked: AskedModel,
    abstaining: Abstaining,
    target_accuracy: float,
) -> dict[str, Any]:
    """What the report shows, ready for JSON. `dev` is empty when no threshold can be chosen."""
    confidence, right = [each.answer.confidence for each in answered], [each.right for each in answered]
    groups = bins(confidence, right)
    answered_share, accuracy = coverage(confidence, right)
    unseen = [*invented, *unseen_in_questions(answered, sources)]
    results = {
        "accuracy": _share(sum(right), len(right)),
        "baseline": _baseline(answered, sources),
        "calibration_error": calibration_error(groups),
        "bins": [asdict(group) for group in groups],
        "right_against_wrong": asdict(Area.of(confidence, right)),
        "coverage": {"answered": answered_share, "accuracy": accuracy},
        "abstention": None,
        "chosen_on_dev": _threshold_from_dev(dev, answered, target_accuracy) if dev else None,
        "unseen": _unseen(answered, unseen, sources, asked),
        "names": _names(abstaining.names, answered, unseen) if abstaining.names is not None else None,
        "categories": _categories(answered),
    }
    if abstaining.below is not None:
        results["abstention"] = Abstention.at(abstaining.below, confidence, right).to_dict()
    return results


def _share(right: int, count: int) -> dict[str, Any]:
    proportion = Proportion(right, count)
    return {"right": right, "count": count, "share": proportion.share, "interval": list(proportion.interval)}


def _baseline(answered: Sequence[AnsweredQuestion], sources: Sources) -> dict[str, Any] | None:
    pairs = sources.trained_on or sources.questions.get("train")
    if not pairs:
        return None
    place = most_common(pairs)
    return {"answer": place, **_share(sum(each.expected == place for each in answered), len(answered))}


def _threshold_from_dev(
    dev: Sequence[AnsweredQuestion], answered: Sequence[AnsweredQuestion], target: float
) -> dict[str, Any]:
    sets = [([each.answer.confidence for each in part], [each.right for each in part]) for part in (dev, answered)]
    threshold = threshold_for(target, *sets[0])
    if threshold is None:
        return {"wished": target, "threshold": None}
    on_dev, reported = (Abstention.at(threshold, *part).to_dict() for part in sets)
    return {"wished": target, "threshold": threshold, "dev": on_dev, "reported": reported}


def _unseen(
    answered: Sequence[AnsweredQuestion], unseen: Sequence[UnseenName], sources: Sources, asked: AskedModel
) -> dict[str, Any] | None:
    if not unseen:
        return None
    read = [each for each in answered if each.name is not None and sources.mentions(each.name)]
    known = [each.answer.confidence for each in read]
    counts = Counter(each.answer.text for each in unseen)
    trained = Counter(place for _, place in sources.trained_on)
    total = max(1, trained.total())
    common = [
        {"answer": place, "share": count / len(unseen), "share_in_training": trained[place] / total}
        for place, count in counts.most_common(COMMON_ANSWERS)
    ]
    kinds = [
        _unseen_kind([each for each in unseen if each.kind == kind], read, sources, asked)
        for kind in (FROM_QUESTIONS, INVENTED, RECOMBINED)
        if any(each.kind == kind for each in unseen)
    ]
    return {
        "count": len(unseen),
        "known": len(known),
        "mean_confidence_known": sum(known) / len(known) if known else None,
        "different_answers": len(counts),
        "answers_from_training": sum(counts[place] for place in trained) / len(unseen),
        "common_answers": common,
        "kinds": kinds,
        "confidence_known": known,
        "known_against_unseen": _known_against_unseen(known, [each.answer.confidence for each in unseen]),
        "names_known_against_unseen": _by_name(read, unseen),
        "name_probabilities_known": _probabilities(read),
    }


def _unseen_kind(
    names: Sequence[UnseenName], known: Sequence[AnsweredQuestion], sources: Sources, asked: AskedModel
) -> dict[str, Any]:
    """One kind of unseen name: how many, how confident the model is, and whether that distinguishes them."""
    confidence = [each.answer.confidence for each in names]
    examples = [
        {"name": each.name, "answer": each.answer.text, "confidence": each.answer.confidence}
        for each in names[:EXAMPLES]
    ]
    return {
        "kind": names[0].kind,
        "count": len(names),
        "not_in_vocabulary": sum(not asked.has_words(sources.template.question_about(each.name)) for each in names),
        "mean_confidence": sum(confidence) / len(names),
        "known_against_unseen": _known_against_unseen([each.answer.confidence for each in known], confidence),
        "names_known_against_unseen": _by_name(known, names),
        "name_probabilities": _probabilities(names),
        "confidence": confidence,
        "examples": examples,
    }


def _known_against_unseen(known: list[float], unseen: list[float]) -> dict[str, float] | None:
    is_known = [True] * len(known) + [False] * len(unseen)
    return asdict(Area.of(known + unseen, is_known)) if known and unseen else None


def _by_name(known: Sequence[AnsweredQuestion], unseen: Sequence[UnseenName]) -> dict[str, float] | None:
    """How well the probability of the name separates them, where names have one."""
    return _known_against_unseen(_probabilities(known), _probabilities(unseen))


def _probabilities(names: Sequence[AnsweredQuestion] | Sequence[UnseenName]) -> list[float]:
    return [each.name_probability for each in names if each.name_probability is not None]


def _names(
    threshold: NameThreshold, answered: Sequence[AnsweredQuestion], unseen: Sequence[UnseenName]
) -> dict[str, Any]:
    """What `--abstain` does: the answers that remain, and the unseen names for which none is given."""
    known = [float(threshold.knows(each.name_probability)) for each in answered]
    kinds = [FROM_QUESTIONS, INVENTED, RECOMBINED]
    withheld = Counter(each.kind for each in unseen if not threshold.knows(each.name_probability))
    counts = Counter(each.kind for each in unseen)
    return {
        "threshold": threshold.to_dict(),
        "abstention": Abstention.at(1.0, known, [each.right for each in answered]).to_dict()
        | {"threshold": threshold.value},
        "withheld": [
            {"kind": kind, "count": counts[kind], "withheld": withheld[kind]} for kind in kinds if counts[kind]
        ],
    }


def _categories(answered: Sequence[AnsweredQuestion]) -> list[dict[str, Any]] | None:
    """Right and wrong answers by where they can come from: how many, mean confidence, and a few examples."""
    traced = [each for each in answered if each.trace is not None]
    if not traced:
        return None
    categories = []
    for right in (True, False):
        for kind in (RETRIEVED, MADE_UP, NEVER_NAMED):
            part = [each for each in traced if each.right == right and each.trace and each.trace.kind == kind]
            mean = sum(each.answer.confidence for each in part) / len(part) if part else None
            categories.append(
                {
                    "right": right,
                    "kind": kind,
                    "count": len(part),
                    "mean_confidence": mean,
                    "expected_in_lines": sum(map(_expected_in_text, part)),
                    "examples": [_example(each) for each in part[:EXAMPLES]],
                }
            )
    return categories


def _expected_in_text(each: AnsweredQuestion) -> bool:
    """The expected answer occurs in a line that names the person: the model could have learned it."""
    assert each.trace is not None
    return each.expected is not None and any(contains_words(line.text, each.expected) for line in each.trace.lines)


def _example(each: AnsweredQuestion) -> dict[str, Any]:
    assert each.trace is not None
    return {
        "question": each.question,
        "expected": each.expected,
        "answer": each.answer.text,
        "confidence": each.answer.confidence,
        "named_in": [line.number for line in each.trace.lines],
        "answer_in": each.trace.with_answer,
    }
