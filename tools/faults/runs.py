"""Tiny runs of every kind of training, and whether two of them are the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from attnlab.base.leftovers import is_leftover
from attnlab.runs import read_metrics, read_record, read_status
from attnlab.runs.listing import find_runs

TIMED = {"seconds", "examples_per_second", "tokens_per_second"}
MEASURED_TIME = {"tokens_per_second", "step_memory_mib"}
ALWAYS = "--device cpu --precision fp32 --threads 1 --seed 3"
WORLD = "--people 12 --places 4 --world-seed 1"
GPT = "--layers 1 --heads 2 --width 16 --context 48 --dropout 0.1 --tokens words"
COMMANDS = {
    "pretrain": f"""
        pretrain --objective span --preset vanilla --optimizer muon --batch-size 4 --accumulate 2 --dev-share 0.25
        --steps 12 --evaluate-every 5 --save-every 2 --log-every 3 --keep 1 {GPT} {WORLD} {ALWAYS}
    """,
    "knowledge": f"""
        knowledge --pretrain-steps 6 --finetune-steps 6 --pretrain-save-every 2 --finetune-save-every 2
        --pretrain-log-every 4 --finetune-evaluate-every 3 --pretrain-batch-size 4 {GPT} {WORLD} {ALWAYS}
    """,
    "masked": f"""
        pretrain --objective mlm --corpus CORPUS --vocabulary 60 --dev-share 0.2 --steps 8 --batch-size 4
        --evaluate-every 3 --save-every 3 --log-every 2 --layers 1 --heads 2 --width 16 --context 16 {ALWAYS}
    """,
    "language": f"""
        language --corpus CORPUS --steps 8 --save-every 3 --log-every 2 --batch-size 2
        --layers 1 --heads 2 --width 16 --context 16 {ALWAYS}
    """,
}


def commands(folder: Path) -> dict[str, list[str]]:
    """A command per kind, without its run folder; everything that has state takes part."""
    corpus = folder / "corpus.txt"
    corpus.write_text("".join(f"the {n} birds of {n % 7} see {n % 5} trees and sing\n" for n in range(60)))
    return {kind: words.replace("CORPUS", str(corpus)).split() for kind, words in COMMANDS.items()}


def difference(run: Path, whole: Path) -> str:
    """What of a run is not as in the one that was never stopped; empty if it is the same, to the bit."""
    for path in find_runs(whole):
        problem = _difference(run / path.relative_to(whole), path)
        if problem:
            return f"{path.relative_to(whole)}: {problem}"
    return ""


def _difference(run: Path, whole: Path) -> str:
    if read_status(run)["state"] != "finished":
        return f"its state is {read_status(run)['state']}"
    if not (run / "report.html").is_file():
        return "it has no report"
    if left := [path.name for folder in (run, run / "checkpoints") for path in _entries(folder) if is_leftover(path)]:
        return f"it has left-overs: {left}"
    for file in sorted([*whole.glob("checkpoints/*/*.safetensors"), *whole.glob("model/*")]):
        other = run / file.relative_to(whole)
        if not other.is_file() or other.read_bytes() != file.read_bytes():
            return f"{file.relative_to(whole)} differs"
    for name in ("vocabulary.json", "config.yaml"):
        if (whole / name).is_file() and _text(run / name, run) != _text(whole / name, whole):
            return f"{name} differs"
    if list(map(_untimed, read_metrics(run / "metrics.jsonl"))) != list(
        map(_untimed, read_metrics(whole / "metrics.jsonl"))
    ):
        return "metrics.jsonl differs"
    return "" if _results(run) == _results(whole) else "the results differ"


def _entries(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []


def _text(file: Path, run: Path) -> str:
    """The text of a file, without the name of the outermost run folder."""
    names = {str(run), str(run.parent)}
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    for name in sorted(names, key=len, reverse=True):
        text = text.replace(name, "RUN")
    return text


def _untimed(line: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in line.items() if name not in TIMED}


def _results(run: Path) -> str:
    results = {n: v for n, v in read_record(run).get("results", {}).items() if n not in MEASURED_TIME}
    return json.dumps(results, sort_keys=True).replace(str(run), "RUN")
