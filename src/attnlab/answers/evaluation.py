"""All questions asked, and everything a report says about the answers, as plain numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from attnlab.answers.asking import Said, most_common
from attnlab.answers.background import Background
from attnlab.answers.calibration import Abstention, Area, bins, calibration_error, coverage, threshold_for
from attnlab.answers.strangers import recombine
from attnlab.answers.trace import MADE_UP, NEVER_NAMED, RETRIEVED, Trace, stands_in
from attnlab.stats import Proportion

Ask = Callable[[Sequence[str]], list[Said]]

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
    invented: bool


def put(ask: Ask, questions: Sequence[str], expected: Sequence[str] | None, known: Background) -> list[Answered]:
    """Ask all questions and look up where the answers can have come from."""
    answered = []
    for index, (question, said) in enumerate(zip(questions, ask(questions), strict=True)):
        name = known.template.name(question)
        trace = known.reading.trace(name, said.text) if name is not None and known.reading is not None else None
        answered.append(Answered(question, expected[index] if expected else None, said, name, trace))
    return answered


def meet_strangers(ask: Ask, count: int, known: Background, seed: int) -> tuple[list[Stranger], str]:
    """Invented names, and a sentence on how they were made."""
    if known.world is not None:
        names = known.world.strangers(count)
        made = "the names of people the world does not have"
    elif known.reading is None:
        return [], "No names were invented: without the corpus it cannot be told which ones do not occur in it."
    else:
        names = recombine(list(known.names), count, known.knows, seed)
        made = (
            "first and last names of the training questions, put together to full names that occur neither in the "
            "corpus nor in the questions"
        )
    said = ask([known.template.ask(name) for name in names]) if names else []
    return [Stranger(n, s, True) for n, s in zip(names, said, strict=True)], f"{len(names)} names are invented: {made}."


def results(
    answered: Sequence[Answered],
    strangers: Sequence[Stranger],
    dev: Sequence[Answered],
    known: Background,
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
        "unseen": _unseen(answered, unseen, known),
        "categories": _categories(answered),
    }
    if abstain_below is not None:
        found["abstention"] = Abstention.at(abstain_below, confidence, right).to_dict()
    return found


def unnamed(answered: Sequence[Answered], known: Background) -> list[Stranger]:
    """The questions whose person occurred neither in pretraining nor in fine-tuning."""
    if known.reading is None:
        return []
    return [Stranger(each.name, each.said, False) for each in answered
            if each.name is not None and not known.knows(each.name)]  # fmt: skip


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


def _unseen(answered: Sequence[Answered], unseen: Sequence[Stranger], known: Background) -> dict[str, Any] | None:
    if not unseen:
        return None
    seen = [each.said.confidence for each in answered if each.name is not None and known.knows(each.name)]
    confidence = [each.said.confidence for each in unseen]
    counts = Counter(each.said.text for each in unseen)
    taught = Counter(place for _, place in known.trained_on)
    total = max(1, taught.total())
    common = [{"answer": place, "share": count / len(unseen), "share_in_training": taught[place] / total}
              for place, count in counts.most_common(COMMON_ANSWERS)]  # fmt: skip
    return {
        "invented": sum(each.invented for each in unseen),
        "asked": sum(not each.invented for each in unseen),
        "known": len(seen),
        "different_answers": len(counts),
        "answers_from_training": sum(counts[place] for place in taught) / len(unseen),
        "common_answers": common,
        "mean_confidence": sum(confidence) / len(unseen),
        "mean_confidence_known": sum(seen) / len(seen) if seen else None,
        "confidence": confidence,
        "confidence_known": seen,
        "known_against_unseen": asdict(Area.of(seen + confidence, [True] * len(seen) + [False] * len(unseen)))
        if seen else None,
        "examples": [{"name": each.name, "answer": each.said.text, "confidence": each.said.confidence}
                     for each in unseen[:EXAMPLES]],
    }  # fmt: skip


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
            found.append({"right": right, "kind": kind, "count": len(part), "mean_confidence": mean,
                          "expected_in_lines": sum(map(_told, part)),
                          "examples": [_example(each) for each in part[:EXAMPLES]]})  # fmt: skip
    return found


def _told(each: Answered) -> bool:
    """The expected answer stands in a line that names the person: it could have been known."""
    assert each.trace is not None
    return each.expected is not None and any(stands_in(each.expected, line.text) for line in each.trace.lines)


def _example(each: Answered) -> dict[str, Any]:
    assert each.trace is not None
    return {"question": each.question, "expected": each.expected, "answer": each.said.text,
            "confidence": each.said.confidence, "named_in": [line.number for line in each.trace.lines],
            "answer_in": each.trace.holding}  # fmt: skip
