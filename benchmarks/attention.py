"""The cost of every kind of attention by sequence length, compared with torch's fused kernel and GPT-2 of transformers.

    python benchmarks/attention.py                                  # all of them, T = 128 to 4096, 10 minutes
    python benchmarks/attention.py --variants linear,mine.py --lengths 128,512,2048 --repeats 9

One causal layer on one sequence, in one process and one thread. A round runs every side once at every length,
every second one in reverse order, so that a slow phase of the machine affects all of them; medians are over rounds,
and a ratio is the median of the rounds' ratios. Times are CPU seconds: waiting for a busy core is not counted.

Written to --out: table.md, figure.png, results.json.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from attention_cells import Cell, Side, from_json, to_json
from attention_peers import PEERS
from attention_report import draw, exponents, tables
from torch import Tensor

from attnlab.attention import VARIANTS, MixerShape, build_mixer, find_variant
from attnlab.base.errors import UserError
from attnlab.base.machine import facts
from attnlab.base.trust import allow_named
from attnlab.training.estimate import measure_peak


@dataclass(frozen=True)
class Budget:
    """The limits of a cell."""

    seconds: float
    """For all its rounds together; a cell whose single pass would take longer is skipped."""
    megabytes: float


class Layer:
    """A side built for a length, with an input and a gradient for its output."""

    def __init__(self, side: Side, shape: MixerShape) -> None:
        torch.manual_seed(0)
        self.mixer = PEERS[side.name][0](shape) if side.peer else build_mixer(side.name, shape)
        self.x = torch.randn(1, shape.context, shape.width, requires_grad=True)  # (B, T, C)
        self.gradient = torch.randn(1, shape.context, shape.width)

    def run(self) -> tuple[float, float]:
        """CPU seconds of a forward and of a backward pass."""
        start = time.process_time()
        y: Tensor = self.mixer(self.x)
        middle = time.process_time()
        y.backward(self.gradient)
        end = time.process_time()
        self.mixer.zero_grad()
        self.x.grad = None
        return middle - start, end - middle


def scout(side: Side, lengths: Sequence[int], shape: MixerShape, budget: Budget) -> list[tuple[Cell, Layer | None]]:
    """Measure the memory of a side at each length, and skip lengths that would exceed the budget.

    The cost of a length is predicted from the previous one and the promised powers of T.
    """
    cells: list[tuple[Cell, Layer | None]] = []
    seconds = megabytes = 0.0
    for before, length in zip([lengths[0], *lengths], lengths, strict=False):
        growth = length / before
        seconds *= growth ** (2 if side.time is None else side.time)
        megabytes *= growth ** (2 if side.memory is None else side.memory)
        if seconds > budget.seconds:
            cells.append((Cell(side, length, f"would take about {seconds:.0f} s per pass"), None))
        elif megabytes > budget.megabytes:
            cells.append((Cell(side, length, f"would need about {megabytes / 1000:.1f} GB"), None))
        else:
            layer = Layer(side, replace(shape, context=length))
            with measure_peak("cpu") as peak:
                seconds = sum(layer.run())
            megabytes = peak.bytes / 1e6
            cells.append((Cell(side, length, megabytes=megabytes), layer))
    return cells


def measure(
    sides: Sequence[Side], lengths: Sequence[int], shape: MixerShape, repeats: int, budget: Budget
) -> list[Cell]:
    """Every side at every length, in rounds."""
    cells: list[tuple[Cell, Layer | None]] = []
    for side in sides:
        _say(f"{side.name}: memory")
        cells += scout(side, lengths, shape, budget)
    for cell, layer in cells:
        if layer is None:
            _say(f"{cell.side.name} at T = {cell.length}: skipped, {cell.skipped}")
    running = [(cell, layer) for cell, layer in cells if layer is not None]
    running.sort(key=lambda pair: pair[0].length)  # stable: at each length the sides follow each other
    for n in range(repeats):
        _say(f"round {n + 1} of {repeats}")
        for cell, layer in running if n % 2 == 0 else reversed(running):
            if n and sum(cell.samples) + cell.seconds > budget.seconds:
                continue
            forward, backward = layer.run()
            cell.forward.append(forward)
            cell.backward.append(backward)
    return [cell for cell, _ in cells]


def write(cells: Sequence[Cell], shape: MixerShape, repeats: int, folder: Path) -> None:
    """The table, the figure and all numbers."""
    folder.mkdir(parents=True, exist_ok=True)
    sides = to_json(cells)
    cells = from_json(sides)  # rounded as in the file, which gives the same table again
    text = tables(cells)
    print(text)
    (folder / "table.md").write_text(text, encoding="utf-8")
    draw(cells, folder / "figure.png")
    results = {
        "shape": {"batch": 1, "width": shape.width, "heads": shape.heads, "causal": True},
        "threads": 1,
        "clock": "CPU seconds of the process",
        "repeats": repeats,
        "cpu": facts.cpu_name(),
        "versions": facts.versions(),
        "exponents": exponents(cells),
        "sides": sides,
    }
    (folder / "results.json").write_text(json.dumps(results, ensure_ascii=False) + "\n", encoding="utf-8")
    _say(f"written: {folder}/table.md, figure.png, results.json")


def sides_of(names: str) -> list[Side]:
    """The peers, then the given variants."""
    chosen = list(VARIANTS) if names == "all" else names.split(",")
    allow_named(*chosen)
    peers = [Side(name, time=2, memory=memory, peer=True) for name, (_, memory) in PEERS.items()]
    return peers + [Side(v.name, v.time, v.memory) for v in map(find_variant, chosen)]


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _lengths(text: str) -> list[int]:
    lengths = sorted({int(part) for part in text.split(",")})
    if lengths[0] < 1:
        raise ValueError
    return lengths


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--lengths", type=_lengths, default="128,256,512,1024,2048,4096", help="tokens, separated by commas"
    )
    parser.add_argument("--variants", default="all", help="names or paths of .py files, separated by commas")
    parser.add_argument("--repeats", type=int, default=5, help="rounds")
    parser.add_argument("--seconds", type=float, default=15.0, help="budget of a cell, all rounds together")
    parser.add_argument("--megabytes", type=float, default=6000.0, help="budget of a cell's memory")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--out", type=Path, default=Path("runs/attention-cost"), help="folder to write to")
    return parser


def main() -> None:
    args = options().parse_args()
    torch.set_num_threads(1)
    try:
        shape = MixerShape(args.width, args.heads, context=max(args.lengths))
        if args.repeats < 1:
            raise UserError(f"--repeats: expected at least 1, got {args.repeats}.")
        budget = Budget(args.seconds, args.megabytes)
        cells = measure(sides_of(args.variants), args.lengths, shape, args.repeats, budget)
    except UserError as error:
        _say(f"error: {error}")
        sys.exit(error.exit_code)
    write(cells, shape, args.repeats, args.out)


if __name__ == "__main__":
    main()
