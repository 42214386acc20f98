"""The sentences and tables of a sweep's report: what was chosen, on what, and what that does not say."""

from __future__ import annotations

from attnlab.base.formats import clock
from attnlab.jobs.measures import Measure
from attnlab.experiments.sweep.results import Results, Row, Tested
from attnlab.experiments.sweep.space import short_names, show
from attnlab.report.numbers import plus_minus
from attnlab.report.page import Table


def table(results: Results, most: int | None = None) -> Table:
    """One row a cell, the best first; the rest is counted where there are very many."""
    names = short_names(results.axes)
    header = ["rank", *names.values(), results.measure.title, "time", "state"]
    chosen = {row.folder for row in results.finished}
    rows = [
        [
            str(place) if row.folder in chosen else "",
            *[show(row.settings.get(name)) for name in names],
            plus_minus(row.mean, results.measure.form) if row.scores else "",
            _spent(row.seconds),
            _state(row),
        ]
        for place, row in enumerate(results.ordered, start=1)
    ]
    if most is not None and len(rows) > most:
        rows = [*rows[:most], ["", *[""] * len(names), f"and {len(rows) - most} more", "", ""]]
    return Table(header, rows)


def _state(row: Row) -> str:
    return f"{row.state}: {next(iter(row.reasons.values()))}" if row.state == "failed" and row.reasons else row.state


def verdicts(results: Results, tested: Tested | None) -> list[str]:
    """What may be concluded, in sentences."""
    best, measure = results.best, results.measure
    if best is None:
        return ["No cell is finished: there is nothing to choose from."]
    runs = f"the mean of {best.mean.count} seeds" if best.mean.count > 1 else "one seed"
    said = [f"Best on dev: {best.label}, {measure.title} {plus_minus(best.mean, measure.form)} ({runs})."]
    if results.alike:
        few = ", ".join(f"({row.label})" for row in results.alike[:3])
        rest = f" and {len(results.alike) - 3} more" if len(results.alike) > 3 else ""
        by = "by these seeds" if best.mean.count > 1 else "by its interval over the dev examples"
        said.append(f"Not to be told apart from it {by}: {few}{rest}.")
    return [*said, *edges(results), on_test(results, tested)]


def edges(results: Results) -> list[str]:
    return [
        f"{name}={show(value)}, the best, is the {edge} that was tried: the optimum may lie beyond it; try more there."
        for name, value, edge in results.edges
    ]


def on_test(results: Results, tested: Tested | None) -> str:
    """The winner on test, and nobody else."""
    if not results.on_test:
        return "This job has no test measure: the winner's score on dev, which chose it, flatters it."
    if tested is None or not tested.scores:
        return f"The winner has no score on test{f' ({tested.reason})' if tested and tested.reason else ''}."
    measured = "; ".join(_measured(results, tested, measure) for measure in results.on_test)
    return f"The winner on test, looked at for it alone: {measured}."


def _measured(results: Results, tested: Tested, measure: Measure) -> str:
    mean = tested.mean(measure)
    if not mean.count:
        return f"{measure.title} not measured"
    share = results.over_examples(mean.mean, measure)
    seeds = f", mean of {mean.count} seeds ± {mean.half_width:{measure.form}}" if mean.half_width is not None else ""
    if share is None:
        return f"{measure.title} {mean.mean:{measure.form}}{seeds}"
    low, high = share.interval
    return f"{measure.title} {mean.mean:.1%} ({low:.1%} to {high:.1%} over {share.count} examples{seeds})"


def lead(results: Results) -> str:
    sweep = results.config.sweep
    how = {
        "grid": "every value with every other",
        "random": "settings drawn at random",
        "guided": "settings drawn by TPE from what was found so far",
    }[sweep.search]
    seeds = f"{sweep.seeds} seeds each" if sweep.seeds > 1 else "one seed each"
    return f"A {sweep.search} search over the job '{sweep.job}': {how}; {len(results.rows)} cells, {seeds}. " + counts(
        results
    )


def counts(results: Results) -> str:
    """How the cells stand, and what they have cost."""
    states = [
        f"{count} {state}"
        for state in ("finished", "pruned", "failed", "running", "waiting")
        if (count := results.count(state))
    ]
    seconds = sum(row.seconds for row in results.rows)
    return f"{', '.join(states)}; {_spent(seconds)} in training steps."


def _spent(seconds: float) -> str:
    return clock(seconds) if seconds >= 60 else f"{seconds:.1f} s"


def cautions(results: Results) -> list[str]:
    sweep, said = results.config.sweep, []
    said.append(
        f"Chosen by {results.measure.title}. The best of many is flattered by the choice: expect less elsewhere."
    )
    if sweep.seeds == 1:
        said.append("One seed a cell: small differences may be the seed's. Go on with --resume --seeds 3 to see.")
    else:
        said.append("Intervals (±) are 95% after Student over the seeds, on this data.")
    if sweep.prune != "none":
        said.append("Pruned cells were worse when they were ended; whether they would have caught up is not known.")
    looks = results.record.get("tested", [])
    if len(looks) > 1:
        said.append(f"The test split was looked at {len(looks)} times, for a winner each: the sweep was gone on with.")
    return said
