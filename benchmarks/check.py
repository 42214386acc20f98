"""How long the check of one file takes, beside `python -c "import torch"`.

    python benchmarks/check.py
    python benchmarks/check.py --repeats 15 --json check.json

The file is right in every function, so every check is made. Each side is a new process; they alternate, so that a busy
moment of the machine hits both; medians of the wall time are printed, with their ratio. The limit: twice the import.
A judge that is warm already, as for a whole class, is measured too, per file.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from attnlab.check.runner import Judge

PEER = 'python -c "import torch"'
CHECK = "attnlab check right.py"
WARM = "one more file, warm judge"
LIMIT = 2.0
FUNCTIONS = """
import math
import torch
from torch import nn
def init_qkv_proj(n): return nn.Linear(n, n), nn.Linear(n, n), nn.Linear(n, n)
def pairwise_similarities(Q, K): return Q @ K.mT
def attn_scaled(A, n_embd, n_heads): return A / math.sqrt(n_embd / n_heads)
def attn_softmax(A): return A.softmax(-1)
def compute_outputs(A, V): return A @ V
def make_causal_mask(n_tok): return torch.ones(n_tok, n_tok, dtype=torch.bool).tril()
def apply_causal_mask(mask, A): return A.masked_fill(mask == 0, -math.inf)
def split_heads(Q, n_heads): return Q.unflatten(-1, (n_heads, -1)).transpose(1, 2)
def split_heads_qkv(Q, K, V, n): return split_heads(Q, n), split_heads(K, n), split_heads(V, n)
def merge_heads(y): return y.transpose(1, 2).flatten(-2)
def self_attention(Q, K, V, n_heads=1, causal=True):
    n_tok, n_embd = Q.shape[-2:]
    Q, K, V = split_heads_qkv(Q, K, V, n_heads)
    A = attn_scaled(pairwise_similarities(Q, K), n_embd, n_heads)
    if causal:
        A = apply_causal_mask(make_causal_mask(n_tok), A)
    return merge_heads(compute_outputs(attn_softmax(A), V))
"""


def seconds(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, env=os.environ | {"NO_COLOR": "1"}, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def measure(repeats: int, path: Path) -> dict[str, list[float]]:
    """The wall times of each side in seconds."""
    sides = {PEER: [sys.executable, "-c", "import torch"], CHECK: [sys.executable, "-m", "attnlab", "check", str(path)]}
    times: dict[str, list[float]] = {name: [] for name in (*sides, WARM)}
    with Judge() as judge:
        for repeat in range(repeats + 1):
            for name, command in sides.items():
                taken = seconds(command)
                if repeat:  # the first round fills the file cache
                    times[name].append(taken)
            start = time.perf_counter()
            judge.check(path)
            if repeat:
                times[WARM].append(time.perf_counter() - start)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "right.py"
        path.write_text(FUNCTIONS, encoding="utf-8")
        times = measure(options.repeats, path)
    medians = {name: statistics.median(values) for name, values in times.items()}
    ratios = [check / peer for check, peer in zip(times[CHECK], times[PEER], strict=True)]
    print(f"median of {options.repeats} alternating runs")
    for name, median in medians.items():
        print(f"{name:<26} {median:6.3f} s  {median / medians[PEER]:5.2f} x {PEER}")
    print(f"ratio of the medians {medians[CHECK] / medians[PEER]:.2f}, median ratio {statistics.median(ratios):.2f}")
    print(f"limit {LIMIT:.2f}")
    if options.json:
        options.json.write_text(json.dumps({"seconds": times, "peer": PEER, "limit": LIMIT}, indent=1) + "\n")


if __name__ == "__main__":
    main()
