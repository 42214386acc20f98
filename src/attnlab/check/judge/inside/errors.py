"""Errors of a person's code, in one line."""

from __future__ import annotations

import traceback

MAX_LENGTH = 300


def error_summary(error: BaseException) -> str:
    """`RuntimeError: The size of tensor a ...`, on one line."""
    try:
        message = str(error).strip().split("\n")[0]
    except Exception:  # an exception of the person's own making
        message = ""
    name = type(error).__name__
    return (f"{name}: {message}" if message else name)[:MAX_LENGTH]


def line_in(filename: str, error: BaseException) -> int | None:
    """The innermost line of the person's file in the error's traceback."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == filename]
    return frames[-1].lineno if frames else None
