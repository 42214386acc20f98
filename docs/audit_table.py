"""The tables of audit.md, from the corpus of the tests: `python docs/audit_table.py` writes them into the page."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.attention.corpus import RIGHT, STAYS_CAUSAL, WRONG, Kind  # noqa: E402

PAGE = ROOT / "docs" / "audit.md"


def right() -> Iterator[str]:
    yield "| mixer | what it is |"
    yield "| --- | --- |"
    for name, kind in RIGHT.items():
        yield f"| {name} | {_about(kind)} |"


def wrong() -> Iterator[str]:
    yield "| mixer | what is wrong | fails |"
    yield "| --- | --- | --- |"
    for name, (kind, checks) in WRONG.items():
        yield f"| {name} | {_about(kind)} | {'; '.join(sorted(checks))} |"
    for name, kind in STAYS_CAUSAL.items():
        yield f"| {name} | {_about(kind)} | tokens meet, with `--bidirectional` |"


def _about(kind: Kind) -> str:
    assert kind.__doc__, kind
    return " ".join(kind.__doc__.split())


def filled(page: str) -> str:
    for name, table in (("right", right), ("wrong", wrong)):
        pattern = rf"(<!-- table: {name} -->\n).*?(\n<!-- end -->)"
        page = re.sub(pattern, lambda match, rows=table: match[1] + "\n".join(rows()) + match[2], page, flags=re.DOTALL)
    counts = {"right": len(RIGHT), "wrong": len(WRONG) + len(STAYS_CAUSAL)}
    return re.sub(r"(\d*)(<!-- count: (\w+) -->)", lambda match: f"{counts[match[3]]}{match[2]}", page)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
