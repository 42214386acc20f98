"""The sentences of a comparison of classifiers: who collapsed, what is best for the money, with which rates."""

from __future__ import annotations

import math

from attnlab.base.formats import clock
from attnlab.base.machine.facts import GIB
from attnlab.experiments.compare.classify.rows import ClassifyRow
from attnlab.experiments.compare.results import Results
from attnlab.report.numbers import plus_minus

MARK = "‡"


def collapses(results: Results) -> list[str]:
    """For each variant with runs that tell nothing apart."""
    return [
        f"{row.label}: {len(row.collapsed)} of {len(row.runs)} seed{'s' if len(row.runs) > 1 else ''} collapsed "
        f"(seed {', '.join(map(str, row.collapsed))}): nearly every input gets one class, and its accuracy is that of "
        "always saying the most common one."
        for row in results.finished
        if row.collapsed
    ]


def best_for_the_money(results: Results) -> ClassifyRow | None:
    """The cheapest within one standard error of the best on dev (the rule of Breiman et al. 1984); none collapsed."""
    rows = [row for row in results.finished if not row.collapsed]
    count = results.data.get("examples", {}).get("dev")
    if len(rows) < 2 or not count:
        return None
    best = max(_dev(row) for row in rows)
    error = math.sqrt(best * (1 - best) / count)
    return min((row for row in rows if _dev(row) >= best - error), key=lambda row: row.mean("seconds").mean)


def _dev(row: ClassifyRow) -> float:
    return row.mean("dev_accuracy").mean


def money(results: Results) -> list[str]:
    chosen = best_for_the_money(results)
    if chosen is None:
        return []
    best = max((row for row in results.finished if not row.collapsed), key=_dev)
    seconds = clock(chosen.mean("seconds").mean)
    test = plus_minus(chosen.mean("test_accuracy"), ".1%") + " on test" if chosen.by_seed("test_accuracy") else ""
    what = ", ".join(filter(None, [test, f"{seconds} a run", memory(chosen)]))
    if chosen is best:
        return [f"Best for the money: {chosen.label} ({what}). It is the best on dev, and nothing near it is cheaper."]
    return [
        f"Best for the money: {chosen.label} ({what}), the cheapest within one standard error of the best on dev, "
        f"{best.label} ({_dev(best):.1%} against {_dev(chosen):.1%}; {clock(best.mean('seconds').mean)} a run)."
    ]


def memory(row: ClassifyRow) -> str:
    """The most that any of its runs held."""
    peaks = row.by_seed("peak_memory").values()
    return f"{max(peaks) / GIB:.2f} GiB" if peaks else ""


def rates(row: ClassifyRow) -> str:
    return ", ".join(f"{rate:g}" for rate in row.rates)


ONE_SEED = "There is one seed: bars have no error bars."
RATES = (
    "A rate that was not given is the usual one of the tuning method and optimizer (the column 'learning rate'), not "
    "one that was searched for: a variant that does badly may want another."
)
COST = (
    "Time is by the clock, in training steps and in the features of a frozen body, evaluations not counted: what else "
    "ran on the machine counts too. Memory is the peak of the whole process on a CPU, libraries included, and of its "
    "tensors on a GPU."
)
PAIRS = (
    "Differences are of test accuracy, the row minus the column, over all seeds; p is McNemar's exact test between the "
    "run of each that is best on dev, corrected after Holm for the number of pairs. * marks p ≤ 0.05 after that. A "
    "bootstrap over two or three seeds is rough: it knows no others."
)
