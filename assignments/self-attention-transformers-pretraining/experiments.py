"""Every measured value of report.md, by the commands of the assignment: `python experiments.py [NAME ...]`.

Each experiment pretrains (or not), fine-tunes and evaluates by `python src/run.py`, in the folder `runs/`, and
leaves `results/NAME.json`. One that has its result is skipped, one that was stopped is resumed. `--list` shows
all of them with their commands; without names, all are run, one after the other, in about three hours on two cores.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from attnlab.runs.metrics import read_metrics

HERE = Path(__file__).resolve().parent
RUNS, RESULTS = HERE / "runs", HERE / "results"
DATA = ("wiki.txt", "birth_places_train.tsv", "birth_dev.tsv", "birth_test_inputs.tsv")
TEN_MINUTES = 28  # epochs of preset fast on the slower of the machines that measured them


@dataclass(frozen=True)
class Experiment:
    """A model that is pretrained and asked. `pretrain` are options; None: it is not pretrained."""

    about: str
    pretrain: str | None
    variant: str = "vanilla"
    finetune: str = ""
    seed: int = 0

    def commands(self, name: str) -> list[str]:
        """As they are typed in a folder with `src/` and the data."""
        start = ""
        commands = []
        if self.pretrain is not None:
            commands.append(
                f"python src/run.py pretrain {self.variant} wiki.txt --writing_params_path {name}.pretrain.params "
                f"--seed {self.seed} {self.pretrain}"
            )
            start = f"--reading_params_path {name}.pretrain.params "
        commands.append(
            f"python src/run.py finetune {self.variant} wiki.txt {start}--writing_params_path {name}.finetune.params "
            f"--finetune_corpus_path birth_places_train.tsv --seed {self.seed} {self.finetune}"
        )
        for part, questions in (("dev", "birth_dev.tsv"), ("test", "birth_test_inputs.tsv")):
            commands.append(
                f"python src/run.py evaluate {self.variant} wiki.txt --reading_params_path {name}.finetune.params "
                f"--eval_corpus_path {questions} --outputs_path {name}.{part}.predictions --trace"
            )
        return [" ".join(command.split()) for command in commands]


def _ablation(about: str, change: str = "") -> Experiment:
    return Experiment(about, f"--preset fast --epochs {TEN_MINUTES} {change}")


EXPERIMENTS = {
    "fast-vanilla": Experiment("preset fast, full length", "--preset fast", seed=1),
    "fast-vanilla-half-2": Experiment("preset fast, half length", "--preset fast --epochs 56", seed=2),
    "fast-vanilla-half-3": Experiment("preset fast, half length", "--preset fast --epochs 56", seed=3),
    "fast-synthesizer": Experiment("preset fast, half length", "--preset fast --epochs 56", variant="synthesizer"),
    "scratch-vanilla": Experiment("no pretraining, the course's settings for 15 epochs", None, finetune="--epochs 15"),
    "scratch-fast": Experiment("no pretraining, preset fast", None, finetune="--preset fast"),
    "course-vanilla": Experiment("the course's settings, as many epochs as take half an hour", "--epochs 46"),
    "ten-minutes": _ablation("preset fast, ten minutes"),
    "ten-all": _ablation("all phrases hidden at once", "--set hide=all"),
    "ten-whole-text": _ablation("the whole text visible", "--set left=none --set right=none"),
    "ten-no-rank": _ablation("all ranks of phrases alike", "--set rank=0"),
    "ten-no-place": _ablation("places drawn as often as other phrases", "--set place=1"),
    "ten-everywhere": _ablation("the loss on every character", "--set loss=everywhere"),
    "ten-adamw": _ablation("AdamW instead of Muon", "--set optimizer=adamw --set learning_rate=0.001"),
    "ten-learned": _ablation("learned positions instead of rotary", "--set rotary=no"),
}


def run(name: str) -> None:
    experiment = EXPERIMENTS[name]
    result = RESULTS / f"{name}.json"
    if result.is_file():
        print(f"{name}: {result.relative_to(HERE)} exists, nothing to do")
        return
    RUNS.mkdir(exist_ok=True)
    RESULTS.mkdir(exist_ok=True)
    for link, target in {"src": HERE / "src", **{file: HERE / file for file in DATA}}.items():
        if not target.exists():
            sys.exit(f"error: {target.name} is missing: put the course's data files into {HERE.name}/.")
        if not (RUNS / link).exists():
            (RUNS / link).symlink_to(target)
    printed = ""
    for command in experiment.commands(name):
        words = shlex.split(command)
        output = RUNS / words[words.index("--writing_params_path") + 1] if "--writing_params_path" in words else None
        if output is None or not output.is_file():
            print(f"{name}: {command}", flush=True)
            done = subprocess.run(
                [sys.executable, *words[1:]], cwd=RUNS, stdout=subprocess.PIPE, text=True, env=dict(os.environ)
            )
            if done.returncode:
                sys.exit(done.returncode)
            printed += done.stdout
    result.write_text(json.dumps(summary(name, experiment, printed), indent=1) + "\n", encoding="utf-8")
    print(f"{name}: {result.relative_to(HERE)}")


def summary(name: str, experiment: Experiment, printed: str) -> dict[str, object]:
    """Commands, cost and scores of a finished experiment."""
    scored = re.search(r"Correct: ([\d.]+) out of ([\d.]+)", printed)
    interval = re.search(r"interval over questions: ([\d.]+)% to ([\d.]+)%", printed)
    assert scored and interval, printed
    costs = {}
    for part in ("pretrain", "finetune"):
        record = RUNS / f"{name}.{part}.params.run" / "run.json"
        if record.is_file():
            costs[part] = cost(json.loads(record.read_text(encoding="utf-8")))
            costs[part]["losses"] = losses(record.with_name("metrics.jsonl"))
    right, total = (int(float(number)) for number in scored.groups())
    return {
        "about": experiment.about,
        "variant": experiment.variant,
        "seed": experiment.seed,
        "commands": experiment.commands(name),
        "dev": {
            "right": right,
            "total": total,
            "accuracy": right / total,
            "interval": [float(end) / 100 for end in interval.groups()],
        },
        "trace": traced(RUNS / f"{name}.dev.predictions.trace.tsv"),
        **costs,
    }


def traced(path: Path) -> dict[str, dict[str, int]]:
    """How many answers of each origin there are, and how many of them are right."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    kinds: dict[str, list[bool]] = {}
    for row in rows:
        kinds.setdefault(row["kind"], []).append(row["answer"] == row["expected"])
    return {kind.replace(" ", "_"): {"answers": len(right), "right": sum(right)} for kind, right in kinds.items()}


def losses(path: Path) -> list[float]:
    """The mean training loss of each pass."""
    by_pass: dict[int, list[float]] = {}
    for line in read_metrics(path):
        if line["split"] == "train":
            by_pass.setdefault(line["epoch"], []).append(line["loss"])
    return [round(fmean(values), 4) for _, values in sorted(by_pass.items())]


def cost(record: dict[str, dict[str, float]]) -> dict[str, object]:
    training = record["training"]
    return {
        "parameters": record["parameters"],
        "steps": training["step"],
        "epochs": training["epoch"],
        "characters": training["tokens"],
        "seconds": round(training["seconds"], 1),
        "notes": record["changes"],
        "machine": {key: record["machine"][key] for key in ("cpu", "cores")},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(EXPERIMENTS))
    parser.add_argument("--list", action="store_true", help="show the commands and run nothing")
    args = parser.parse_args()
    for name in args.names:
        if name not in EXPERIMENTS:
            parser.error(f"unknown experiment {name!r}: choose from {', '.join(EXPERIMENTS)}")
    for name in args.names or EXPERIMENTS:
        if args.list:
            print(f"{name}: {EXPERIMENTS[name].about}", *EXPERIMENTS[name].commands(name), sep="\n  ")
        else:
            run(name)


if __name__ == "__main__":
    main()
