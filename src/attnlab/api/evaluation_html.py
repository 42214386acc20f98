"""An evaluation in a notebook: what the command prints as a table, with the figure or the counts behind it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attnlab.api.table import shown
from attnlab.base import html


def evaluation_html(kind: str, results: Mapping[str, Any]) -> str:
    """Answers have sentences and the accuracy of the most confident ones, labelled texts their confusion counts."""
    title = [kind, str(results.get("source", ""))]
    facts = [[name.replace("_", " "), value] for name, value in short_facts(results).items()]
    notes = "".join(map(html.paragraph, results.get("notes", [])))
    if "coverage" in results:
        return html.table(title, _of_answers(results)) + _coverage(results) + notes
    return html.table(title, facts) + _confusion(results) + notes


def short_facts(results: Mapping[str, Any]) -> dict[str, str]:
    """The numbers and intervals, without the lists behind them."""
    return {name: _in_short(value) for name, value in results.items() if _is_short(value)}


def _is_short(value: object) -> bool:
    ends = isinstance(value, list | tuple) and len(value) == 2 and all(isinstance(end, int | float) for end in value)
    return isinstance(value, int | float) or ends


def _in_short(value: Any) -> str:
    return " to ".join(map(shown, value)) if isinstance(value, list | tuple) else shown(value)


def _of_answers(results: Mapping[str, Any]) -> list[list[str]]:
    from attnlab.evaluation.page import accuracy_lines, confidence_lines, dev_threshold_lines, name_lines

    lines = [*accuracy_lines(results), *confidence_lines(results), *name_lines(results), *dev_threshold_lines(results)]
    return [[name, value.strip()] for name, _, value in (line.partition(":") for line in lines)]


def _coverage(results: Mapping[str, Any]) -> str:
    from attnlab.evaluation.figures import coverage

    baseline = results["baseline"]
    figure = coverage(results["coverage"], baseline["share"] if baseline else None)
    return html.picture(figure, "accuracy when only confident answers are given")


def _confusion(results: Mapping[str, Any]) -> str:
    if "confusion" not in results:
        return ""
    rows = [[name, *counts] for name, counts in zip(results["classes"], results["confusion"], strict=True)]
    return html.table(["label, predicted as:", *results["classes"]], rows)
