"""The attention maps of an encoder on one text, compared with its plain forward pass, the same model, in one run.

    python benchmarks/attention_maps.py                      # MiniLM, 64 tokens
    python benchmarks/attention_maps.py --model bert-tiny --tokens 32 --json maps.json

`maps` is what `attnlab inspect` does before drawing: the weights of every layer and head, with queries, keys and
values, from one pass; reading the text is timed on neither side. `eager` is transformers' own way to the weights,
`output_attentions` with explicit attention. Sides alternate, so that a busy moment of the machine hits all; medians are
printed with their ratio to the plain pass. The limit for `maps` is 2.
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from attnlab.base.machine import facts
from attnlab.interpret.maps import maps_of
from attnlab.interpret.subject import Reading, Subject, open_subject

PLAIN = "plain forward pass"
LIMIT = 2.0
WORDS = ("the", "old", "man", "went", "to", "sea", "and", "saw", "a", "ship", "with", "white", "sails")


def text_of(subject: Subject, tokens: int) -> Reading:
    """A text that the model reads as this many tokens."""
    text = ""
    for n in range(tokens):
        longer = f"{text} {WORDS[n % len(WORDS)]}"
        if len(subject.read(longer).tokens) > tokens:
            break
        text = longer
    return subject.read(text)


def sides(subject: Subject, reading: Reading) -> dict[str, Callable[[], object]]:
    model: Any = subject.model
    explicit = copy.deepcopy(model)
    explicit.set_attn_implementation("eager")
    return {
        PLAIN: lambda: model(**reading.inputs),
        "maps": lambda: maps_of(subject, reading),
        "eager": lambda: explicit(**reading.inputs, output_attentions=True),
    }


@torch.no_grad()
def measure(subject: Subject, reading: Reading, repeats: int) -> dict[str, float]:
    """The median of each side in seconds."""
    timed = sides(subject, reading)
    times: dict[str, list[float]] = {name: [] for name in timed}
    for repeat in range(repeats + 2):
        for name, run in timed.items():
            start = time.perf_counter()
            run()
            if repeat >= 2:  # the first two rounds warm up
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(taken) for name, taken in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=31)
    parser.add_argument("--threads", type=int, default=facts.cores())
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    subject = open_subject(options.model)
    reading = text_of(subject, options.tokens)
    medians = measure(subject, reading, options.repeats)
    print(f"{options.model}, {len(reading.tokens)} tokens, {options.threads} threads, median of {options.repeats}")
    for name, median in medians.items():
        limit = f"  (limit {LIMIT:.1f})" if name == "maps" else ""
        print(f"{name:<20} {median * 1000:8.2f} ms  {median / medians[PLAIN]:5.2f} x plain{limit}")
    if options.json:
        results = {"seconds": medians, "tokens": len(reading.tokens), "limit": LIMIT}
        options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
