"""How cost grows: a training step with the size of a GPT, and the lab's own work with runs, cells and megabytes.

1. step       seconds and peak memory of forward, backward and AdamW against width, depth, context and batch, each
              doubled from one shape; the fitted power beside that of the arithmetic in docs/scaling.md.
2. runs       `attnlab runs` on 10, 100, 1,000 run folders, and reading and reporting a comparison of as many cells.
3. corpus     reading a text of 10, 100, 1,000 MB for `attnlab language`: the first time, when its tokens are prepared,
              and again; peak memory of the process.

    python benchmarks/scaling.py                             # several minutes
    python benchmarks/scaling.py --only corpus --sizes 10,100

A power is fitted over the three largest sizes: 1 is linear. Nothing here should grow faster than its arithmetic.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ParamSpec

import torch
from startup import write_runs

from attnlab.attention.audit.cost import exponent
from attnlab.base.console import Verbosity, set_verbosity
from attnlab.base.machine import facts
from attnlab.config.yaml_file import read_yaml
from attnlab.data.batching import Batches, BatchPlan
from attnlab.data.text.stream import Blocks
from attnlab.experiments.compare import gather, view_of
from attnlab.experiments.compare_page import write_comparison_page
from attnlab.experiments.experiment import COMPARISON
from attnlab.models.gpt import GPT, GPTShape, preset
from attnlab.training.estimate import estimate
from attnlab.training.objectives import NextToken
from attnlab.training.scaling import Size

P = ParamSpec("P")

BASE = {"layers": 2, "width": 128, "context": 64}
AXES = {"width": (64, 128, 256, 512), "layers": (1, 2, 4, 8), "context": (32, 64, 128, 256), "batch": (4, 8, 16, 32)}
COUNTS, MEGABYTES = (10, 100, 1000), (10, 100, 1000)
READ = """
import json, resource, sys, time
from pathlib import Path
from attnlab.data.text.stream import read_stream
start = time.perf_counter()
stream = read_stream(Path(sys.argv[1]), sys.argv[2], 0.1, 2)
seconds, peak = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"seconds": seconds, "peak_mb": peak / 1024, "tokens": len(stream.train) + len(stream.dev)}))
"""


def step_costs(shape: GPTShape, batch: int, repeats: int) -> dict[str, float]:
    """Seconds and bytes of a training step; the arithmetic's operations."""
    torch.manual_seed(0)
    model = GPT(shape)
    blocks = Blocks.cut(torch.randint(3, shape.vocabulary, (batch * shape.context + 1,)), shape.context)
    batches = Batches(blocks, BatchPlan(blocks.lengths, batch))
    costs = [estimate(model, NextToken(), batches, 1, "cpu") for _ in range(repeats)]
    size = Size("", shape.vocabulary, shape.layers, shape.width, shape.context, shape.tied)
    return {
        "seconds": statistics.median(cost.seconds for cost in costs),
        "mb": costs[0].bytes / 2**20,
        "operations": size.flops * batch * shape.context,
    }


def steps(repeats: int) -> dict[str, Any]:
    results: dict[str, Any] = {}
    for axis, values in AXES.items():
        costs = []
        for value in values:
            size = BASE if axis == "batch" else {**BASE, axis: value}
            shape = preset("vanilla", 256, **size, heads=4, dropout=0.0)
            costs.append(step_costs(shape, value if axis == "batch" else 8, repeats))
        results[axis] = {
            "values": list(values),
            **{name: [cost[name] for cost in costs] for name in costs[0]},
            **{f"{name}_power": exponent(values, [cost[name] for cost in costs]) for name in costs[0]},
        }
        row = results[axis]
        print(
            f"{axis:>8} {', '.join(map(str, values))}: {', '.join(f'{s * 1000:.0f}' for s in row['seconds'])} ms, "
            f"power {row['seconds_power']:.2f} (arithmetic {row['operations_power']:.2f}); "
            f"{', '.join(f'{mb:.0f}' for mb in row['mb'])} MB, power {row['mb_power']:.2f}"
        )
    return results


def listings(counts: Sequence[int]) -> dict[str, Any]:
    results: dict[str, Any] = {"runs": [], "gather": [], "report": []}
    command = [sys.executable, "-m", "attnlab"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        small = folder / "small"
        flags = "--attention vanilla --seeds 2 --steps 2 --layers 1 --heads 2 --width 16 --context 16"
        text = folder / "text.txt"
        text.write_text("to be or not to be, that is the question\n" * 100, encoding="utf-8")
        made = [*command, "compare", "--corpus", str(text), *flags.split(), "--device", "cpu", "--run", str(small)]
        subprocess.run(made, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for count in counts:
            runs = folder / f"runs-{count}"
            write_runs(runs, count)
            results["runs"].append(
                timed(subprocess.run, [*command, "runs", "--in", str(runs)], capture_output=True, check=True)
            )
            large = folder / f"cells-{count}"
            grow(small, large, count)
            config = COMPARISON.saved(large)
            results["gather"].append(timed(gather, large, config))
            found = gather(large, config)
            assert sum(len(row.runs) for row in found.rows) == count
            results["report"].append(timed(write_comparison_page, large, found, view_of(found.job)))
            shutil.rmtree(runs)
            shutil.rmtree(large)
    for name in ("runs", "gather", "report"):
        results[f"{name}_power"] = exponent(counts, results[name])
        shown = ", ".join(f"{value:.2f}" for value in results[name])
        print(f"{name:>8} {', '.join(map(str, counts))}: {shown} s, power {results[f'{name}_power']:.2f}")
    return results


def grow(small: Path, large: Path, count: int) -> None:
    """A comparison whose only cell is there with `count` seeds."""
    shutil.copytree(small, large)
    [cell] = (large / "cells").iterdir()
    for seed in range(2, count):
        shutil.copytree(cell / "seed-1", cell / f"seed-{seed}")
    config = large / "config.yaml"
    content, _ = read_yaml(config)
    content["compare"]["seeds"] = count
    config.write_text(json.dumps(content), encoding="utf-8")


def timed(work: Callable[P, object], *values: P.args, **more: P.kwargs) -> float:
    start = time.perf_counter()
    work(*values, **more)
    return time.perf_counter() - start


def corpora(sizes: Sequence[int]) -> dict[str, Any]:
    results: dict[str, Any] = {}
    words = [f"word{n}" for n in range(5000)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = {**os.environ, "ATTNLAB_CACHE": str(folder / "cache")}
        for level in ("characters", "words"):
            rows = []
            for size in sizes:
                file = folder / f"{size}.txt"
                write_corpus(file, words, size * 10**6)
                command = [sys.executable, "-c", READ, str(file), level]
                first, again = (
                    json.loads(subprocess.run(command, check=True, capture_output=True, env=environment).stdout)
                    for _ in range(2)
                )
                rows.append({"mb": size, "first": first, "again": again})
                print(
                    f"{level:>10}, {size:,} MB: {first['seconds']:.1f} s, {first['peak_mb']:.0f} MB of memory; again "
                    f"{again['seconds']:.1f} s, {again['peak_mb']:.0f} MB"
                )
                file.unlink()
            results[level] = {
                "rows": rows,
                "power": exponent(sizes, [row["first"]["seconds"] for row in rows]) if len(sizes) > 1 else None,
            }
    return results


def write_corpus(file: Path, words: Sequence[str], size: int) -> None:
    generator = torch.Generator().manual_seed(0)
    line = " ".join(words[n] for n in torch.randint(len(words), (150_000,), generator=generator).tolist()) + "\n"
    block = line.encode()
    with file.open("wb") as out:
        for _ in range(size // len(block)):
            out.write(block)
        out.write(block[: size % len(block)])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["step", "runs", "corpus"])
    parser.add_argument("--repeats", type=int, default=3, help="measurements of a step")
    parser.add_argument("--counts", default=",".join(map(str, COUNTS)), help="of runs and cells")
    parser.add_argument("--sizes", default=",".join(map(str, MEGABYTES)), help="of texts, in MB")
    parser.add_argument("--threads", type=int, default=facts.cores())
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    args = parser.parse_args(arguments)
    counts, sizes = ([int(part) for part in text.split(",")] for text in (args.counts, args.sizes))
    torch.set_num_threads(args.threads)
    set_verbosity(Verbosity.QUIET)
    results: dict[str, Any] = {"base": BASE, "threads": args.threads, "cpu": facts.cpu_name()}
    if args.only in (None, "step"):
        results["step"] = steps(args.repeats)
    if args.only in (None, "runs"):
        results["runs"] = {"counts": counts, **listings(counts)}
    if args.only in (None, "corpus"):
        results["corpus"] = corpora(sizes)
    if args.json:
        args.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
