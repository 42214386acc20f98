"""One self-contained HTML page: text, tables and figures inside, nothing loaded from elsewhere."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
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
        """A data URL: ids inside one drawing cannot clash with those of another."""
        return "data:image/svg+xml;base64," + base64.b64encode(self.svg.encode()).decode()


def draw(root: Path, name: str, drawing: Any, caption: str) -> Figure:
    """Write a drawing to figures/NAME.png below `root`; returns it for the page."""
    from attnlab.report.figures import save  # loads matplotlib

    return Figure(save(drawing, root / "figures" / f"{name}.png"), caption)


@dataclass(frozen=True)
class Passage:
    """A heading with paragraphs, tables, figures and preformatted text."""

    heading: str
    paragraphs: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    printed: str = ""


def write_page(path: Path, title: str, lead: str, passages: list[Passage], warning: str = "") -> None:
    """`warning` is shown first, above everything else."""
    environment = Environment(
        loader=PackageLoader("attnlab.report"), autoescape=select_autoescape(), trim_blocks=True, lstrip_blocks=True
    )
    page = environment.get_template("page.html")
    write_text(path, page.render(title=title, lead=lead, warning=warning, passages=passages, version=__version__))


def environment_table(record: Mapping[str, Any], data: Mapping[str, Any], threads: Any = None) -> Table:
    """Machine, versions, commit and data of a run, from its record."""
    machine, git = record["machine"], record.get("git")
    used = f" ({threads} used)" if threads else ""
    rows = [
        ["started", record["started"]],
        [
            "machine",
            f"{machine['cpu']}, {machine['cores']} cores{used}, {machine['memory_gib']} GiB, "
            f"{', '.join(machine['devices']) or 'no accelerator'}",
        ],
        ["versions", ", ".join(f"{name} {version}" for name, version in record["versions"].items())],
        ["git commit", f"{git['commit']}{' with changes' if git['changed'] else ''}" if git else "none"],
        ["data", yaml.safe_dump(dict(data), default_flow_style=True, width=10_000).strip()],
    ]
    return Table(["", ""], rows)


def reproduction_passage(
    record: Mapping[str, Any], config: Mapping[str, Any], data: Mapping[str, Any], threads: Any
) -> Passage:
    """The last passage of a page about many runs: environment, command and settings."""
    settings = yaml.safe_dump(dict(config), sort_keys=False, allow_unicode=True).rstrip()
    printed = f"{record['command']}\n\n{settings}"
    return Passage("How to reproduce it", tables=[environment_table(record, data, threads)], printed=printed)
