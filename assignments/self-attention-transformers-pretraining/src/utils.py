"""Counting correct answers, and one sentence instead of a traceback for a user's mistake."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path

from attnlab.base import interrupts
from attnlab.base.errors import UserError
from attnlab.data.questions import read_questions
from attnlab.stats.intervals import Proportion


def evaluate_places(filepath: str | Path, predicted_places: Sequence[str]) -> tuple[float, float]:
    """The number of places and of exact predictions; (0, 0) for a file without answers."""
    questions, answers, _ = read_questions(Path(filepath))
    if len(predicted_places) != len(questions):
        raise UserError(
            f"{filepath} has {len(questions)} questions, and there are {len(predicted_places)} predictions."
        )
    if answers is None:
        return 0.0, 0.0
    right = sum(predicted == place for predicted, place in zip(predicted_places, answers, strict=True))
    return float(len(answers)), float(right)


def verdict(total: float, correct: float) -> str:
    """The line the course's evaluation prints, and the interval of the accuracy."""
    low, high = Proportion(int(correct), int(total)).interval
    return (
        f"Correct: {correct} out of {total}: {round(100 * correct / total, 2)}%\n"
        f"95% interval over questions: {low:.1%} to {high:.1%}"
    )


def one_sentence(main: Callable[[list[str]], None]) -> Callable[[list[str]], None]:
    """A script's main function whose errors end in one sentence and an exit code."""

    @functools.wraps(main)
    def wrapped(words: list[str]) -> None:
        with interrupts.one_sentence():
            main(words)

    return wrapped
