"""The tables of section 3 of the write-up, from the results of A2S3."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from attnlab.stats.intervals import Mean, Proportion, plus_minus
from write_up.store import Results, Store, lead, table

SPLITS = ("train", "dev")
SHOWN = (1, 2, 3, 4, 5, 7, 10, 12, 15, 17)
"""The epochs of a long training whose values are in the table; its figure has all."""


def lengths(store: Store) -> Iterator[str]:
    """Q2.1."""
    for results in store.find("A2S3-AdamW-seed0"):
        yield from table(results["lengths"], [f"{count:,}" for count in results["lengths"].values()])
        for note in results["notes"][1:]:
            yield f"\n{note[0].upper()}{note[1:]}"


def first_batch(store: Store) -> Iterator[str]:
    """Q2.3."""
    for results in store.find("A2S3-AdamW-seed0"):
        rows = [(f"`{name}`", f"`{kind}`", shape) for name, (kind, shape) in results["first_batch"].items()]
        yield from table(("tensor", "type", "shape of the first batch"), *rows)


def accuracy(training: Results, split: str, epoch: int) -> float:
    return float(training["curve"][epoch - 1][split]["accuracy"])


def best_epoch(training: Results, split: str) -> int:
    return max(range(1, len(training["curve"]) + 1), key=lambda epoch: accuracy(training, split, epoch))


def dev_interval(training: Results, epoch: int) -> Proportion:
    """Dev accuracy after an epoch, with its interval over sentences."""
    return Proportion(
        round(accuracy(training, "dev", epoch) * training["sentences"]["dev"]), training["sentences"]["dev"]
    )


def curves(store: Store) -> Iterator[str]:
    """Q4.1: figure 9, and its values."""
    trainings = store.find("A2S3-AdamW-seed*")
    if trainings:
        yield from lead(trainings[0], f"{training_setting(trainings[0])}, {len(trainings)} seeds (mean ± 95%).")
        names = ("accuracy", "loss")
        figures = [
            f"![Figure 9, {name}: training and validation by epoch](figures/9-AdamW-{name}.png)" for name in names
        ]
        yield from table((f"figure 9, {name}" for name in names), figures)
        yield ""
        columns = [(split, measure) for measure in ("accuracy", "loss") for split in ("train", "dev")]
        rows = []
        last = len(trainings[0]["curve"])
        for n in range(last):
            if last > len(SHOWN) and n + 1 not in (*SHOWN, last):
                continue
            means = [Mean(tuple(one["curve"][n][split][measure] for one in trainings)) for split, measure in columns]
            forms = [".1%" if measure == "accuracy" else ".3f" for _, measure in columns]
            rows.append([n + 1, *(plus_minus(mean, form) for mean, form in zip(means, forms, strict=True))])
        yield from table(("epoch", *(f"{split} {measure}" for split, measure in columns)), *rows)


def best_epochs(store: Store) -> Iterator[str]:
    """Q4.2."""
    rows = []
    for one in store.find("A2S3-AdamW-seed*"):
        train, dev, last = best_epoch(one, "train"), best_epoch(one, "dev"), len(one["curve"])
        losses = [values["dev"]["loss"] for values in one["curve"]]
        trained, kept = f"{train}: {accuracy(one, 'train', train):.1%}", f"{dev}: {dev_interval(one, dev)}"
        lowest = f"{losses.index(min(losses)) + 1}: {min(losses):.3f}"
        rows.append([one["settings"]["seed"], trained, kept, dev_interval(one, last), lowest, f"{losses[-1]:.3f}"])
    if rows:
        titles = ("best train accuracy, epoch", "best dev accuracy, epoch", "dev accuracy, last epoch")
        yield from table(("seed", *titles, "lowest dev loss, epoch", "dev loss, last epoch"), *rows)


def optimizers(store: Store) -> Iterator[str]:
    """Q4.5: figure 10, and its values."""
    rows: list[list[object]] = []
    figures: dict[str, str] = {}
    for name in ("AdamW", "SGD", "SGD-1000x", "Adagrad"):
        for one in store.find(f"A2S3-{name}-seed0"):
            last, best = len(one["curve"]), best_epoch(one, "dev")
            train = [f"{accuracy(one, 'train', epoch):.1%}" for epoch in (1, last)]
            dev = [f"{accuracy(one, 'dev', 1):.1%}", dev_interval(one, last), f"{best}: {dev_interval(one, best)}"]
            rows.append([one["settings"]["optimizer"], f"{one['settings']['rate']:g}", *train, *dev])
            if name != "AdamW":
                title = f"figure 10, {one['settings']['optimizer']} at {one['settings']['rate']:g}"
                figures[title] = f"![{title}: accuracy by epoch](figures/10-{name}-accuracy.png)"
    if figures:
        columns = ("train, epoch 1", "train, last epoch", "dev, epoch 1", "dev, last epoch", "dev, best epoch")
        yield from table(("optimizer", "rate", *columns), *rows)
        yield ""
        yield from table(figures, figures.values())


def search(store: Store) -> Iterator[str]:
    """Q4.6."""
    for results in store.find("A2S3-search"):
        rows = []
        for cell in results["cells"]:
            settings, best = cell["settings"], cell["best"]
            epochs = ", ".join(f"{values['dev']['accuracy']:.1%}" for values in cell["curve"])
            rows.append([settings["batch"], f"{settings['rate']:g}", epochs, best, dev_interval(cell, best)])
        [first, *_] = results["cells"]
        yield from lead(results, f"{training_setting(first, grid=True)}, seed {first['settings']['seed']}.")
        yield from table(("batch_size", "learning_rate", "dev after each epoch", "num_epochs", "dev, best"), *rows)


def final(store: Store) -> Iterator[str]:
    """Q4.7."""
    trainings = store.find("A2S3-final-seed*")
    if not trainings:
        return
    [first, *_] = trainings
    settings = first["settings"]
    yield from lead(
        first,
        f"batch_size {settings['batch']}, learning_rate {settings['rate']:g}, num_epochs {settings['epochs']}, "
        f"{first['sentences']['train']:,} training sentences.",
    )
    rows = []
    for one in trainings:
        rows.append([one["settings"]["seed"], *(f"{one['scores'][split]['accuracy']:.1%}" for split in SPLITS)])
    if len(trainings) > 1:
        means = [Mean(tuple(one["scores"][split]["accuracy"] for one in trainings)) for split in SPLITS]
        rows.append(["mean", *(plus_minus(mean, ".1%") for mean in means)])
    yield from table(("seed", *(f"{split} accuracy" for split in SPLITS)), *rows)


def test(store: Store) -> Iterator[str]:
    """Q5.1."""
    trainings = store.find("A2S3-final-seed*")
    if not trainings:
        return
    rows = []
    for one in trainings:
        right = Proportion(one["test_right"], one["test_count"])
        rows.append([one["settings"]["seed"], f"{right.right} of {right.count}", right])
    yield from table(("seed", "right", "test accuracy (95% over sentences)"), *rows)
    mean = Mean(tuple(one["test_right"] / one["test_count"] for one in trainings))
    constant = Proportion(trainings[0]["constant_right"], trainings[0]["test_count"])
    yield f"\nMean over seeds: {plus_minus(mean, '.1%')}. Always the same answer: {constant}."


def training_setting(training: Results, grid: bool = False) -> str:
    settings = training["settings"]
    chosen = "" if grid else f", batches of {settings['batch']}, rate {settings['rate']:g}"
    sentences = training["sentences"]
    return (
        f"{settings['model']} on {training['task']}, {sentences['train']:,} training and {sentences['dev']:,} dev "
        f"sentences{chosen}, {settings['epochs']} epochs"
    )


CLASSIFIER_BLOCKS: dict[str, Callable[[Store], Iterator[str]]] = {
    "lengths": lengths,
    "first batch": first_batch,
    "curves": curves,
    "best epochs": best_epochs,
    "optimizers": optimizers,
    "search": search,
    "final": final,
    "test": test,
}
