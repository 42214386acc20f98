"""The page of a comparison: one self-contained report.html, and the same table for the terminal."""

from __future__ import annotations

from pathlib import Path

from attnlab.experiments.compare import figures, words
from attnlab.experiments.compare.results import Results
from attnlab.experiments.compare.subjects import subject_of
from attnlab.report.page import Figure, Passage, Table, draw, reproduction_passage, write_page


def write_comparison_page(root: Path, results: Results) -> Path:
    """Write report.html and figures/*.png into a comparison's folder."""
    (root / "figures").mkdir(exist_ok=True)
    subject = subject_of(results.config)
    passages = [
        Passage("What came out", words.verdicts(results), [subject.table(results)], _ending_figures(root, results)),
        *subject.passages(root, results),
        Passage("What it cost", tables=[subject.cost(results)]),
        _failures(results),
        Passage("Read with care", subject.cautions(results)),
        reproduction_passage(
            results.record, results.config.model_dump(mode="json"), results.data, results.config.machine.threads
        ),
    ]
    path = root / "report.html"
    title = f"Comparison: {', '.join(row.label for row in results.rows)}"
    write_page(path, title, subject.lead(results), [passage for passage in passages if passage is not None])
    return path


def _ending_figures(root: Path, results: Results) -> list[Figure]:
    rows = [row for row in results.ordered if row.runs]
    if not rows:
        return []
    how = "" if results.ranked else " One seed: no interval, no ranking."
    measure, shown = results.measure, [m for m in subject_of(results.config).measures if rows[0].by_seed(m.name)]
    own = subject_of(results.config).endings(root, results)
    what = "a tick for each run, the mean and its 95% interval over seeds"
    if (axis := figures.numeric_axis(results.config)) is not None:
        caption = f"By {axis}: {what}.{how}"
        return [draw(root, "curve", figures.along(results, shown, axis), caption), *own]
    if own:
        return own
    if len(shown) > 1:
        return [draw(root, "bars", figures.bars(rows, shown), f"At the end: {what}.{how}")]
    caption = f"{measure.title.capitalize()} at the end: {what}.{how}"
    return [draw(root, "endings", figures.endings(rows, measure), caption)]


def _failures(results: Results) -> Passage | None:
    rows = [[row.label, str(seed), reason] for row in results.rows for seed, reason in row.failures.items()]
    return Passage("What failed", tables=[Table(["variant", "seed", "reason"], rows)]) if rows else None
