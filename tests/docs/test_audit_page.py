"""audit.md lists the corpus as it is."""

from __future__ import annotations

from docs.audit_table import PAGE, filled


def test_the_page_has_every_mixer_of_the_corpus() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert filled(page) == page
