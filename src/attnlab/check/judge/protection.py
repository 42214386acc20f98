"""The names of the protections, strongest first, and what each means. No torch here."""

from __future__ import annotations

from typing import Literal, get_args

Protection = Literal["bubblewrap", "user", "limits"]
PROTECTIONS: tuple[Protection, ...] = get_args(Protection)
MEANING: dict[Protection, str] = {
    "bubblewrap": "in a sandbox of bubblewrap, which shows it no file but those of Python and no network",
    "user": "as a user of its own",
    "limits": "with limits and an import guard only, so it could still read and write what you can",
}
