"""The table of variants on docs/attention.md, from the registry. `python docs/attention_table.py` renews it."""

from __future__ import annotations

import re
from pathlib import Path

from attnlab.attention import VARIANTS, Variant

PAGE = Path(__file__).with_name("attention.md")
BLOCK = re.compile(r"(<!-- variants -->\n).*?(<!-- /variants -->)", re.DOTALL)


def table() -> str:
    head = "| name | equation | paper | time | memory | positions inside |\n| --- | --- | --- | --- | --- | --- |\n"
    ordered = sorted(VARIANTS.values(), key=lambda v: (v.name != "vanilla", v.name))
    return head + "".join(_row(v) for v in ordered)


def _row(v: Variant) -> str:
    equation = v.equation.replace("|", "\\|")  # a bar would end the cell
    parts = (f"`{v.name}`", equation, v.paper, _power(v.time), _power(v.memory), ", ".join(sorted(v.positions)))
    return "| " + " | ".join(parts) + " |\n"


def _power(exponent: float | None) -> str:
    return {None: "", 1: "O(T)", 2: "O(T²)"}[exponent]


def renewed(page: str) -> str:
    """The page with the table as it should be."""
    return BLOCK.sub(lambda match: match[1] + table() + match[2], page)


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
