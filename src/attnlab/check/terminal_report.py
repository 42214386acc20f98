"""The report in the terminal: a table of all checks, then each failure with what to do about it."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from attnlab.check.judge.protection import MEANING
from attnlab.check.results import CheckReport, CheckResult, Status

COLOURS = {Status.PASS: "green", Status.FAIL: "bold red", Status.MISSING: "yellow"}


def render(report: CheckReport) -> Iterator[RenderableType]:
    yield _overview(report)
    for result in report.results:
        if result.status is Status.FAIL:
            yield Text(f"\n{result.where}: {result.name}: {result.problem}", style="bold")
            yield Padding(_details(result), (0, 0, 0, 2))
    remarks = [(remark.where, remark.text) for remark in report.remarks]
    remarks += [(result.where, f"{result.name}: {text}") for result in report.results for text in result.remarks]
    if remarks:
        yield Text("\nRemarks (not failures)", style="bold")
        yield from (Text(f"  {line}.") for line in _grouped(remarks))
    yield Text(f"\n{_conclusion(report)}", style="green" if report.passed else "bold red")
    yield Text(f"It was run {MEANING[report.protection]}. Seed {report.seed}.", style="dim")


def _grouped(remarks: list[tuple[str, str]]) -> list[str]:
    """One line per remark; of statements skipped for the same kind of error only the first."""
    groups: dict[str, list[str]] = {}
    for where, text in dict.fromkeys(remarks):
        kind = text.split(":")[0] if text.startswith("this statement was skipped") else f"{where}: {text}"
        groups.setdefault(kind, []).append(f"{where}: {text}")
    return [first + (f" and {len(more)} more" if more else "") for first, *more in groups.values()]


def _overview(report: CheckReport) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in ("stage", "function", "result", ""):
        table.add_column(column)
    for result in report.results:
        status = Text(result.status, style=COLOURS[result.status])
        table.add_row(result.stage, result.name, status, Text(_summary(result)))
    return table


def _summary(result: CheckResult) -> str:
    if result.status is Status.MISSING:
        return "optional" if result.optional else result.advice
    return result.mistake or result.problem.split(":")[0]


def _details(result: CheckResult) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    at = result.first_difference
    if result.expected:
        table.add_row("expected", Text(result.expected + (f", {_entry(at, 'expected')}" if at else "")))
    if result.came:
        largest = f"; largest difference {_shown(result.largest_difference)}" if at else ""
        table.add_row("got", Text(result.came + (f", {_entry(at, 'came')}" if at else "") + largest))
    if result.advice:
        table.add_row("likely" if result.mistake else "advice", Text(result.advice))
    return table


def _entry(difference: dict[str, object], side: str) -> str:
    return f"entry {difference['index']} = {_shown(difference[side])}"


def _shown(number: object) -> str:
    """Five digits: readable, and the same on every machine."""
    return f"{number:.5g}" if isinstance(number, float) else str(number)


def _conclusion(report: CheckReport) -> str:
    counted = [result for result in report.results if not (result.status is Status.MISSING and result.optional)]
    passed = sum(result.status is Status.PASS for result in counted)
    return f"{report.file}: {passed} of {len(counted)} checks pass up to stage {report.stage}."
