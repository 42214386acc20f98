"""Every measured value of report.md, by the commands of the assignment: `python experiments.py [NAME ...]`.

Each experiment pretrains (or not), fine-tunes and evaluates by `python src/run.py`, in the folder `runs/`, and
leaves `results/NAME.json`. One that has its result is skipped, one that was stopped is resumed. `--list` shows
all of them with their commands; without names, all are run, one after the other, in about four hours on two cores.
Besides, `play_char` is the demo and `hand-in` the zip of what was trained: their output is `results/NAME.txt`.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from attnlab.runs.metrics import read_metrics

HERE = Path(__file__).resolve().parent
RUNS, RESULTS = HERE / "runs", HERE / "results"
DATA = ("wiki.txt", "birth_places_train.tsv", "birth_dev.tsv", "birth_test_inputs.tsv")
TEN_MINUTES_EPOCHS = 28  # of preset fast, on one slow core
EXAMPLES = 4  # right and wrong answers that are kept with a result


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
    return Experiment(about, f"--preset fast --epochs {TEN_MINUTES_EPOCHS} {change}")


EXPERIMENTS = {
    "fast-vanilla": Experiment("preset fast, full length", "--preset fast", seed=1),
    "fast-vanilla-half-2": Experiment("preset fast, half length", "--preset fast --epochs 56", seed=2),
    "fast-vanilla-half-3": Experiment("preset fast, half length", "--preset fast --epochs 56", seed=3),
    "fast-synthesizer": Experiment("preset fast, half length", "--preset fast --epochs 56", variant="synthesizer"),
    "scratch-vanilla": Experiment("no pretraining, the course's settings for 15 epochs", None, finetune="--epochs 15"),
    "scratch-fast": Experiment("no pretraining, preset fast", None, finetune="--preset fast"),
    "course-vanilla": Experiment("the course's settings, as many epochs as take half an hour", "--epochs 18"),
    "ten-minutes": _ablation("preset fast, ten minutes"),
    "ten-synthesizer": Experiment(
        "the synthesizer", f"--preset fast --epochs {TEN_MINUTES_EPOCHS}", variant="synthesizer"
    ),
    "ten-all": _ablation("all phrases hidden at once", "--set hide=all"),
    "ten-whole-text": _ablation("the whole text visible", "--set left=none --set right=none"),
    "ten-no-rank": _ablation("all ranks of phrases alike", "--set rank=0"),
    "ten-no-place": _ablation("places drawn as often as other phrases", "--set place=1"),
    "ten-everywhere": _ablation("the loss on every character", "--set loss=everywhere"),
    "ten-adamw": _ablation("AdamW instead of Muon", "--set optimizer=adamw --set learning_rate=0.001"),
    "ten-learned": _ablation("learned positions instead of rotary", "--set rotary=no"),
}

OUTPUTS = {"play_char": "python mingpt-demo/play_char.py", "hand-in": "./collect_submission.sh yourname"}
HAND_IN = {  # the document's names of a model and its predictions: the first of these experiments that is in runs/
    ("vanilla.model", "vanilla.nopretrain"): ("scratch-vanilla", "scratch-fast"),
    ("vanilla.finetune", "vanilla.pretrain"): (
        "fast-vanilla",
        "fast-vanilla-half-3",
        "fast-vanilla-half-2",
        "ten-minutes",
    ),
    ("synthesizer.finetune", "synthesizer.pretrain"): ("fast-synthesizer", "ten-synthesizer"),
}


def run(name: str) -> None:
    result = RESULTS / (f"{name}.json" if name in EXPERIMENTS else f"{name}.txt")
    if result.is_file():
        print(f"{name}: {result.relative_to(HERE)} exists, nothing to do")
        return
    RUNS.mkdir(exist_ok=True)
    RESULTS.mkdir(exist_ok=True)
    if name in EXPERIMENTS:
        content = json.dumps(measure(name), indent=1) + "\n"
    else:
        content = hand_in() if name == "hand-in" else output(OUTPUTS[name], HERE)
    result.write_text(content, encoding="utf-8")
    print(f"{name}: {result.relative_to(HERE)}")


def hand_in() -> str:
    """The files that the document asks for, by its names, in RUNS, and the zip of them; what the zip has in it."""
    made = ""
    for (model, predictions), names in HAND_IN.items():
        name = next((name for name in names if (RUNS / f"{name}.test.predictions").is_file()), None)
        if name is None:
            sys.exit(
                f"error: runs/ has no model for {model}.params: run python experiments.py {names[0]} first "
                "(without its file in results/, so that it is run again)."
            )
        shutil.copyfile(RUNS / f"{name}.finetune.params", RUNS / f"{model}.params")
        for part in ("dev", "test"):
            shutil.copyfile(RUNS / f"{name}.{part}.predictions", RUNS / f"{predictions}.{part}.predictions")
        made += f"{model}.params and {predictions}.*.predictions: {name}\n"
    shutil.copy(HERE / "collect_submission.sh", RUNS)
    return f"{made}$ {OUTPUTS['hand-in']}\n{output(OUTPUTS['hand-in'], RUNS)}"


def output(command: str, folder: Path) -> str:
    """What a command prints."""
    print(command, flush=True)
    words = shlex.split(command)
    words[:1] = [sys.executable] if words[0] == "python" else words[:1]
    done = subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(done.returncode)
    return done.stdout


def measure(name: str) -> dict[str, object]:
    """Run the commands of an experiment that have not been run."""
    experiment = EXPERIMENTS[name]
    for link, target in {"src": HERE / "src", **{file: HERE / file for file in DATA}}.items():
        if not target.exists():
            sys.exit(f"error: {target.name} is missing: put the course's data files into {HERE.name}/.")
        if not (RUNS / link).exists():
            (RUNS / link).symlink_to(target)
    printed = ""
    for command in experiment.commands(name):
        words = shlex.split(command)
        params = RUNS / words[words.index("--writing_params_path") + 1] if "--writing_params_path" in words else None
        if params is None or not params.is_file():
            printed += output(command, RUNS)
    return summary(name, experiment, printed)


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
        **traced(RUNS / f"{name}.dev.predictions.trace.tsv"),
        **costs,
    }


def traced(path: Path) -> dict[str, object]:
    """How many answers of each origin there are, how many of them are right, and the first few right and wrong ones."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    examples = {
        kind: [row for row in rows if (row["answer"] == row["expected"]) == right][:EXAMPLES]
        for kind, right in (("right", True), ("wrong", False))
    }
    kinds: dict[str, list[bool]] = {}
    for row in rows:
        kinds.setdefault(row["kind"], []).append(row["answer"] == row["expected"])
    counts = {kind.replace(" ", "_"): {"answers": len(right), "right": sum(right)} for kind, right in kinds.items()}
    return {"trace": counts, "examples": examples}


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
    known = [*EXPERIMENTS, *OUTPUTS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(known))
    parser.add_argument("--list", action="store_true", help="show the commands and run nothing")
    args = parser.parse_args()
    for name in args.names:
        if name not in known:
            parser.error(f"unknown experiment {name!r}: choose from {', '.join(known)}")
    for name in args.names or known:
        if not args.list:
            run(name)
        elif name in EXPERIMENTS:
            print(f"{name}: {EXPERIMENTS[name].about}", *EXPERIMENTS[name].commands(name), sep="\n  ")
        else:
            print(f"{name}:", OUTPUTS[name], sep="\n  ")


if __name__ == "__main__":
    main()
