"""The report of a run, a comparison or a sweep, written anew from what is in its folder."""

from __future__ import annotations

from pathlib import Path

from attnlab.base.errors import UserError
from attnlab.experiments.experiment import COMPARISON, SWEEP, write_results
from attnlab.jobs.registry import KINDS
from attnlab.report.page import write_run_page
from attnlab.runs import RunFolder, read_record

REPORT = "report.html"


def rewrite_report(path: Path) -> Path:
    """Write report.html and its figures, and an experiment's results.json; raises for a run that is in use."""
    run = RunFolder.hold(path)
    try:
        _rewrite(path)
    except OSError as error:
        raise UserError(f"{path}: the report cannot be written: {error.strerror}.") from None
    finally:
        run.close()
    return path / REPORT


def _rewrite(path: Path) -> None:
    record = read_record(path)
    kind = record["kind"]
    if kind == COMPARISON.name:
        _rewrite_comparison(path)
    elif kind == SWEEP.name:
        _rewrite_sweep(path)
    else:
        write_run_page(path, KINDS[kind].job().passages(path, record) if kind in KINDS else ())


def _rewrite_comparison(path: Path) -> None:
    from attnlab.experiments.compare import gather, view_of
    from attnlab.experiments.compare_page import plain_results, write_comparison_page

    config = COMPARISON.saved(path)
    results, view = gather(path, config), view_of(config.compare.job)
    write_results(path, plain_results(results, view), config, results.record)
    write_comparison_page(path, results, view)


def _rewrite_sweep(path: Path) -> None:
    from attnlab.experiments.store import importances
    from attnlab.experiments.sweep import sweep_results
    from attnlab.experiments.sweep_page import plain_results, write_sweep_page

    results, tested = sweep_results(path)
    importance = importances(results)
    write_results(path, plain_results(results, tested, importance), results.config, results.record)
    write_sweep_page(path, results, tested, importance)
