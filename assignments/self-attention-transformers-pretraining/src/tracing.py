"""Which answers were retrieved: the lines of the pretraining text that name the person, and whether they have it.

An answer that stands in such a line may have been retrieved; one that does not was made up, right or wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from attnlab.data.question_template import QuestionTemplate
from attnlab.data.text.reading import read_lines
from attnlab.evaluation.answer_trace import CorpusLine, PretrainingText

HEADER = ("question", "answer", "expected", "kind", "lines")
NO_NAME = "no person in the question"


def trace_answers(
    corpus: Path, questions: Sequence[str], places: Sequence[str], expected: Sequence[str] | None
) -> tuple[str, str]:
    """A table, tab-separated, with a line per answer; and a summary: right and wrong answers by origin."""
    text = PretrainingText(CorpusLine(number, line) for number, line in read_lines(corpus))
    template = QuestionTemplate.of(questions)
    rows, counts = ["\t".join(HEADER)], Counter[tuple[str, bool | None]]()
    for number, (question, place) in enumerate(zip(questions, places, strict=True)):
        name, right = template.name_in(question), None if expected is None else expected[number] == place
        kind, lines = NO_NAME, ""
        if name is not None:
            traced = text.trace(name, place)
            kind, lines = traced.kind, ",".join(map(str, traced.with_answer))
        counts[kind, right] += 1
        rows.append("\t".join((question, place, "" if expected is None else expected[number], kind, lines)))
    summary = []
    for kind in dict.fromkeys(kind for kind, _ in counts):
        total = sum(count for (each, _), count in counts.items() if each == kind)
        of_them = f", {counts[kind, True]} of them right" if expected is not None else ""
        summary.append(f"{kind}: {total}{of_them}")
    return "\n".join(rows) + "\n", "; ".join(summary)
