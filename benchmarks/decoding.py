"""All questions in batches with a cache, compared with one at a time without one, the same model, in one run.

The model has the shape of the document on pretraining (4 layers, 8 heads, width 256, context 128, characters), trained
for a few steps on questions so that it ends its answers; or `--run` takes a fine-tuned run. The slow side reads the
whole sequence again for every token and stops where the answer stops; with `--always 32` it makes 32 tokens for every
question and cuts them afterwards, as the document's evaluation does.

    python benchmarks/decoding.py                     # with the questions of $ATTNLAB_DATA/birthplaces
    python benchmarks/decoding.py --always 32 --repeats 1

Sides alternate, so that a busy moment of the machine hits both; medians are reported, and both sides' predictions are
compared.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Sequence
from itertools import chain, count, islice
from pathlib import Path

import torch

from attnlab.base.machine import facts
from attnlab.base.randomness import seed_everything
from attnlab.data.batching import Batches, BatchPlan
from attnlab.data.questions import Pair, QuestionExamples, read_pairs
from attnlab.data.sequences import NextTokenExamples
from attnlab.data.tokenizers.vocabulary import Vocabulary
from attnlab.data.world.world import World, WorldSpec
from attnlab.models.asking import LONGEST_ANSWER, answer, prompt_of
from attnlab.models.gpt import GPT, preset
from attnlab.models.loading import load_gpt
from attnlab.training.objectives import NextToken


def pairs_at_hand() -> tuple[list[Pair], list[Pair], str]:
    """Questions to train on and to ask: the real ones, or a world's if those are missing."""
    folder = Path(os.environ.get("ATTNLAB_DATA", ""), "birthplaces")
    if (folder / "birth_dev.tsv").is_file():
        train, dev = (read_pairs(folder / name) for name in ("birth_places_train.tsv", "birth_dev.tsv"))
        return train, dev, "birthplaces, dev"
    world = World(WorldSpec(people=2000, places=100, dev=0.25, test=0.25))
    return world.questions("train"), world.questions("dev"), "a synthetic world, dev"


def new_model(train: Sequence[Pair], asked: Sequence[Pair], steps: int) -> tuple[GPT, Vocabulary]:
    """The document's shape, trained just long enough to produce answers of the right form and length."""
    vocabulary = Vocabulary.build([text for pair in [*train, *asked] for text in pair])
    model = GPT(preset("vanilla", len(vocabulary), dropout=0.0))
    examples = NextTokenExamples([QuestionExamples(train, vocabulary, model.shape.context)], vocabulary.pad)
    batches = Batches(examples, BatchPlan(examples.lengths, 32))
    objective, optimizer = NextToken(), torch.optim.AdamW(model.parameters(), lr=1e-3)
    epochs = (batches.plan.epoch(epoch) for epoch in count())
    for step, indices in enumerate(islice(chain.from_iterable(epochs), steps)):
        optimizer.param_groups[0]["lr"] = 1e-3 * min(1.0, (step + 1) / 20)
        optimizer.zero_grad()
        objective(model, batches.collate(indices, 0)).backward()
        optimizer.step()
    return model.eval(), vocabulary


@torch.no_grad()
def one_at_a_time(model: GPT, vocabulary: Vocabulary, question: str, always: int) -> str:
    """Greedy, without a cache: every token costs a pass over all previous ones."""
    prompt = prompt_of(vocabulary, question)
    tokens = list(prompt)
    for _ in range(always or LONGEST_ANSWER):
        if model.longest is not None and len(tokens) > model.longest:
            break
        tokens.append(int(model(torch.tensor([tokens]))[0, -1].argmax()))
        if tokens[-1] == vocabulary.mask and not always:
            break
    made = tokens[len(prompt) :]
    return vocabulary.decode(made[: made.index(vocabulary.mask)] if vocabulary.mask in made else made)


def compare(
    model: GPT, vocabulary: Vocabulary, questions: Sequence[str], repeats: int, always: int
) -> dict[str, float]:
    answer(model, vocabulary, questions[:8])  # warm-up
    fast, slow, same = [], [], []
    for _ in range(repeats):
        start = time.perf_counter()
        together = [reply.text for reply in answer(model, vocabulary, questions)]
        between = time.perf_counter()
        apart = [one_at_a_time(model, vocabulary, question, always) for question in questions]
        fast.append(between - start)
        slow.append(time.perf_counter() - between)
        same.append(sum(a == b for a, b in zip(together, apart, strict=True)))
    ratios = [b / a for a, b in zip(fast, slow, strict=True)]
    characters = sum(map(len, together)) / len(questions)
    return {
        "parameters": model.parameter_count(),
        "questions": len(questions),
        "same_predictions": min(same),
        "mean_answer_characters": characters,
        "batched_seconds": statistics.median(fast),
        "one_at_a_time_seconds": statistics.median(slow),
        "ratio": statistics.median(ratios),
        "ratio_low": min(ratios),
        "ratio_high": max(ratios),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, help="a fine-tuned run, instead of a model trained here")
    parser.add_argument("--repeats", type=int, default=3, help="alternations of the two sides")
    parser.add_argument("--questions", type=int, default=500, help="number of questions")
    parser.add_argument("--always", type=int, default=0, help="tokens the slow side always generates")
    parser.add_argument("--steps", type=int, default=150, help="training steps of the model trained here")
    parser.add_argument("--threads", type=int, default=facts.cores())
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    seed_everything(0)
    train, asked, source = pairs_at_hand()
    if args.run:
        trained = load_gpt(args.run)
        model, vocabulary = trained.model, trained.vocabulary
    else:
        model, vocabulary = new_model(train, asked, args.steps)
    questions = [question for question, _ in asked[: args.questions]]
    results = compare(model.eval(), vocabulary, questions, args.repeats, args.always)
    print(f"all at once with the cache, compared with one at a time without ({source}, {args.threads} threads)")
    for name, value in results.items():
        print(f"  {name:<30} {value:,.3f}" if isinstance(value, float) else f"  {name:<30} {value:,}")
    if args.json:
        args.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
