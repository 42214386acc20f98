"""The report of a comparison: one self-contained page, and its numbers for results.json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attnlab.config.recipe import find_setting
from attnlab.config.sections import machine_of
from attnlab.experiments.cells import value_label
from attnlab.experiments.results import ComparisonResults, ExperimentRow, most_common_level
from attnlab.experiments.views.view import View, verdicts
from attnlab.report import comparison_figures
from attnlab.report.page import Figure, Passage, Table, draw, reproduction_passage, write_page
from attnlab.stats.intervals import Measure, plain


def write_comparison_page(root: Path, results: ComparisonResults, view: View) -> Path:
    """Write report.html and figures/*.png into a comparison's folder."""
    (root / "figures").mkdir(exist_ok=True)
    config = results.config
    failed = [[row.label, str(seed), reason] for row in results.rows for seed, reason in row.failures.items()]
    passages = [
        Passage("What came out", verdicts(results), [view.table(results)], _figures(root, results, view)),
        *view.passages(root, results),
        Passage("What it cost", tables=[view.cost(results)]),
        Passage("What failed", tables=[Table(["variant", "seed", "reason"], failed)]) if failed else None,
        Passage("Read with care", view.cautions(results)),
        reproduction_passage(results.record, view.settings_shown(config), results.data, machine_of(config).threads),
    ]
    path = root / "report.html"
    title = f"Comparison: {', '.join(row.label for row in results.rows)}"
    shown = [passage for passage in passages if passage is not None]
    write_page(path, title, view.lead(results), shown, warning=" ".join(view.first(results)))
    return path


def _figures(root: Path, results: ComparisonResults, view: View) -> list[Figure]:
    rows = [row for row in results.ordered if row.runs]
    if not rows:
        return []
    one_seed = "" if results.ranked else " One seed: no interval, no ranking."
    measures = [measure for measure in view.measures if rows[0].by_seed(measure.name)]
    drawn = view.figures(root, results)
    marks = "one tick per run, the mean and its 95% interval over seeds"
    if (axis := numeric_axis(results)) is not None:
        return [draw(root, "curve", _curve(results, measures, axis), f"By {axis}: {marks}.{one_seed}"), *drawn]
    if drawn:
        return drawn
    if len(measures) > 1:
        return [draw(root, "bars", comparison_figures.bars(rows, measures), f"At the end: {marks}.{one_seed}")]
    caption = f"{results.measure.title.capitalize()} at the end: {marks}.{one_seed}"
    return [draw(root, "endings", comparison_figures.endings(rows, results.measure), caption)]


def numeric_axis(results: ComparisonResults) -> str | None:
    """The first varied setting that is a number: it makes a curve."""
    axes = results.config.compare.vary.items()
    return next((name for name, values in axes if len(values) > 1 and all(map(_is_number, values))), None)


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return not isinstance(value, bool)


def _curve(results: ComparisonResults, measures: list[Measure], axis: str) -> Any:
    """One line per choice on the other axes."""
    name = ".".join(find_setting(results.kind.config, axis))
    lines: dict[str, dict[float, ExperimentRow]] = {}
    for row in results.rows:
        if row.runs:
            value = row.settings[name]
            others = [choice for choice in row.choices if choice != value_label(axis, value)]
            lines.setdefault(", ".join(others), {})[float(value)] = row
    baselines = {m.name: most_common_level(results.finished, m.baseline) for m in measures if m.baseline}
    values = [float(value) for value in results.config.compare.vary[axis]]
    return comparison_figures.along(lines, measures, axis, values, baselines)


def plain_results(results: ComparisonResults, view: View) -> dict[str, Any]:
    """Every number of the report, and each seed's own."""
    reference = results.reference
    return {
        "reference": reference.label if reference else None,
        "seeds": results.config.compare.seeds,
        "ranked": results.ranked,
        "ranked_by": results.measure.name,
        "variants": [_plain_row(row, results, view) for row in results.ordered],
        **view.plain_extra(results),
        "data": results.data,
    }


def _plain_row(row: ExperimentRow, results: ComparisonResults, view: View) -> dict[str, Any]:
    difference = results.difference(row) if row.comparable else None
    return {
        "label": row.label,
        "settings": dict(row.settings),
        "parameters": row.parameters,
        "steps": row.steps,
        "failures": row.failures,
        "difference": plain(difference) if difference else None,
        **view.plain(row, results),
    }
