"""The GPT of the pretraining assignment beside the lab's, and its batches with and without padding, in one run.

Both models have the document's shape (4 layers, 8 heads, width 256, context 128) and take the same training steps
(forward, backward, AdamW) on the same examples: span corruption of $ATTNLAB_DATA/birthplaces/wiki.txt, or of a
synthetic world. The assignment's model is written out after the equations; the lab's is built of its parts.

    python benchmarks/knowledge.py                          # fp32, the course's settings
    python benchmarks/knowledge.py --precision bf16 --dropout 0

Sides alternate, so that a busy moment of the machine hits all; medians and their ratios are printed.
"""

from __future__ import annotations

import argparse
import importlib
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlab.base.machine import facts
from attnlab.data.batching import Batch, Batches, BatchPlan
from attnlab.data.world.world import World, WorldSpec
from attnlab.models.gpt import GPT, preset

SOURCE = Path(__file__).parents[1] / "assignments" / "self-attention-transformers-pretraining" / "src"
LAB_NAMES = {"vanilla": "vanilla", "synthesizer": "synthesizer-shared"}
Step = Callable[[], None]


def text_at_hand() -> tuple[str, str]:
    path = Path(os.environ.get("ATTNLAB_DATA", ""), "birthplaces", "wiki.txt")
    if path.is_file():
        return path.read_text(encoding="utf-8"), "wiki.txt"
    return "\n".join(World(WorldSpec(people=600)).corpus()), "a synthetic world"


def training_step(
    model: nn.Module, loss: Callable[[nn.Module, Batch], Tensor], pieces: list[Batch], precision: str
) -> Step:
    """One optimizer step on these pieces of a batch."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    total = sum(_targets(piece) for piece in pieces)

    def step() -> None:
        optimizer.zero_grad()
        for piece in pieces:
            with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
                value = loss(model, piece) * (_targets(piece) / total)
            value.backward()
        optimizer.step()

    return step


def _targets(piece: Batch) -> int:
    return int((piece.inputs["targets"] != 0).sum())


def padded(batch: Batch, length: int) -> Batch:
    """The batch with every example filled up to `length`, as the course has it."""
    missing = length - batch.inputs["tokens"].shape[1]
    inputs = {name: F.pad(tensor, (0, missing)) for name, tensor in batch.inputs.items()}
    return Batch(inputs, batch.indices, batch.tokens, batch.examples * length)


def own_loss(model: nn.Module, batch: Batch) -> Tensor:
    loss: Tensor = model(batch.inputs["tokens"], batch.inputs["targets"])[1]
    return loss


def lab_loss(model: nn.Module, batch: Batch) -> Tensor:
    logits = model(batch.inputs["tokens"])
    return F.cross_entropy(logits.flatten(0, 1), batch.inputs["targets"].flatten(), ignore_index=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variant", choices=LAB_NAMES, default="vanilla")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--pieces", type=int, default=8)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--processor-time", action="store_true", help="instead of the clock's: on a shared machine")
    args = parser.parse_args()
    sys.path.insert(0, str(SOURCE))
    dataset, model, trainer = (importlib.import_module(name) for name in ("dataset", "model", "trainer"))
    text, name = text_at_hand()
    corpus = dataset.CharCorruptionDataset(text, 128)
    examples = trainer.Examples(corpus, 0)
    plan = BatchPlan(examples.lengths, args.batch, by_length=False)
    batch = Batches(examples, plan).collate(plan.epoch(0)[0], 0)
    pieces = batch.pieces(args.pieces)
    torch.manual_seed(0)
    drop = args.dropout
    own = model.GPT(
        model.GPTConfig(
            corpus.vocab_size,
            128,
            embd_pdrop=drop,
            resid_pdrop=drop,
            attn_pdrop=drop,
            synthesizer=args.variant == "synthesizer",
        )
    )
    lab = GPT(preset("vanilla", corpus.vocab_size, attention=LAB_NAMES[args.variant], dropout=drop))
    sides = {
        "the assignment's model, padded": training_step(own, own_loss, [padded(batch, 127)], args.precision),
        "the lab's model, padded": training_step(lab, lab_loss, [padded(batch, 127)], args.precision),
        "the assignment's model, in pieces": training_step(own, own_loss, pieces, args.precision),
        "the lab's model, in pieces": training_step(lab, lab_loss, pieces, args.precision),
    }
    seconds: dict[str, list[float]] = {side: [] for side in sides}
    clock = time.process_time if args.processor_time else time.perf_counter
    for repeat in range(args.repeats + 1):
        for side, step in sides.items():
            start = clock()
            step()
            if repeat:  # the first round warms up
                seconds[side].append(clock() - start)
    print(f"{facts.cores()} cores, {args.precision}, dropout {drop}, {args.batch} examples of {name}, {args.variant}")
    print(f"positions: {args.batch * 127:,} padded, {sum(piece.positions for piece in pieces):,} in pieces")
    medians = {side: statistics.median(times) for side, times in seconds.items()}
    for side, median in medians.items():
        low, high = min(seconds[side]), max(seconds[side])
        print(f"{side:36} {median * 1000:8.0f} ms per step ({low * 1000:.0f} to {high * 1000:.0f})")
    first, second, third, fourth = medians.values()
    print(f"assignment / lab: {first / second:.2f} padded, {third / fourth:.2f} in pieces")
    print(f"padded / in pieces, the assignment's model: {first / third:.2f}")


if __name__ == "__main__":
    main()
