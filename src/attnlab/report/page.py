"""One self-contained HTML page: text, tables and figures inside, nothing loaded from elsewhere."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, PackageLoader, select_autoescape

from attnlab.base.console import clock
from attnlab.base.files import write_text
from attnlab.base.machine.facts import GIB
from attnlab.report import figures
from attnlab.runs import is_run, read_config, read_metrics, read_record, read_status, series
from attnlab.stats.intervals import Proportion
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

    (root / "figures").mkdir(exist_ok=True)
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


def write_run_page(run: Path, passages: Sequence[Passage] = (), status: Mapping[str, Any] | None = None) -> Path:
    """Write report.html into a run folder from the files in it, also for an unfinished run.

    `passages` are shown after the results: what is specific to the kind of run. `status` is that of the run by
    default; a run that writes its own page is finished afterwards.
    """
    record, status = read_record(run), status or read_status(run)
    lead = f"A {record['kind']} run, {status['state']}"
    lead += f": {status['reason']}." if status.get("reason") else "."
    page = [
        Passage(
            "Results", paragraphs=_remarks(record), tables=[results_table(record)] if record.get("results") else []
        ),
        *passages,
        Passage("Curves", figures=_curves(run)),
        Passage("Cost", tables=[_cost(record)]),
        Passage("Configuration", printed=yaml.safe_dump(read_config(run), sort_keys=False).rstrip()),
        Passage(
            "How to reproduce it", printed=record["command"], tables=[environment_table(record, record.get("data", {}))]
        ),
    ]
    path = run / "report.html"
    write_page(path, title_of(run), lead, page, warning=record.get("collapsed", ""))
    return path


def title_of(run: Path) -> str:
    """The name of a run; of one inside an experiment its variant or cell, and its seed."""
    variant, group = run.absolute().parent, run.absolute().parent.parent
    if group.name in ("cells", "trials") and is_run(group.parent):
        return f"{variant.name}, {run.name.replace('-', ' ')}"
    return run.name


def _remarks(record: dict[str, Any]) -> list[str]:
    remarks = [f"One run with seed {record['seed']}: intervals are over examples, not over seeds."]
    return remarks + [f"Changed by the lab: {change}" for change in record.get("changes", [])]


def results_table(record: Mapping[str, Any]) -> Table:
    """The results of a run, accuracies with their intervals."""
    results = record["results"]
    sizes = _sizes(record.get("data", {}))
    rows = []
    for name, value in results.items():
        split = name.split("_")[0]
        shown = f"{value:.4g}" if isinstance(value, float) else str(value)
        if name.endswith(("accuracy", "baseline")) and split in sizes and isinstance(value, int | float):
            shown = f"{Proportion(round(value * sizes[split]), sizes[split])}, n = {sizes[split]}"
        rows.append([name.replace("_", " "), shown])
    return Table(["measure", "value (95% interval)"], rows)


def _sizes(data: Mapping[str, Any]) -> dict[str, int]:
    """The number of questions or examples of each split, as far as the record has it."""
    sizes = data.get("questions") or data.get("examples")
    return {name: n for name, n in sizes.items() if isinstance(n, int) and n > 0} if isinstance(sizes, dict) else {}


def _curves(run: Path) -> list[Figure]:
    """One figure per metric, train and dev together; an unfinished run has the steps so far."""
    folder = run / "figures"
    folder.mkdir(exist_ok=True)
    names: dict[str, list[str]] = {}
    for line in read_metrics(run / "metrics.jsonl"):
        for name in ("loss", "accuracy", "lr"):
            if name in line and str(line.get("split")) not in names.setdefault(name, []):
                names[name].append(str(line.get("split")))
    curves = []
    for name, splits in names.items():
        lines = {split: series(run / "metrics.jsonl", split, name) for split in splits}
        drawing = figures.curves(lines, name, "step", name, percent=name == "accuracy")
        curves.append(Figure(figures.save(drawing, folder / f"{name}.png"), f"{name} by step"))
    return curves


def _cost(record: dict[str, Any]) -> Table:
    training = record.get("training", {})
    rows = [
        ["parameters", f"{record.get('parameters', 0):,}"],
        ["trained parameters", f"{record.get('learning_parameters', 0):,}"],
        ["steps", f"{training.get('step', 0):,} of {record.get('steps', 0):,}"],
        ["tokens", f"{training.get('tokens', 0):,}"],
        ["padding", f"{record.get('padding', 0):.1%}"],
        ["time in training steps", clock(training.get("seconds", 0.0))],
        ["peak memory", f"{peak / GIB:.2f} GiB" if (peak := record.get("peak_memory")) else "not measured"],
    ]
    return Table(["", ""], rows)
