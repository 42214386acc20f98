"""The communication of two processes on one machine in a step, compared with the arithmetic.

    python benchmarks/processes.py --width 256 --rounds 8

Steps of a GPT under DDP alternate with steps whose gradients are not averaged (`no_sync`), in the same processes: the
difference is the communication. Also gloo's bytes per second for tensors of that size, and the predicted time.
"""

from __future__ import annotations

import argparse
import sys
import time

import torch
import torch.distributed as dist

from attnlab.base import console
from attnlab.data.batching import Batch
from attnlab.distributed.rank import find_rank
from attnlab.distributed.team import Processes, joined
from attnlab.launch.processes import run_processes
from attnlab.models.gpt import GPT, preset
from attnlab.training.objectives import NextToken
from attnlab.training.scaling import FP32, bytes_sent
from attnlab.training.step_loss import StepLoss


def measure(team: Processes, width: int, rounds: int) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = GPT(preset("modern", vocabulary=256, layers=4, width=width, heads=8, context=64))
    losses = team.spread(StepLoss(model, NextToken()))
    tokens = torch.randint(256, (2, 64))
    batch = Batch({"tokens": tokens, "targets": tokens}, (0, 1), tokens.numel(), tokens.numel())

    def step() -> float:
        model.zero_grad()
        team.total([0.0])  # start together
        start = time.perf_counter()
        losses(batch, [1.0]).backward()
        return time.perf_counter() - start

    averaged, without = [], []
    for _ in range(rounds):
        averaged.append(step())
        with team.adding_up(losses):
            without.append(step())
    parameters = sum(weight.numel() for weight in model.parameters())
    gradients, sums = torch.ones(parameters), []
    for _ in range(rounds):
        team.total([0.0])
        start = time.perf_counter()
        dist.all_reduce(gradients)
        sums.append(time.perf_counter() - start)
        gradients.fill_(1)
    sent = bytes_sent(parameters, team.count)
    console.result(
        f"{parameters:,} parameters, {FP32 * parameters / 1e6:.1f} MB of gradients, {sent / 1e6:.1f} MB sent"
    )
    console.result(f"one step {min(averaged):.3f} s, without averaging {min(without):.3f} s (best of {rounds})")
    console.result(f"gloo: {sent / min(sums) / 1e9:.2f} GB/s, so {min(sums):.3f} s if nothing overlaps")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=8)
    given = parser.parse_args()
    if find_rank() is None:
        sys.exit(run_processes(2, [sys.executable, *sys.argv], None))
    with joined("cpu") as team:
        measure(team, given.width, given.rounds)


if __name__ == "__main__":
    main()
