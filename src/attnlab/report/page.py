"""One self-contained HTML page: text, tables and figures inside, nothing loaded from anywhere."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, select_autoescape

from attnlab.base.files import write_text
from attnlab.version import __version__


@dataclass(frozen=True)
class Table:
    """Rows under a header; every cell is text."""

    header: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class Figure:
    svg: str
    caption: str

    @property
    def source(self) -> str:
        """As a data address: ids inside the drawing cannot clash with another's."""
        return "data:image/svg+xml;base64," + base64.b64encode(self.svg.encode()).decode()


def draw(root: Path, name: str, drawn: Any, caption: str) -> Figure:
    """A drawing as a PNG in the figures of a folder, and for the page."""
    from attnlab.report.figures import save  # loads matplotlib

    return Figure(save(drawn, root / "figures" / f"{name}.png"), caption)


@dataclass(frozen=True)
class Passage:
    """A heading with paragraphs, tables, figures, and text as it was printed."""

    heading: str
    paragraphs: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    printed: str = ""


def write_page(path: Path, title: str, lead: str, passages: list[Passage], warning: str = "") -> None:
    """`warning`: what a reader must know before anything else."""
    environment = Environment(
        loader=PackageLoader("attnlab.report"), autoescape=select_autoescape(), trim_blocks=True, lstrip_blocks=True
    )
    page = environment.get_template("page.html")
    write_text(path, page.render(title=title, lead=lead, warning=warning, passages=passages, version=__version__))
