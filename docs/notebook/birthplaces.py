"""The numbers and figures of birthplaces.md.

python docs/notebook/birthplaces.py gather RUNS    run folders by name -> data/birthplaces.json
python docs/notebook/birthplaces.py                data/birthplaces.json -> figures/birthplaces-*.png, the tables
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attnlab.runs import is_run, read_metrics, read_record, read_status
from attnlab.stats.intervals import Mean, Proportion

HERE = Path(__file__).parent
DATA = HERE / "data" / "birthplaces.json"
QUESTIONS = 500  # in birth_dev.tsv
LONDON = 25  # correct if the answer is always "London"
ABLATIONS = {
    "ab-base": "as it is",
    "ab-span": "a span anywhere instead of names, places and numbers",
    "ab-everywhere": "the loss on every token",
    "ab-characters": "characters instead of words",
    "ab-adamw": "AdamW instead of Muon",
    "ab-learned": "learned positions instead of rotary",
    "ab-noqknorm": "queries and keys not normalised",
    "ab-gelu": "GELU instead of squared ReLU",
    "ab-nozero": "no start at zero",
    "ab-bycount": "batches not by length",
}


def curve(run: Path) -> dict[str, Any]:
    """Dev accuracy along a run, by positions and seconds."""
    record = read_record(run)
    training = record["training"]
    padded = training["positions"] / training["tokens"]
    lines = [line for line in read_metrics(run / "metrics.jsonl") if line["split"] == "dev"]
    return {
        "seed": record["seed"],
        "parameters": record["parameters"],
        "positions": [round(line["tokens"] * padded) for line in lines],
        "seconds": [round(line["seconds"], 1) for line in lines],
        "accuracy": [line["accuracy"] for line in lines],
        "best": max(line["accuracy"] for line in lines),
    }


def finished(run: Path) -> bool:
    return is_run(run) and read_status(run)["state"] == "finished"


def gather(runs: Path) -> dict[str, Any]:
    def curves(*names: str) -> list[dict[str, Any]]:
        return [curve(runs / name) for name in names if finished(runs / name)]

    return {
        "modern": curves("main-0", "main-1", "main-2"),
        "two_stage": {"reading": read_record(runs / "two-stage")["training"], "tuning": curve(runs / "two-stage-ft")},
        "fresh": curves("fresh-0", "fresh-1", "fresh-2"),
        "synthesizer": curves("synthesizer"),
        "ablations": {label: curves(name)[0] for name, label in ABLATIONS.items() if curves(name)},
        "vanilla": json.loads((runs / "vanilla.json").read_text(encoding="utf-8")),
    }


def load() -> dict[str, Any]:
    results: dict[str, Any] = json.loads(DATA.read_text(encoding="utf-8"))
    return results


def share(accuracy: float) -> str:
    proportion = Proportion(round(accuracy * QUESTIONS), QUESTIONS)
    low, high = proportion.interval
    return f"{proportion.share:.1%} ({low:.1%} to {high:.1%})"


def _row(label: str, positions: int, run: dict[str, Any]) -> str:
    last = run["accuracy"][-1] if "accuracy" in run else run["best"]
    return f"| {label} | {positions:,} | {run['parameters']:,} | {share(run['best'])} | {share(last)} |"


def targets(data: dict[str, Any]) -> Iterator[str]:
    yield "| run | positions | parameters | dev, best evaluation | dev, last evaluation |"
    yield "| --- | --- | --- | --- | --- |"
    for run in data["modern"]:
        yield _row(f"modern, seed {run['seed']}", run["positions"][-1], run)
    best, last = (
        _over_seeds([select(run) for run in data["modern"]])
        for select in (lambda run: run["best"], lambda run: run["accuracy"][-1])
    )
    yield f"| modern, mean of {len(data['modern'])} seeds |  |  | {best} | {last} |"
    two = data["two_stage"]
    yield _row("read first, questions after", two["reading"]["positions"], two["tuning"])
    for run in data["synthesizer"]:
        yield _row("synthesizer", run["positions"][-1], run)
    for run in data["fresh"]:
        yield _row(f"not pretrained, seed {run['seed']}", 0, run)
    for point in data["vanilla"]:
        yield _row(f"the course's settings, {point['epochs']} of its 650 epochs", point["positions"], point)
    london = share(LONDON / QUESTIONS)
    yield f'| always "London" |  |  | {london} | {london} |'


def _over_seeds(values: list[float]) -> str:
    mean = Mean(tuple(values))
    low, high = mean.interval
    return f"{mean.mean:.1%} ({low:.1%} to {high:.1%}, over seeds)"


def ablations(data: dict[str, Any]) -> Iterator[str]:
    yield "| changed | dev | against as it is |"
    yield "| --- | --- | --- |"
    rows = data["ablations"]
    base = rows["as it is"]["best"]
    for label, run in sorted(rows.items(), key=lambda row: -row[1]["best"]):
        difference = "" if label == "as it is" else f"{run['best'] - base:+.1%}"
        yield f"| {label} | {share(run['best'])} | {difference} |"


def draw(data: dict[str, Any]) -> None:
    import matplotlib.pyplot as plt
    from matplotlib.ticker import PercentFormatter

    from attnlab.report.figures import COLOURS, STYLE

    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True)
        for side, (key, unit) in zip(axes, (("positions", 1e6), ("seconds", 60.0)), strict=True):
            for n, run in enumerate(data["modern"]):
                side.plot(
                    [x / unit for x in run[key]],
                    run["accuracy"],
                    color=COLOURS[0],
                    marker=".",
                    label="modern, three seeds" if n == 0 else None,
                )
            points = data["vanilla"]
            side.plot(
                [point[key] / unit for point in points],
                [point["best"] for point in points],
                color=COLOURS[1],
                marker="s",
                label="the course's settings, 2 of 650 epochs",
            )
            side.axhline(LONDON / QUESTIONS, linestyle=":", color="#4a5568", label='always "London"')
            side.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes[0].set(xlabel="million positions of pretraining", ylabel="accuracy on dev questions")
        axes[1].set(xlabel="minutes of pretraining, one thread of a busy machine")
        axes[0].legend(loc="upper left")

        figure.savefig(HERE / "figures" / "birthplaces-curves.png", dpi=130)


if __name__ == "__main__":
    if sys.argv[1:2] == ["gather"]:
        DATA.write_text(json.dumps(gather(Path(sys.argv[2])), indent=1) + "\n", encoding="utf-8")
    else:
        draw(load())
        print("\n".join([*targets(load()), "", *ablations(load())]))
