"""How fast a GPT is pretrained: the lab's and GPT-2 of transformers, on the same batches, in one process.

    python benchmarks/pretraining.py                     # under 4 minutes on two quiet cores
    python benchmarks/pretraining.py --quick             # seconds, at a toy size: only shows that it works

Corpus lines come from $ATTNLAB_DATA/birthplaces/wiki.txt, or else from the synthetic world; characters, spans cut
out. A round gives every side the same few whole steps (forward, loss, backward, clipping, fused AdamW), every
second round in reverse order; a ratio is the median of the rounds' ratios, with the lowest and the highest.

`useful` counts tokens, `positions` padding as well. The operations of a position follow from the shape and are the
same for all sides: 6 for each weight of a matrix product (2 forward, 4 backward) and 6·T·C per layer for attention,
the half of T × T that a causal model may see. The peak is the best of torch.mm in fp32, measured in every round.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlab.base.files import read_text
from attnlab.base.machine import facts
from attnlab.config import OptimizerSection
from attnlab.data.batching import IGNORE, Batch, Batches, BatchPlan
from attnlab.data.sequences import CorpusExamples, NextTokenExamples
from attnlab.data.tokenizers.vocabulary import Vocabulary
from attnlab.data.world.world import World, WorldSpec
from attnlab.models.gpt import GPT, GPTShape, preset
from attnlab.training.objectives import NextToken
from attnlab.training.optimizers import make_optimizer

LAB, PEER, MODERN, BY_LENGTH = "lab vanilla", "transformers gpt2", "lab modern", "lab vanilla, by length"
COMPILED = "lab vanilla, compiled"
WHAT = {
    LAB: "attnlab GPT, dropout 0.1, no mask needed; batches padded to the context",
    PEER: "GPT2LMHeadModel, dropouts 0.1, its default attention, attention_mask and labels as its collator gives them",
    MODERN: "attnlab GPT: rotary, RMSNorm, squared ReLU, QK-norm, no dropout; the same padded batches",
    BY_LENGTH: "as lab vanilla, on batches of similar length, padded to their longest only",
    COMPILED: "as lab vanilla, through torch.compile",
}
"""All sides: fp32, gradients clipped to norm 1, torch.optim.AdamW(fused=True)."""

CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
"""CPU seconds do not count waiting for a busy core; with several threads they count those that wait for others."""


@dataclass
class Side:
    """One of the compared models: a whole training step, its batches, and its measurements."""

    name: str
    loss: Callable[[Batch], Tensor]
    learning: list[nn.Parameter]
    optimizer: torch.optim.Optimizer
    batches: Sequence[Batch]
    wall: list[float] = field(default_factory=list)
    """Seconds per position, one for each round."""
    cpu: list[float] = field(default_factory=list)
    useful: list[float] = field(default_factory=list)
    """The share of tokens among the positions of the round."""

    def step(self, batch: Batch) -> None:
        self.optimizer.zero_grad()
        self.loss(batch).backward()
        nn.utils.clip_grad_norm_(self.learning, 1.0)
        self.optimizer.step()

    def round(self, n: int, steps: int) -> None:
        """The next batches of this side, the same for all sides that share a plan."""
        batches = [self.batches[k % len(self.batches)] for k in range(n * steps, (n + 1) * steps)]
        positions, wall, cpu = sum(batch.positions for batch in batches), time.perf_counter(), time.process_time()
        for batch in batches:
            self.step(batch)
        self.wall.append((time.perf_counter() - wall) / positions)
        self.cpu.append((time.process_time() - cpu) / positions)
        self.useful.append(sum(batch.tokens for batch in batches) / positions)

    def useful_seconds(self, clock: str) -> list[float]:
        """Seconds per useful token."""
        return [seconds / share for seconds, share in zip(getattr(self, clock), self.useful, strict=True)]


def documents() -> tuple[list[str], str]:
    root = os.environ.get("ATTNLAB_DATA")
    file = Path(root or "", "birthplaces", "wiki.txt")
    if root and file.is_file():
        return [line for line in read_text(file).splitlines() if line.strip()], "birthplaces/wiki.txt"
    return World(WorldSpec(people=600, places=100)).corpus(), "the synthetic world"


def batches_of(texts: Sequence[str], context: int, size: int, count: int) -> tuple[list[Batch], list[Batch], int]:
    """The same documents in random batches padded to the context and in batches by length; the vocabulary's size."""
    vocabulary = Vocabulary.build(texts, "characters")
    corpus = CorpusExamples([vocabulary.encode(text) for text in texts], vocabulary, context, ["span"], seed=0)
    examples = NextTokenExamples([corpus], vocabulary.pad)
    padded, by_length = (
        [batches.collate(indices, 0) for indices in batches.plan.epoch(0) if len(indices) == size][:count]
        for batches in (Batches(examples, BatchPlan(examples.lengths, size, by_length=by)) for by in (False, True))
    )
    return [filled(batch, context, vocabulary.pad) for batch in padded], by_length, len(vocabulary)


def filled(batch: Batch, context: int, pad: int) -> Batch:
    """Padded to the context, as the course's data set does."""
    values = {"tokens": pad, "targets": IGNORE, "padding": False, "wanted": False}
    inputs = {
        name: F.pad(tensor, (0, context - tensor.shape[1]), value=values[name]) for name, tensor in batch.inputs.items()
    }
    return replace(batch, inputs=inputs, positions=inputs["tokens"].numel())


def lab_side(name: str, shape: GPTShape, batches: Sequence[Batch], compiled: bool = False) -> Side:
    torch.manual_seed(0)
    model: nn.Module = GPT(shape).train()
    learning, optimizer = list(model.parameters()), make_optimizer(model, OptimizerSection())
    if compiled:
        model.compile(dynamic=True)
    return Side(name, lambda batch: NextToken()(model, batch), learning, optimizer, batches)


def peer_side(shape: GPTShape, batches: Sequence[Batch]) -> Side:
    """GPT-2 with new weights; it shifts the labels itself, so its targets are shifted back by one."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=shape.vocabulary,
        n_positions=shape.context,
        n_embd=shape.width,
        n_layer=shape.layers,
        n_head=shape.heads,
        resid_pdrop=shape.dropout,
        embd_pdrop=shape.dropout,
        attn_pdrop=shape.dropout,
        bos_token_id=None,
        eos_token_id=None,
        use_cache=False,
    )
    torch.manual_seed(0)
    model: Any = GPT2LMHeadModel(config).train()

    def loss(batch: Batch) -> Tensor:
        labels = F.pad(batch.inputs["targets"], (1, 0), value=IGNORE)[:, :-1]
        loss: Tensor = model(
            input_ids=batch.inputs["tokens"], attention_mask=batch.inputs["padding"].long(), labels=labels
        ).loss
        return loss

    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    return Side(PEER, loss, list(model.parameters()), optimizer, batches)


def operations(shape: GPTShape) -> float:
    """Floating-point operations per position of a training step."""
    products = 12 * shape.layers * shape.width**2 + shape.width * shape.vocabulary
    return 6.0 * (products + shape.layers * shape.context * shape.width)


def peak(sizes: Sequence[int]) -> dict[str, float]:
    """Operations per second of square matrix products in fp32, the best of all, by either clock."""
    best = dict.fromkeys(CLOCKS, 0.0)
    for size in sizes:
        matrix = torch.randn(size, size)
        matrix @ matrix
        for _ in range(3):
            starts = {name: clock() for name, clock in CLOCKS.items()}
            matrix @ matrix
            for name, clock in CLOCKS.items():
                best[name] = max(best[name], 2 * size**3 / (clock() - starts[name]))
    return best


def measure(sides: Sequence[Side], rounds: int, steps: int, sizes: Sequence[int]) -> dict[str, float]:
    """Fill the sides with rounds; returns the peak."""
    for side in sides:
        _say(f"{side.name}: warming up")
        for batch in side.batches[:2]:
            side.step(batch)
    best = dict.fromkeys(CLOCKS, 0.0)
    for n in range(rounds):
        _say(f"round {n + 1} of {rounds}")
        best = {name: max(best[name], value) for name, value in peak(sizes).items()}
        for side in sides if n % 2 == 0 else reversed(sides):
            side.round(n, steps)
    return best


def spread(above: Sequence[float], below: Sequence[float]) -> dict[str, float]:
    """The ratio of rounds that followed each other."""
    ratios = [a / b for a, b in zip(above, below, strict=True)]
    return {"ratio": statistics.median(ratios), "low": min(ratios), "high": max(ratios)}


PAIRS = ((LAB, PEER), (MODERN, PEER), (BY_LENGTH, LAB), (BY_LENGTH, PEER), (COMPILED, LAB))


def summary(
    sides: Sequence[Side], best: dict[str, float], flops: float, pairs: Sequence[tuple[str, str]] = PAIRS
) -> dict[str, Any]:
    """The speed of each side, and the ratios of useful tokens per second."""
    rows = [
        {
            "side": side.name,
            "useful_per_second": 1 / statistics.median(side.useful_seconds("wall")),
            "positions_per_second": 1 / statistics.median(side.wall),
            "padding": 1 - statistics.mean(side.useful),
            "gflops": flops / statistics.median(side.wall) / 1e9,
            "share_of_peak": {clock: flops / statistics.median(getattr(side, clock)) / best[clock] for clock in CLOCKS},
        }
        for side in sides
    ]
    named = {side.name: side for side in sides}
    ratios = [
        {
            "of": a,
            "to": b,
            **{clock: spread(named[b].useful_seconds(clock), named[a].useful_seconds(clock)) for clock in CLOCKS},
        }
        for a, b in pairs
        if a in named and b in named
    ]
    return {"peak_gflops": best["wall"] / 1e9, "mflop_per_position": flops / 1e6, "sides": rows, "ratios": ratios}


def tables(results: dict[str, Any]) -> str:
    """Two tables in Markdown."""
    lines = [
        "| | useful tokens per second | positions per second | padding | GFLOP/s | share of peak | by CPU time |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {row['side']} | {row['useful_per_second']:,.0f} | {row['positions_per_second']:,.0f} | "
        f"{row['padding']:.1%} | {row['gflops']:.1f} | "
        f"{row['share_of_peak']['wall']:.0%} | {row['share_of_peak']['cpu']:.0%} |"
        for row in results["sides"]
    ]
    lines += ["", "| useful tokens per second | wall clock | by CPU time |", "| --- | ---: | ---: |"]
    lines += [
        f"| {row['of']} / {row['to']} | "
        + " | ".join(
            f"{row[clock]['ratio']:.2f} ({row[clock]['low']:.2f} to {row[clock]['high']:.2f})" for clock in CLOCKS
        )
        + " |"
        for row in results["ratios"]
    ]
    return "\n".join(lines) + "\n"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=3, help="steps of each side in a round")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--threads", type=int, default=facts.cores())
    parser.add_argument("--compile", action="store_true", help="also the lab's vanilla through torch.compile")
    parser.add_argument("--quick", action="store_true", help="a toy size, for tests")
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    args = parser.parse_args(arguments)
    if min(args.rounds, args.steps, args.batch_size, args.threads) < 1:
        parser.error("--rounds, --steps, --batch-size and --threads must be at least 1")
    torch.set_num_threads(args.threads)

    size = {"layers": 1, "heads": 2, "width": 16, "context": 32} if args.quick else {}
    texts, source = documents()
    padded, by_length, vocabulary = batches_of(
        texts, size.get("context", 128), args.batch_size, args.rounds * args.steps
    )
    vanilla = preset("vanilla", vocabulary, **size)
    sides = [
        lab_side(LAB, vanilla, padded),
        peer_side(vanilla, padded),
        lab_side(MODERN, preset("modern", vocabulary, **size), padded),
        lab_side(BY_LENGTH, vanilla, by_length),
    ]
    if args.compile:
        sides.append(lab_side(COMPILED, vanilla, padded, compiled=True))
    best = measure(sides, args.rounds, args.steps, (128,) if args.quick else (1024, 1536, 2048))
    results = {
        "source": source,
        "vocabulary": vocabulary,
        "batch": args.batch_size,
        "rounds": args.rounds,
        "steps_a_round": args.steps,
        "threads": args.threads,
        "cpu": facts.cpu_name(),
        "versions": facts.versions(),
        "what": {side.name: WHAT[side.name] for side in sides},
        **summary(sides, best, operations(vanilla)),
    }
    print(
        f"{source}, {vocabulary} characters, batches of {args.batch_size}, {args.threads} threads; "
        f"peak {results['peak_gflops']:.0f} GFLOP/s, {results['mflop_per_position']:.1f} MFLOP per position\n"
    )
    print(tables(results))
    for side in sides:
        print(f"{side.name}: {WHAT[side.name]}")
    if args.json:
        args.json.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
