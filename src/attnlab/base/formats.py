"""Numbers and times for people to read. Free of torch, so that listing runs is fast."""

from __future__ import annotations

from datetime import datetime


def clock(seconds: float) -> str:
    """A duration as 1:02:03, or 2:03."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def started_at(iso: str) -> str:
    """The start time of a run, for a table."""
    return datetime.fromisoformat(iso).strftime("%Y-%m-%d %H:%M")
