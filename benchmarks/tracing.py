"""A causal trace of many people, all layers and positions batched: seconds, and people per second.

The model has the shape of the demo's GPT (3 layers, 4 heads, width 128, words) with random weights, since a trace costs
the same whatever the model knows; or `--run` takes a fine-tuned run with its own test questions. The peer is the plain
loop: one restoration per forward pass, on a few people, scaled up. The limit for 500 people is 180 seconds on 2 cores.

    python benchmarks/tracing.py
    python benchmarks/tracing.py --run runs/asked --people 100
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import torch

from attnlab.base.machine import facts
from attnlab.data.question_template import QuestionTemplate
from attnlab.data.questions import Questions
from attnlab.data.tokenizers.vocabulary import Vocabulary
from attnlab.data.world.world import World, WorldSpec
from attnlab.interpret import tracing
from attnlab.interpret.asked_people import AskedRun, find_people, open_asked
from attnlab.interpret.recorder import record
from attnlab.models.gpt import GPT, preset

ONE_BY_ONE = 4  # people of the slow side
PEOPLE, LIMIT = 500, 180.0


def demo_model(people: int) -> AskedRun:
    """The shape of `attnlab demo`, asked about so many people of a world."""
    world = World(WorldSpec(people=people, places=60, train=0.0, dev=0.0, test=1.0))
    pairs = world.questions("test")
    questions = Questions([p.question for p in pairs], [p.answer for p in pairs], list(range(1, len(pairs) + 1)))
    vocabulary = Vocabulary.build([*world.documents(), *questions.questions], level="words")
    torch.manual_seed(0)
    model = GPT(preset("modern", len(vocabulary), layers=3, heads=4, width=128, context=64, zero_init=False)).eval()
    asked = find_people(vocabulary, questions, QuestionTemplate.of(questions.questions), "a world", [])
    return AskedRun("random weights", model, vocabulary, asked, "a world")


@torch.no_grad()
def one_by_one(asked: AskedRun, options: tracing.TraceOptions) -> float:
    """Seconds per person of the plain loop: every person, draw, site, layer and position in its own pass."""
    start = time.perf_counter()
    for person in asked.people[:ONE_BY_ONE]:
        tokens = torch.tensor([person.tokens])
        flow = record(asked.model, tokens)
        noisy = flow["blocks.0.input"] + torch.randn_like(flow["blocks.0.input"])
        for _ in range(options.draws):
            for site in options.sites:
                names = [f"blocks.{n}.{tracing.SITES[site]}" for n in range(len(asked.model.blocks))]
                for name in ["blocks.0.input", *names] if site == "stream" else names:
                    for position in range(tokens.shape[1]):
                        mask = torch.arange(tokens.shape[1])[None] == position
                        tracing.logits_after(asked.model, noisy, 0, {name: (mask, flow[name])})
    return (time.perf_counter() - start) / ONE_BY_ONE


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, help="a run that answers questions, instead of random weights")
    parser.add_argument("--people", type=int, default=PEOPLE)
    parser.add_argument("--draws", type=int, default=tracing.TraceOptions().draws)
    parser.add_argument("--threads", type=int, default=facts.cores())
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    asked = open_asked(args.run, most=args.people) if args.run else demo_model(args.people)
    options = tracing.TraceOptions(draws=args.draws)
    tracing.trace(replace(asked, people=asked.people[:8]), options)  # warm-up
    start = time.perf_counter()
    tracing.trace(asked, options)
    seconds = time.perf_counter() - start
    slow = one_by_one(asked, options)
    results = {
        "people": len(asked.people),
        "draws": options.draws,
        "threads": args.threads,
        "seconds": seconds,
        "limit": LIMIT * len(asked.people) / PEOPLE,
        "people_per_second": len(asked.people) / seconds,
        "one_by_one_people_per_second": 1 / slow,
        "times_faster": slow * len(asked.people) / seconds,
    }
    print(f"causal trace of {asked.name}, all sites, layers and positions")
    for name, value in results.items():
        print(f"  {name:<30} {value:,.3f}" if isinstance(value, float) else f"  {name:<30} {value:,}")
    if args.json:
        args.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
