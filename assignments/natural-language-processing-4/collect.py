"""The numbers of the report: from the runs that experiments.sh left to results/*.json, and from these to report.md.

    python collect.py            # RUNS, or runs/, to results/ and figures/, then the blocks of report.md
    python collect.py --report   # the blocks of report.md alone, from the results there are

A block of report.md begins with <!-- block: NAME --> and ends with <!-- end -->; what is between is written here.
"""

from __future__ import annotations

import ast
import json
import os
import re
import sys
from collections.abc import Sequence
from math import comb, sqrt
from pathlib import Path
from statistics import NormalDist, mean, stdev
from typing import Any

from curves import Curve, draw
from errors import UserError, note, one_sentence
from files import read_json, write_json, write_whole
from tables import BLOCKS

FOLDER = Path(__file__).resolve().parent
PROBLEM_2 = ("lr-3e-5", "lr-1e-4", "lr-3e-4", "epochs-4", "length-64", "length-256")
SEEDS = (42, 43, 44)
PROBLEM_3 = {  # groups of runs that differ in the seed alone
    "all-alone": ("lr-1e-4", "all-alone-43", "all-alone-44"),
    "all-joint": tuple(f"all-joint-{seed}" for seed in SEEDS),
    "50-alone": tuple(f"50-alone-{seed}" for seed in SEEDS),
    "50-joint": tuple(f"50-joint-{seed}" for seed in SEEDS),
    "50-strong": tuple(f"50-strong-{seed}" for seed in SEEDS),
}
OPTIONAL = ("all-alone-43", "all-alone-44", "all-joint-43", "all-joint-44")  # ./experiments.sh seeds
AGAINST = {"all-joint": "all-alone", "50-joint": "50-alone", "50-strong": "50-alone"}
STUDENT = {2: 12.706, 3: 4.303}  # 97.5% quantile of Student's t, by the number of seeds
BLOCK = re.compile(r"<!-- block: ([\w ]+) -->.*?<!-- end -->", re.DOTALL)
Results = dict[str, Any]


def read_runs(folder: Path) -> dict[str, Results]:
    """What finished runs left, by name; raises for one that is missing."""
    names = dict.fromkeys([*PROBLEM_2, *(name for group in PROBLEM_3.values() for name in group)])
    runs = {}
    for name in names:
        path = folder / name / "results.json"
        if not path.is_file() and name in OPTIONAL:
            continue
        if not path.is_file() or "scores" not in read_json(path):
            raise UserError(f"{folder / name} has no finished training: run ./experiments.sh first.")
        runs[name] = read_json(path)
    return runs


def summary(run: Results) -> Results:
    """One run: its settings, scores with intervals, and cost."""
    options, scores, test = run["options"], run["scores"], run["answers"]["test"]
    pairs = [(int(right), int(found)) for right, found in zip(test["labels"], test["predicted"], strict=True)]
    losses = [entry["mlm_loss"] for entry in run["history"] if "mlm_loss" in entry]
    return {
        "learning_rate": options["learning_rate"],
        "epochs": run["epochs"],
        "max_seq_length": options["max_seq_length"],
        "mlm_alpha": options.get("mlm_alpha", 0.0),
        "seed": options["seed"],
        "labels": run["texts"]["train"],
        "cut": run["cut"]["train"] / run["texts"]["train"],
        "steps": run["steps"],
        "best_step": run["best_step"],
        **scores,
        "dev_interval": wilson(scores["dev_acc"], run["texts"]["dev"]),
        "test_interval": wilson(scores["test_acc"], run["texts"]["test"]),
        "within_one": mean(abs(right - found) <= 1 for right, found in pairs),
        "confusion": [[pairs.count((right, found)) for found in range(5)] for right in range(5)],
        "train_loss": [run["history"][0].get("cls_loss", run["history"][0]["loss"]), _last_loss(run)],
        "dev_losses": [min(entry["dev_loss"] for entry in run["history"]), run["history"][-1]["dev_loss"]],
        "mlm_loss": [losses[0], losses[-1]] if losses else None,
        "minutes": run["seconds"] / 60,
        "cpu_minutes": run["cpu_seconds"] / 60,
        "curve": [[entry["step"], entry["dev_acc"]] for entry in run["history"]],
    }


def _last_loss(run: Results) -> float:
    return run["history"][-1].get("cls_loss", run["history"][-1]["loss"])


def group(runs: Sequence[Results]) -> Results:
    """Runs that differ in the seed: the mean of each score, and its 95% interval over seeds."""
    found: Results = {"seeds": [run["seed"] for run in runs]}
    for name in ("dev_acc", "test_acc", "minutes", "cpu_minutes"):
        values = [run[name] for run in runs]
        found |= {name: mean(values), f"{name}_half": half_width(values)}
    return found


def difference(joint: Sequence[Results], alone: Sequence[Results], answers: Sequence[tuple[str, str, str]]) -> Results:
    """Joint training minus the classifier alone, seed by seed; and over the test reviews of the first seed."""
    found: Results = {"seeds": [run["seed"] for run in joint]}
    for name in ("dev_acc", "test_acc"):
        values = [ours[name] - theirs[name] for ours, theirs in zip(joint, alone, strict=True)]
        found |= {name: mean(values), f"{name}_half": half_width(values)}
    gained, lost = mcnemar_counts(*answers[0])
    return found | {"gained": gained, "lost": lost, "p": mcnemar(gained, lost)}


def wilson(share: float, count: int) -> list[float]:
    """Wilson's 95% interval of a share of `count` answers."""
    z = NormalDist().inv_cdf(0.975)
    middle = (share + z**2 / (2 * count)) / (1 + z**2 / count)
    half = z / (1 + z**2 / count) * sqrt(share * (1 - share) / count + z**2 / (4 * count**2))
    return [middle - half, middle + half]


def half_width(values: Sequence[float]) -> float | None:
    """Half the 95% interval of a mean (Student's t); one value has none."""
    return STUDENT[len(values)] * stdev(values) / sqrt(len(values)) if len(values) > 1 else None


def mcnemar_counts(labels: str, ours: str, theirs: str) -> tuple[int, int]:
    """How many texts only the first got right, and how many only the second."""
    right = [(label == a, label == b) for label, a, b in zip(labels, ours, theirs, strict=True)]
    return right.count((True, False)), right.count((False, True))


def mcnemar(gained: int, lost: int) -> float:
    """The exact p-value of McNemar's test: would as uneven a split of the differing answers occur by chance?"""
    total = gained + lost
    return min(1.0, 2 * sum(comb(total, k) for k in range(min(gained, lost) + 1)) / 2**total)


def collect(folder: Path) -> dict[str, Results]:
    """All results, by the name of their file."""
    runs = read_runs(folder)
    short = {name: summary(run) for name, run in runs.items()}
    first = next(iter(runs.values()))
    about = {"machine": first["machine"], "start": first["start"], "texts": first["texts"], "files": first["files"]}
    groups = {name: [seed for seed in names if seed in runs] for name, names in PROBLEM_3.items()}
    differences = {}
    for name, base in AGAINST.items():
        pairs = list(zip(groups[name], groups[base], strict=False))
        tests = [[runs[run]["answers"]["test"] for run in pair] for pair in pairs]
        answers = [(ours["labels"], ours["predicted"], theirs["predicted"]) for ours, theirs in tests]
        ours, theirs = ([short[run] for run in side] for side in zip(*pairs, strict=True))
        differences[name] = difference(ours, theirs, answers)
    best = max(PROBLEM_2, key=lambda name: short[name]["dev_acc"])
    against_best = {}
    for name in PROBLEM_2:
        ours, theirs = (runs[one]["answers"]["dev"] for one in (best, name))
        gained, lost = mcnemar_counts(ours["labels"], ours["predicted"], theirs["predicted"])
        against_best[name] = {"gained": gained, "lost": lost, "p": mcnemar(gained, lost)}
    joint = runs["all-joint-42"]
    return {
        "problem2": {
            **about,
            "best": best,
            "against_best": against_best,
            "runs": {name: short[name] for name in PROBLEM_2},
        },
        "problem3": {
            **about,
            "files": joint["files"],
            "runs": {run: short[run] for names in groups.values() for run in names},
            "groups": {name: group([short[run] for run in names]) for name, names in groups.items()},
            "differences": differences,
        },
    }


def write_figures(results: dict[str, Results]) -> None:
    (FOLDER / "figures").mkdir(exist_ok=True)
    runs = results["problem2"]["runs"]
    draw(
        FOLDER / "figures" / "problem2.svg",
        "Problem 2: accuracy on dev while training",
        [Curve(name, runs[name]["curve"]) for name in PROBLEM_2],
    )
    runs, names = results["problem3"]["runs"], ("50-alone", "50-joint", "50-strong")
    draw(
        FOLDER / "figures" / "problem3.svg",
        "Problem 3: accuracy on dev with 50 labels, three seeds",
        [Curve(name, runs[run]["curve"], colour) for colour, name in enumerate(names) for run in PROBLEM_3[name]],
    )


def write_report(results: dict[str, Results]) -> None:
    """Fill the blocks of report.md: tables where there are results, code always."""

    def filled(block: re.Match[str]) -> str:
        kind, _, rest = block[1].partition(" ")
        content = snippet(rest) if kind == "code" else BLOCKS[block[1]](results) if results else ""
        return f"<!-- block: {block[1]} -->\n" + (f"\n{content}\n\n" if content else "") + "<!-- end -->"

    path = FOLDER / "report.md"
    text = path.read_text(encoding="utf-8")
    write_whole(path, [BLOCK.sub(filled, text).encode()])


def snippet(name: str) -> str:
    """A class of mymodel.py as it stands there."""
    source = (FOLDER / "mymodel.py").read_text(encoding="utf-8")
    node = next(n for n in ast.parse(source).body if isinstance(n, ast.ClassDef) and n.name == name)
    lines = source.splitlines()[node.lineno - 1 : node.end_lineno]
    return "\n".join(["```python", *lines, "```"])


def main(words: list[str]) -> None:
    with one_sentence():
        if words not in ([], ["--report"]):
            raise UserError(f"expected nothing or --report, got {' '.join(words)}.")
        folder = FOLDER / "results"
        if not words:
            found = collect(Path(os.environ.get("RUNS", FOLDER / "runs")))
            folder.mkdir(exist_ok=True)
            for name, content in found.items():
                write_json(folder / f"{name}.json", content)
            write_figures(found)
        files = sorted(folder.glob("problem*.json"))
        results = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in files}
        write_report(results)
        note(f"report.md has {len(results)} files of results." if results else "report.md: there are no results yet.")


if __name__ == "__main__":
    main(sys.argv[1:])
