"""The tables of sections 1 and 2 of the write-up, from the results of A2S1 and A2S2."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from math import exp, log
from statistics import fmean

from attnlab.experiments.views.view import signed
from attnlab.jobs.language import shown_perplexity
from attnlab.stats.intervals import Mean, paired_difference
from write_up.pictures import MASK_FIGURES, WINDOW, mask_figure_name
from write_up.store import Results, Store, lead, table


def queries(store: Store) -> Iterator[str]:
    """Section 1: the query or key of every exercise."""
    for results in store.find("A2S1"):
        rows = []
        for answer in results["exercises"]:
            found = answer["found"] if isinstance(answer["found"][0], list) else [answer["found"]]
            vectors = "; ".join(f"({', '.join(f'{number:.3f}' for number in vector)})" for vector in found)
            error = f"{answer['error']:.2g}" if answer["error"] >= 1e-15 else "below 1e-15"
            rows.append((answer["exercise"], f"{answer['what']} = {vectors}", error))
        yield from table(("exercise", "answer", "error"), *rows)


def tests(store: Store) -> Iterator[str]:
    """Section 2.1: the three tests."""
    for results in store.find("A2S2-words"):
        rows = [(name, f"{difference:.1g}") for name, difference in results["tests"].items()]
        yield from table(("test", "largest difference from PyTorch"), *rows)


def mask_figures(store: Store) -> Iterator[str]:
    """Section 2.2: figures 1 to 6."""
    for results in store.find("A2S2-words"):
        rows = []
        for number, (kind, title) in enumerate(MASK_FIGURES.items()):
            figures = {
                f"Figure {2 * number + place}: {title.lower()} with {mask} causal masking": mask_figure_name(
                    kind, mask, results["data"]["tokens"]
                )
                for place, mask in enumerate(results["runs"], start=1)
            }
            rows += [[f"![{caption}](figures/{file})" for caption, file in figures.items()], list(figures)]
        yield from table((f"{mask} mask" for mask in results["runs"]), *rows)
        yield ""
        yield f"One line per seed; smoothed: the mean of {WINDOW} steps of training, of 2 evaluations in validation."


def mean_perplexity(losses: Iterable[float]) -> float:
    """The logarithm of the mean perplexity, as the document averages."""
    return log(fmean(exp(loss) for loss in losses))


MEASURES: dict[str, Callable[[Results], float]] = {
    "training, mean of the run": lambda run: mean_perplexity(run["training"]),
    "validation, mean of the run": lambda run: mean_perplexity(loss for _, loss in run["validation"]),
    "training, last tenth": lambda run: run["last_training"],
    "validation, at the end": lambda run: run["last_validation"],
    "validation, another future": lambda run: run["another_future"],
    "validation, token by token": lambda run: run["as_they_come"],
}


def masks(store: Store, tokens: str) -> Iterator[str]:
    """Section 2.2: the document's Table 1 over seeds, with the end of the run and with the future hidden."""
    for results in store.find(f"A2S2-{tokens}"):
        runs = results["runs"]
        by_seed = {
            mask: [{int(seed): measure(run) for seed, run in of.items()} for measure in MEASURES.values()]
            for mask, of in runs.items()
        }
        rows: list[list[str]] = []
        for mask, columns in by_seed.items():
            for seed in columns[0]:
                rows.append([mask, str(seed), *(shown_perplexity(Mean((column[seed],))) for column in columns)])
            rows.append([mask, "mean", *(shown_perplexity(Mean(tuple(column.values()))) for column in columns)])
        pairs = zip(by_seed["naive"], by_seed["normal"], strict=True)
        rows.append(["naive − normal", "nats", *(signed(paired_difference(one, other)) for one, other in pairs)])
        yield from lead(results, mask_setting(results))
        yield from table(("mask", "seed", *MEASURES), *rows)


def mask_setting(results: Results) -> str:
    data, settings = results["data"], results["settings"]
    [one, *_] = results["runs"]["normal"].values()
    return (
        f"Perplexity per token of {data['text']} as {data['tokens']} ({data['vocabulary']:,} different, "
        f"{data['unknown']:.1%} unknown), {data['training']:,} documents of at most {settings['context']} tokens, "
        f"{data['held_out']} held out; {settings['layers']} layers, {settings['heads']} heads, width "
        f"{settings['width']}, {one['parameters']:,} parameters; {settings['steps']} steps of {settings['batch']} "
        f"documents, AdamW at {settings['rate']:g}."
    )


def samples(store: Store) -> Iterator[str]:
    """Section 2.2: what both models write after the same beginning."""
    for results in store.find("A2S2-words"):
        yield "```text"
        for mask, runs in results["runs"].items():
            [first, *_] = runs.values()
            yield f"{mask:8} {' '.join(first['sample'].split())}"
        yield "```"


ATTENTION_BLOCKS: dict[str, Callable[[Store], Iterator[str]]] = {
    "queries": queries,
    "tests": tests,
    "mask figures": mask_figures,
    "masks, words": partial(masks, tokens="words"),
    "masks, characters": partial(masks, tokens="characters"),
    "samples": samples,
}
