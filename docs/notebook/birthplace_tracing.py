"""The numbers, figures and tables of birthplace-tracing.md.

python docs/notebook/birthplace_tracing.py run RUNS    train what is missing in RUNS, look inside, then as below
python docs/notebook/birthplace_tracing.py             data/birthplace-tracing.json -> the figure, the page

A finished training or measurement in RUNS is not repeated. `--tiny` tries the whole script in a minute, with models too
small to learn anything; `--out` writes to another folder, which has the page.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attnlab.base.files import write_json, write_text
from attnlab.config import check
from attnlab.config.knowledge import KnowledgeConfig
from attnlab.interpret.asked_people import PARTS, AskedRun, open_asked
from attnlab.interpret.lens import QuestionLens, lens_questions
from attnlab.interpret.tracing import Trace, TraceOptions, layer_name, trace
from attnlab.jobs.subruns import run_subrun
from attnlab.runs import read_record
from attnlab.stats.intervals import Mean, plus_minus

HERE = Path(__file__).parent
NAME = "birthplace-tracing"
SEEDS = (0, 1, 2)
MODELS = {"sixteen": "read in 16 wordings", "one": "read in one wording", "unread": "not read"}
"""What the model has read about the people it is asked about, by name."""
SHOWN = ("first of name", "last of name", "after name", "MASK")
TRACES = {
    "right": TraceOptions(target="right", sites=("stream",)),
    "own": TraceOptions(target="own"),
    "exchanged": TraceOptions(target="own", corruption="exchange", sites=("stream",)),
}
OPTIMIZERS = {
    "pretrain": {"name": "muon", "lr": 2e-3, "matrix_lr": 0.02, "weight_decay": 0.01},
    "finetune": {"name": "muon", "lr": 5e-4, "matrix_lr": 0.005, "weight_decay": 0.01},
}


def settings(wordings: int, seed: int, tiny: bool) -> KnowledgeConfig:
    """Those of the recipe knowledge-paraphrases, with four layers instead of two: there is more to tell apart."""
    world = {"people": 300, "places": 60, "documents": 16, "sentences": 1, "name_first": True, "world_seed": 3}
    epochs = {"pretrain": 6, "finetune": 16}
    if tiny:
        world |= {"people": 40, "places": 6}
        epochs = {"pretrain": 1, "finetune": 1}
    batches = {"pretrain": 64, "finetune": 16}
    halves: dict[str, dict[str, Any]] = {
        half: {
            "optimizer": OPTIMIZERS[half],
            "batch": {"size": batches[half]},
            "training": {"epochs": epochs[half], "save_every": "2 epochs"},
        }
        for half in epochs
    }
    halves["pretrain"]["objective"] = {"name": "causal"}
    values = {
        "seed": seed,
        "control": wordings == 16,
        "data": {"tokens": "words"},
        "world": {**world, "paraphrases": wordings},
        "model": {"preset": "modern", "layers": 4, "heads": 4, "width": 96, "context": 64},
        "machine": {"device": "cpu", "precision": "fp32", "threads": 1},
    }
    return check(KnowledgeConfig, values | halves)


def run(root: Path, tiny: bool) -> dict[str, Any]:
    """Train and measure all models; results by model and seed."""
    results: dict[str, Any] = {}
    for seed in SEEDS[:2] if tiny else SEEDS:
        for name, wordings in (("sixteen", 16), ("one", 1)):
            path = root / f"{name}-{seed}"
            run_subrun("knowledge", settings(wordings, seed, tiny), path, f"{MODELS[name]}, seed {seed}")
            results.setdefault(name, {})[str(seed)] = _measured(path, path / "finetune")
        chain = root / f"sixteen-{seed}"
        results.setdefault("unread", {})[str(seed)] = _measured(chain, chain / "control")
    return {name: results[name] for name in MODELS}


def _measured(chain: Path, model: Path) -> dict[str, Any]:
    """What is inside one model, from a file if it was measured before."""
    file = chain / f"inside-{model.name}.json"
    if not file.is_file():
        results = {"accuracy": read_record(model)["results"]["test_accuracy"]}
        if model.name == "finetune":
            results["stored"] = read_record(chain)["results"]["told_accuracy"]
        write_json(file, results | measure(open_asked(model)))
    measured: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return measured


def measure(asked: AskedRun) -> dict[str, Any]:
    lens = lens_questions(asked)
    traces = {name: _trace_values(trace(asked, options)) for name, options in TRACES.items()}
    return {"people": lens.people, "chance": lens.chance, "lens": _lens_values(lens), **traces}


def _lens_values(lens: QuestionLens) -> dict[str, Any]:
    return {
        f"{layer_name(cell.layer)}/{cell.part}": {
            "probability": round(cell.probability.mean, 5),
            "first_answer": round(cell.first_answer.share, 5),
        }
        for cell in lens.cells
    }


def _trace_values(traced: Trace) -> dict[str, Any]:
    effects = {f"{c.site}/{layer_name(c.layer)}/{c.part}": round(c.effect.mean, 5) for c in traced.cells}
    return {"clean": round(traced.clean.mean, 5), "corrupted": round(traced.corrupted.mean, 5), "effects": effects}


Results = dict[str, dict[str, Any]]
"""By model and seed."""


def over_seeds(results: Results, model: str, *keys: str) -> Mean:
    """A number of all seeds; without the seeds that do not have it."""
    values = []
    for measured in results[model].values():
        value: Any = measured
        for key in keys:
            value = value.get(key) if value is not None else None
        if value is not None:
            values.append(float(value))
    return Mean(tuple(values))


def layers(results: Results) -> list[str]:
    first = next(iter(results["sixteen"].values()))
    return list(dict.fromkeys(key.split("/")[0] for key in first["lens"]))


def summary(results: Results) -> Iterator[str]:
    """Accuracy, and the probability of the right and of the own answer with and without the name."""
    common = over_seeds(results, "sixteen", "chance").mean
    yield f"The most common birthplace is right for {common:.1%}."
    yield ""
    yield (
        "| model | place known in the text | test accuracy | P of the right answer | with noise on names "
        "| P of its own answer | with noise | with another name |"
    )
    yield "| --- |" + " --- |" * 7
    for model, label in MODELS.items():
        stored = over_seeds(results, model, "stored")
        cells = [plus_minus(stored, ".1%") if stored.count else "–"]
        cells.append(plus_minus(over_seeds(results, model, "accuracy"), ".1%"))
        for target, side in (
            ("right", "clean"),
            ("right", "corrupted"),
            ("own", "clean"),
            ("own", "corrupted"),
            ("exchanged", "corrupted"),
        ):
            cells.append(plus_minus(over_seeds(results, model, target, side), ".3f"))
        yield f"| {label} | {' | '.join(cells)} |"


def readable(results: Results) -> Iterator[str]:
    """The share of people whose birthplace is the most probable of all, by layer and part of the question."""
    yield f"| model | after layer | {' | '.join(SHOWN)} |"
    yield "| --- | --- |" + " --- |" * len(SHOWN)
    for model, label in MODELS.items():
        for layer in layers(results):
            keys = [f"{layer}/{part}" for part in SHOWN]
            cells = [plus_minus(over_seeds(results, model, "lens", key, "first_answer"), ".1%") for key in keys]
            yield f"| {label} | {layer} | {' | '.join(cells)} |"


def regained(results: Results, traced: str = "own") -> Iterator[str]:
    """The probability of the model's own answer that one restored vector of the residual stream brings back."""
    yield f"| model | layer | {' | '.join(SHOWN)} |"
    yield "| --- | --- |" + " --- |" * len(SHOWN)
    for model, label in MODELS.items():
        for layer in layers(results):
            keys = [f"stream/{layer}/{part}" for part in SHOWN]
            cells = [plus_minus(over_seeds(results, model, traced, "effects", key), "+.3f") for key in keys]
            yield f"| {label} | {layer} | {' | '.join(cells)} |"


def sites(results: Results) -> Iterator[str]:
    """The same for the output of attention and MLP: where the largest effects are."""
    yield "| model | site | layer | part | regained |"
    yield "| --- | --- | --- | --- | --- |"
    for model, label in MODELS.items():
        for site in ("attention", "mlp"):
            keys = next(iter(results[model].values()))["own"]["effects"]
            means = {
                key: over_seeds(results, model, "own", "effects", key) for key in keys if key.startswith(f"{site}/")
            }
            for key in sorted(means, key=lambda key: -means[key].mean)[:3]:
                _, layer, part = key.split("/")
                yield f"| {label} | {site} | {layer} | {part} | {plus_minus(means[key], '+.3f')} |"


def exchanged(results: Results) -> Iterator[str]:
    """The same as `regained` with the name of another person instead of noise."""
    return regained(results, "exchanged")


TABLES = {"summary": summary, "readable": readable, "regained": regained, "exchanged": exchanged, "sites": sites}


def draw(results: Results, file: Path) -> None:
    """Above what the lens reads, below what restoring brings back, one column per model."""
    import numpy as np
    from matplotlib.figure import Figure

    from attnlab.explore.figures.canvas import caption, heatmap, styled

    parts = [part for part in PARTS if any(key.endswith(f"/{part}") for key in _any_lens(results))]
    rows = list(reversed(layers(results)))
    figure = Figure(figsize=(12, 6.4), dpi=100, layout="constrained")
    panels = figure.subplots(2, len(MODELS))
    reach = max(
        abs(over_seeds(results, m, "own", "effects", f"stream/{r}/{p}").mean)
        for m in MODELS
        for r in rows
        for p in parts
    )
    for column, (model, label) in enumerate(MODELS.items()):
        lens = [[over_seeds(results, model, "lens", f"{r}/{p}", "first_answer").mean for p in parts] for r in rows]
        effects = [[over_seeds(results, model, "own", "effects", f"stream/{r}/{p}").mean for p in parts] for r in rows]
        for panel, matrix, limit, title in (
            (panels[0, column], lens, 1.0, f"{label}: birthplace readable"),
            (panels[1, column], effects, reach, f"{label}: own answer regained"),
        ):
            heatmap(styled(panel), np.array(matrix), limit, digits=2 if limit >= 0.1 else 3)
            panel.set_xticks(range(len(parts)), [part.replace(" ", "\n", 1) for part in parts], fontsize=8)
            panel.set_yticks(range(len(rows)), rows)
            caption(panel, title, y="layer" if column == 0 else "")
    file.parent.mkdir(exist_ok=True)
    figure.savefig(file)


def _any_lens(results: Results) -> list[str]:
    return list(next(iter(results["sixteen"].values()))["lens"])


def filled(page: str, results: Results) -> str:
    """The page with what stands between its marks replaced by the tables and the figure."""
    blocks = {name: "\n".join(table(results)) for name, table in TABLES.items()}
    blocks["figure"] = f"![What the lens reads and what restoring brings back, by model](figures/{NAME}.png)"
    for name, block in blocks.items():
        mark = rf"(<!-- {name}: written by {Path(__file__).name} -->\n).*?(\n<!-- end -->)"
        page, count = re.subn(
            mark, lambda match, block=block: match[1] + "\n" + block + "\n" + match[2], page, flags=re.DOTALL
        )
        assert count == 1, f"the page has {count} places for {name}"
    return page


def write(out: Path, results: Results) -> None:
    draw(results, out / "figures" / f"{NAME}.png")
    page = out / f"{NAME}.md"
    write_text(page, filled(page.read_text(encoding="utf-8"), results))
    print("\n".join(line for table in TABLES.values() for line in [*table(results), ""]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", nargs="?", choices=["run"])
    parser.add_argument("runs", nargs="?", type=Path, help="folder of the runs")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--out", type=Path, default=HERE)
    args = parser.parse_args()
    data = args.out / "data" / f"{NAME}.json"
    if args.action == "run":
        if args.runs is None:
            parser.error("give the folder of the runs")
        data.parent.mkdir(exist_ok=True)
        write_json(data, run(args.runs, args.tiny))
    write(args.out, json.loads(data.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
