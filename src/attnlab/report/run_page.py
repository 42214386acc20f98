"""The page of one run: how it stands, its curves, its results, and how to do it again."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import yaml

from attnlab.base.formats import clock
from attnlab.base.machine.facts import GIB
from attnlab.report import figures
from attnlab.report.page import Figure, Passage, Table, write_page
from attnlab.report.provenance import surroundings
from attnlab.runs import read_config, read_metrics, read_record, read_status, series
from attnlab.stats.intervals import Proportion

OWN = {"classify": "attnlab.jobs.classify.page"}
"""Modules with `passages(run, record)`: what the page of a kind of run shows besides."""


def write_run_page(run: Path) -> Path:
    """Write report.html into a run folder, from what lies in it; works for a run that is not finished too."""
    record, status = read_record(run), read_status(run)
    lead = f"A {record['kind']} run, {status['state']}"
    lead += f": {status['reason']}." if status.get("reason") else "."
    passages = [
        Passage("Results", paragraphs=_remarks(record), tables=[_results(record)] if record.get("results") else []),
        *(importlib.import_module(OWN[record["kind"]]).passages(run, record) if record["kind"] in OWN else []),
        Passage("Curves", figures=_curves(run)),
        Passage("Cost", tables=[_cost(record)]),
        Passage("Configuration", printed=yaml.safe_dump(read_config(run), sort_keys=False).rstrip()),
        Passage("How to do it again", printed=record["command"], tables=[surroundings(record, record.get("data", {}))]),
    ]
    path = run / "report.html"
    write_page(path, run.name, lead, passages, warning=record.get("collapsed", ""))
    return path


def _remarks(record: dict[str, Any]) -> list[str]:
    remarks = [f"One run with seed {record['seed']}: intervals are over the examples, not over seeds."]
    return remarks + [f"Changed by the lab: {change}" for change in record.get("changes", [])]


def _results(record: dict[str, Any]) -> Table:
    results = record["results"]
    sizes = record.get("data", {}).get("questions") or record.get("data", {}).get("examples") or {}
    rows = []
    for name, value in results.items():
        split = name.split("_")[0]
        shown = f"{value:.4g}" if isinstance(value, float) else str(value)
        if name.endswith(("accuracy", "baseline")) and split in sizes:
            shown = f"{Proportion(round(value * sizes[split]), sizes[split])}, n = {sizes[split]}"
        rows.append([name.replace("_", " "), shown])
    return Table(["measure", "value (95% interval)"], rows)


def _curves(run: Path) -> list[Figure]:
    """Every metric that was measured, train and dev in one picture; an unfinished run has a start of them."""
    folder = run / "figures"
    folder.mkdir(exist_ok=True)
    names: dict[str, list[str]] = {}
    for line in read_metrics(run / "metrics.jsonl"):
        for name in ("loss", "accuracy", "lr"):
            if name in line and line["split"] not in names.setdefault(name, []):
                names[name].append(line["split"])
    made = []
    for name, splits in names.items():
        lines = {split: series(run / "metrics.jsonl", split, name) for split in splits}
        drawn = figures.curves(lines, name, "step", name, percent=name == "accuracy")
        made.append(Figure(figures.save(drawn, folder / f"{name}.png"), f"{name} by step"))
    return made


def _cost(record: dict[str, Any]) -> Table:
    training = record.get("training", {})
    rows = [
        ["parameters", f"{record.get('parameters', 0):,}"],
        ["of these learning", f"{record.get('learning_parameters', 0):,}"],
        ["steps", f"{training.get('step', 0):,} of {record.get('steps', 0):,}"],
        ["tokens", f"{training.get('tokens', 0):,}"],
        ["padding", f"{record.get('padding', 0):.1%}"],
        ["time in training steps", clock(training.get("seconds", 0.0))],
        ["peak memory", f"{peak / GIB:.2f} GiB" if (peak := record.get("peak_memory")) else "not measured"],
    ]
    return Table(["", ""], rows)
