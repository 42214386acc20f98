"""What the training loop costs, and what batching by length gains, measured side by side in one run.

1. The lab's loop against the same model in a bare ten-line PyTorch loop: examples per second. The lab's side does
   everything in a run except writing checkpoints (metrics to a file, finite checks, schedule).
2. Batches by length against random batches, on the sentences of SST-2: useful tokens per second.

    python benchmarks/engine.py                       # with SST-2 from $ATTNLAB_DATA/sst2/train.tsv

Sides alternate, so that a busy moment of the machine hits both; medians are reported.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from attnlab.base.machine import facts
from attnlab.base.randomness import seed_everything
from attnlab.config import MachineSection, OptimizerSection, ScheduleSection, TrainingSection
from attnlab.data.batching import IGNORE, Batches, BatchPlan
from attnlab.data.encoded import text_examples
from attnlab.data.sequences import CorpusExamples, NextTokenExamples
from attnlab.data.tasks.catalog import load_sentiment
from attnlab.data.tasks.labelled import LabelledText
from attnlab.data.tokenizers.vocabulary import Vocabulary
from attnlab.data.world.world import World, WorldSpec
from attnlab.models.gpt import GPT, preset
from attnlab.training.callbacks import Callback, MetricsFile, StepReport, TrainState
from attnlab.training.loop import Environment, Learner, Plan, Trainer
from attnlab.training.objectives import Classification, NextToken
from attnlab.training.optimizers import Schedule, make_optimizer
from attnlab.training.setup import make_accelerator

OPTIMIZER = OptimizerSection(name="adamw", lr=1e-3)


class Clock(Callback):
    """The times at which steps ended."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def on_step(self, state: TrainState, report: StepReport) -> None:
        self.times.append(time.perf_counter())


def world_batches(size: int) -> tuple[Batches, int]:
    """Documents of a synthetic world in words, all cut to one length, so that every step does the same work."""
    texts = World(WorldSpec(people=400, places=100)).corpus()
    vocabulary = Vocabulary.build(texts, "words")
    documents = [vocabulary.encode(text)[:14] for text in texts]
    documents = [document for document in documents if len(document) == 14]
    examples = NextTokenExamples([CorpusExamples(documents, vocabulary, 64, ["causal"], seed=0)], vocabulary.pad)
    return Batches(examples, BatchPlan(examples.lengths, size)), len(vocabulary)


def lab_loop(model: nn.Module, batches: Batches, steps: int, folder: Path, threads: int) -> list[float]:
    clock = Clock()
    accelerator = make_accelerator(MachineSection(device="cpu", precision="fp32", threads=threads))
    trainer = Trainer(
        Learner(model, NextToken(), batches),
        Plan(make_optimizer(model, OPTIMIZER), Schedule(ScheduleSection(), steps), TrainingSection(steps=steps)),
        Environment(accelerator, callbacks=[MetricsFile(folder / "metrics.jsonl"), clock]),
    )
    trainer.fit()
    return clock.times


def bare_loop(model: nn.Module, batches: Batches, steps: int) -> list[float]:
    """Ten lines, the same work on the same batches."""
    times: list[float] = []
    optimizer = make_optimizer(model, OPTIMIZER)
    for indices in batches.plan.epoch(0)[:steps]:
        inputs = batches.data.collate(indices, 0)
        optimizer.zero_grad()
        logits = model(inputs["tokens"])
        loss = F.cross_entropy(logits.flatten(0, 1), inputs["targets"].flatten(), ignore_index=IGNORE)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        times.append(time.perf_counter())
    return times


def seconds_per_step(times: list[float]) -> float:
    return statistics.median(b - a for a, b in pairwise(times))


def compare_loops(repeats: int, steps: int, size: int, width: int, threads: int) -> dict[str, float]:
    batches, vocabulary = world_batches(size)
    seed_everything(0)
    model = GPT(preset("vanilla", vocabulary, layers=4, heads=4, width=width, context=64, dropout=0.0))
    lab, bare = [], []
    with tempfile.TemporaryDirectory() as folder:
        bare_loop(model, batches, 5)  # warm-up
        for _ in range(repeats):
            bare.append(seconds_per_step(bare_loop(model, batches, steps)))
            lab.append(seconds_per_step(lab_loop(model, batches, steps, Path(folder), threads)))
    ratios = [b / a for a, b in zip(lab, bare, strict=True)]
    return {
        "parameters": model.parameter_count(),
        "bare_examples_per_second": size / statistics.median(bare),
        "lab_examples_per_second": size / statistics.median(lab),
        "ratio": statistics.median(ratios),
        "ratio_low": min(ratios),
        "ratio_high": max(ratios),
    }


def sentences(limit: int) -> tuple[list[str], str]:
    """The first sentences of SST-2's training file, or the embedded ones if that file is missing."""
    root = os.environ.get("ATTNLAB_DATA")
    file = Path(root or "", "sst2", "train.tsv")
    if root and file.is_file():
        lines = file.read_text(encoding="utf-8").splitlines()[1:]
        return [line.split("\t")[0] for line in lines[:limit]], "SST-2 train"
    return [example.text for example in load_sentiment()["train"][:limit]], "the embedded sentiment set"


def useful_rate(model: nn.Module, batches: Batches) -> tuple[float, float]:
    """Real tokens per second of forward, backward and step over one epoch, and the share of padding."""
    objective, optimizer = Classification(), make_optimizer(model, OptimizerSection(lr=1e-5))
    tokens = positions = 0
    start = time.perf_counter()
    for indices in batches.plan.epoch(0):
        batch = batches.collate(indices, 0)
        optimizer.zero_grad()
        objective(model, batch).backward()
        optimizer.step()
        tokens, positions = tokens + batch.tokens, positions + batch.positions
    return tokens / (time.perf_counter() - start), 1 - tokens / positions


def compare_batching(repeats: int, limit: int, size: int) -> dict[str, float | str]:
    from attnlab.models.pretrained.load import load_classifier

    seed_everything(0)
    texts, source = sentences(limit)
    loaded = load_classifier("minilm", ("negative", "positive"))
    model = loaded.model
    examples = text_examples([LabelledText(text, 0) for text in texts], loaded.tokenizer, 128)
    random, sorted_ = (Batches(examples, BatchPlan(examples.lengths, size, by_length=b)) for b in (False, True))
    rates: dict[str, list[float]] = {"random": [], "by length": []}
    padding: dict[str, float] = {}
    for _ in range(repeats):
        for name, batches in (("random", random), ("by length", sorted_)):
            rate, padding[name] = useful_rate(model.train(), batches)
            rates[name].append(rate)
    ratios = [b / a for a, b in zip(rates["random"], rates["by length"], strict=True)]
    return {
        "source": source,
        "sentences": len(texts),
        "random_tokens_per_second": statistics.median(rates["random"]),
        "by_length_tokens_per_second": statistics.median(rates["by length"]),
        "random_padding": padding["random"],
        "by_length_padding": padding["by length"],
        "ratio": statistics.median(ratios),
        "ratio_low": min(ratios),
        "ratio_high": max(ratios),
    }


def show(title: str, values: dict[str, float | str] | dict[str, float]) -> None:
    print(title)
    for name, value in values.items():
        print(f"  {name:<30} {value:,.3f}" if isinstance(value, float) else f"  {name:<30} {value}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7, help="alternations of the two sides")
    parser.add_argument("--steps", type=int, default=40, help="steps per side and repeat")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--width", type=int, default=128, help="of the GPT in the first comparison")
    parser.add_argument("--sentences", type=int, default=512, help="of the second comparison")
    parser.add_argument("--threads", type=int, default=facts.cores())
    parser.add_argument("--only", choices=["loop", "batching"])
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    parts: dict[str, Callable[[], dict[str, float] | dict[str, float | str]]] = {
        "loop": lambda: compare_loops(args.repeats, args.steps, args.batch_size, args.width, args.threads),
        "batching": lambda: compare_batching(max(1, args.repeats // 2), args.sentences, args.batch_size),
    }
    titles = {
        "loop": "the lab's loop and a bare PyTorch loop",
        "batching": "batches by length and random batches, MiniLM-L6",
    }
    results = {}
    for name, measure in parts.items():
        if args.only in (None, name):
            results[name] = measure()
            show(titles[name], results[name])
    if args.json:
        args.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
