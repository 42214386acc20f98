"""Counting right answers, and one sentence instead of a traceback for what a user can get wrong."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path

from attnlab.base import exit_codes as ending
from attnlab.base.errors import UserError
from attnlab.data.questions import read_questions


def evaluate_places(filepath: str | Path, predicted_places: Sequence[str]) -> tuple[float, float]:
    """How many places there are and how many were predicted to the letter; (0, 0) for a file without answers."""
    questions, answers, _ = read_questions(Path(filepath))
    if len(predicted_places) != len(questions):
        raise UserError(
            f"{filepath} has {len(questions)} questions, and there are {len(predicted_places)} predictions."
        )
    if answers is None:
        return 0.0, 0.0
    right = sum(said == place for said, place in zip(predicted_places, answers, strict=True))
    return float(len(answers)), float(right)


def verdict(total: float, correct: float) -> str:
    """The line the course's evaluation prints."""
    return f"Correct: {correct} out of {total}: {round(100 * correct / total, 2)}%"


def one_sentence(main: Callable[[list[str]], None]) -> Callable[[list[str]], None]:
    """A script's main function whose errors end in one sentence and an exit code."""

    @functools.wraps(main)
    def wrapped(words: list[str]) -> None:
        with ending.one_sentence():
            main(words)

    return wrapped
