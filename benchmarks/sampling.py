"""Sampling from one prompt, token by token: the lab's GPT and GPT-2 of transformers by `generate`, both with a cache.

    python benchmarks/sampling.py                  # 1,000 tokens, 4 layers, 8 heads, width 256
    python benchmarks/sampling.py --layers 12 --width 768 --heads 12 --length 200

New weights of one shape on both sides, learned positions, a vocabulary of characters; drawn at temperature 1, without
filters. The peer is `generate(do_sample=True, use_cache=True)`; `greedy` takes the most probable token on both sides.
Sides alternate, so that a busy moment of the machine hits both; medians are printed with their ratio, and the lowest
and highest ratio of a round.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from attnlab.base.machine import facts
from attnlab.data.tokenizers.vocabulary import Vocabulary
from attnlab.models.generate import generate
from attnlab.models.gpt import GPT, GPTShape, preset
from attnlab.models.sampling import sample

CHARACTERS = [chr(code) for code in range(32, 127)]


def lab_sides(shape: GPTShape, length: int) -> dict[str, Callable[[], int]]:
    """How many tokens each way of the lab made."""
    torch.manual_seed(0)
    model, vocabulary = GPT(shape).eval(), Vocabulary.build(["".join(CHARACTERS)])
    prompt = vocabulary.encode("T")
    return {
        "sampled": lambda: len(sample(model, vocabulary, "T", length)[0].tokens),
        "greedy": lambda: len(generate(model, [prompt], length)[0].tokens),
    }


def peer_sides(shape: GPTShape, length: int) -> dict[str, Callable[[], int]]:
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    model: Any = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=shape.vocabulary,
            n_positions=shape.context,
            n_embd=shape.width,
            n_layer=shape.layers,
            n_head=shape.heads,
            bos_token_id=None,
            eos_token_id=None,
        )
    ).eval()
    prompt = torch.tensor([[3]])

    def made(draw: bool) -> int:
        tokens = model.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=length,
            do_sample=draw,
            top_k=0 if draw else None,
            use_cache=True,
            pad_token_id=0,
        )
        return int(tokens.shape[1]) - 1

    return {"sampled": lambda: made(True), "greedy": lambda: made(False)}


def seconds(side: Callable[[], int], length: int) -> float:
    start = time.perf_counter()
    made = side()
    assert made == length, f"expected {length} tokens, got {made}"
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", type=int, default=1000, help="tokens to sample")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=facts.cores())
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    args = parser.parse_args()
    if min(args.length, args.repeats, args.threads) < 1:
        parser.error("--length, --repeats and --threads must be at least 1")
    torch.set_num_threads(args.threads)
    size = {"layers": args.layers, "heads": args.heads, "width": args.width, "context": args.length + 1}
    shape = preset("vanilla", len(CHARACTERS) + 3, **size)
    sides = {"lab": lab_sides(shape, args.length), "transformers": peer_sides(shape, args.length)}
    for ways in sides.values():  # warm up
        for run in ways.values():
            run()
    times: dict[str, dict[str, list[float]]] = {way: {name: [] for name in sides} for way in sides["lab"]}
    for n in range(args.repeats):
        for way, measured in times.items():
            for side in list(sides) if n % 2 == 0 else reversed(sides):
                measured[side].append(seconds(sides[side][way], args.length))
    rows = []
    for way, measured in times.items():
        ratios = [peer / lab for lab, peer in zip(measured["lab"], measured["transformers"], strict=True)]
        rows.append(
            {
                "way": way,
                **{name: args.length / statistics.median(values) for name, values in measured.items()},
                "ratio": statistics.median(ratios),
                "low": min(ratios),
                "high": max(ratios),
            }
        )
        print(
            f"{way}: lab {rows[-1]['lab']:,.0f} tokens per second, transformers {rows[-1]['transformers']:,.0f}, "
            f"ratio {rows[-1]['ratio']:.2f} ({rows[-1]['low']:.2f} to {rows[-1]['high']:.2f})"
        )
    if args.json:
        about = {"shape": size, "threads": args.threads, "cpu": facts.cpu_name(), "versions": facts.versions()}
        args.json.write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
