"""All questions asked, and everything a report says about the answers, as plain numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from attnlab.evaluation.sources import Background
from attnlab.evaluation.trace import MADE_UP, NEVER_NAMED, RETRIEVED, Trace, stands_in
from attnlab.evaluation.unseen_names import recombine
from attnlab.models.asking import Said, most_common
from attnlab.stats.calibration import Abstention, Area, bins, calibration_error, coverage, threshold_for
from attnlab.stats.intervals import Proportion

Ask = Callable[[Sequence[str]], list[Said]]

Readable = Callable[[str], bool]  # whether the vocabulary has all tokens of a text

ASKED = "named in the questions"
INVENTED = "invented: not of this world"
RECOMBINED = "invented: first and last names of others"
EXAMPLES = 3
COMMON_ANSWERS = 8


@dataclass(frozen=True)
class Answered:
    """A question with all that is known about its answer."""

    question: str
    expected: str | None
    said: Said
    name: str | None
    trace: Trace | None

    @property
    def right(self) -> bool:
        return self.said.text == self.expected


@dataclass(frozen=True)
class Stranger:
    """A name that occurs nowhere, and what was said about it all the same."""

    name: str
    said: Said
    kind: str


def put(ask: Ask, questions: Sequence[str], expected: Sequence[str] | None, known: Background) -> list[Answered]:
    """Ask all questions and look up where the answers can have come from."""
    answered = []
    for index, (question, said) in enumerate(zip(questions, ask(questions), strict=True)):
        name = known.template.name(question)
        trace = known.reading.trace(name, said.text) if name is not None and known.reading is not None else None
        answered.append(Answered(question, expected[index] if expected else None, said, name, trace))
    return answered


def meet_strangers(ask: Ask, readable: Readable, count: int, known: Background, seed: int) -> list[Stranger]:
    """Ask about invented names: those a world does not have, or new meetings of first and last names.

    A vocabulary of words reads a word it has never met as UNKNOWN, and all such names as one. Strangers of a world
    that look like that are easily told apart, so recombined names are asked about beside them.
    """
    names: dict[str, str] = {}
    if known.world is not None:
        names = dict.fromkeys(known.world.unseen_names(count), INVENTED)
    if known.reading is not None and not (names and all(readable(known.template.ask(name)) for name in names)):
        names |= dict.fromkeys(recombine(list(known.names), count, known.knows, seed), RECOMBINED)
    said = ask([known.template.ask(name) for name in names]) if names else []
    return [Stranger(name, each, kind) for (name, kind), each in zip(names.items(), said, strict=True)]


def results(
    answered: Sequence[Answered],
    strangers: Sequence[Stranger],
    dev: Sequence[Answered],
    known: Background,
    readable: Readable,
    abstain_below: float | None,
    wished: float,
) -> dict[str, Any]:
    """What the report shows, ready for JSON. `dev` is empty when no threshold can be chosen."""
    confidence, right = [each.said.confidence for each in answered], [each.right for each in answered]
    groups = bins(confidence, right)
    answered_share, accuracy = coverage(confidence, right)
    unseen = [*strangers, *unnamed(answered, known)]
    found = {
        "accuracy": _share(sum(right), len(right)),
        "baseline": _baseline(answered, known),
        "calibration_error": calibration_error(groups),
        "bins": [asdict(group) for group in groups],
        "right_against_wrong": asdict(Area.of(confidence, right)),
        "coverage": {"answered": answered_share, "accuracy": accuracy},
        "abstention": None,
        "chosen_on_dev": _chosen(dev, answered, wished) if dev else None,
        "unseen": _unseen(answered, unseen, known, readable),
        "categories": _categories(answered),
    }
    if abstain_below is not None:
        found["abstention"] = Abstention.at(abstain_below, confidence, right).to_dict()
    return found


def unnamed(answered: Sequence[Answered], known: Background) -> list[Stranger]:
    """The questions whose person occurred neither in pretraining nor in fine-tuning."""
    if known.reading is None:
        return []
    return [
        Stranger(each.name, each.said, ASKED)
        for each in answered
        if each.name is not None and not known.knows(each.name)
    ]


def _share(right: int, count: int) -> dict[str, Any]:
    found = Proportion(right, count)
    return {"right": right, "count": count, "share": found.share, "interval": list(found.interval)}


def _baseline(answered: Sequence[Answered], known: Background) -> dict[str, Any] | None:
    pairs = known.trained_on or known.questions.get("train")
    if not pairs:
        return None
    place = most_common(pairs)
    return {"answer": place, **_share(sum(each.expected == place for each in answered), len(answered))}


def _chosen(dev: Sequence[Answered], answered: Sequence[Answered], wished: float) -> dict[str, Any]:
    sets = [([each.said.confidence for each in part], [each.right for each in part]) for part in (dev, answered)]
    threshold = threshold_for(wished, *sets[0])
    if threshold is None:
        return {"wished": wished, "threshold": None}
    on_dev, here = (Abstention.at(threshold, *part).to_dict() for part in sets)
    return {"wished": wished, "threshold": threshold, "dev": on_dev, "reported": here}


def _unseen(
    answered: Sequence[Answered], unseen: Sequence[Stranger], known: Background, readable: Readable
) -> dict[str, Any] | None:
    if not unseen:
        return None
    seen = [each.said.confidence for each in answered if each.name is not None and known.knows(each.name)]
    counts = Counter(each.said.text for each in unseen)
    taught = Counter(place for _, place in known.trained_on)
    total = max(1, taught.total())
    common = [
        {"answer": place, "share": count / len(unseen), "share_in_training": taught[place] / total}
        for place, count in counts.most_common(COMMON_ANSWERS)
    ]
    kinds = [
        _kind([each for each in unseen if each.kind == kind], seen, known, readable)
        for kind in (ASKED, INVENTED, RECOMBINED)
        if any(each.kind == kind for each in unseen)
    ]
    return {
        "count": len(unseen),
        "known": len(seen),
        "mean_confidence_known": sum(seen) / len(seen) if seen else None,
        "different_answers": len(counts),
        "answers_from_training": sum(counts[place] for place in taught) / len(unseen),
        "common_answers": common,
        "kinds": kinds,
        "confidence_known": seen,
        "known_against_unseen": _parted(seen, [each.said.confidence for each in unseen]),
    }


def _kind(part: Sequence[Stranger], seen: list[float], known: Background, readable: Readable) -> dict[str, Any]:
    """One kind of stranger: how many, how sure the model is, and whether that gives them away."""
    confidence = [each.said.confidence for each in part]
    unreadable = sum(not readable(known.template.ask(each.name)) for each in part)
    examples = [
        {"name": each.name, "answer": each.said.text, "confidence": each.said.confidence} for each in part[:EXAMPLES]
    ]
    return {
        "kind": part[0].kind,
        "count": len(part),
        "not_in_vocabulary": unreadable,
        "mean_confidence": sum(confidence) / len(part),
        "known_against_unseen": _parted(seen, confidence),
        "confidence": confidence,
        "examples": examples,
    }


def _parted(seen: list[float], unseen: list[float]) -> dict[str, float] | None:
    good = [True] * len(seen) + [False] * len(unseen)
    return asdict(Area.of(seen + unseen, good)) if seen and unseen else None


def _categories(answered: Sequence[Answered]) -> list[dict[str, Any]] | None:
    """Right or wrong, and where the answer can be from: how many, how sure, and a few of each."""
    traced = [each for each in answered if each.trace is not None]
    if not traced:
        return None
    found = []
    for right in (True, False):
        for kind in (RETRIEVED, MADE_UP, NEVER_NAMED):
            part = [each for each in traced if each.right == right and each.trace and each.trace.kind == kind]
            mean = sum(each.said.confidence for each in part) / len(part) if part else None
            found.append(
                {
                    "right": right,
                    "kind": kind,
                    "count": len(part),
                    "mean_confidence": mean,
                    "expected_in_lines": sum(map(_told, part)),
                    "examples": [_example(each) for each in part[:EXAMPLES]],
                }
            )
    return found


def _told(each: Answered) -> bool:
    """The expected answer stands in a line that names the person: it could have been known."""
    assert each.trace is not None
    return each.expected is not None and any(stands_in(each.expected, line.text) for line in each.trace.lines)


def _example(each: Answered) -> dict[str, Any]:
    assert each.trace is not None
    return {
        "question": each.question,
        "expected": each.expected,
        "answer": each.said.text,
        "confidence": each.said.confidence,
        "named_in": [line.number for line in each.trace.lines],
        "answer_in": each.trace.holding,
    }
