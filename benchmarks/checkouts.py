"""A training step of the lab's GPT and of the models of nanoGPT and minGPT, on the same full batches, in one process.

    python benchmarks/checkouts.py --nanogpt path/to/nanoGPT --mingpt path/to/minGPT

The two are read from checkouts of their own repositories, named on the command line; either may be left out. Blocks of
a text without padding, characters; 4 layers, 8 heads, width 256, context 128; no dropout, nanoGPT's default. A step is
forward, loss, backward, clipping and AdamW, made by each side's own function for its optimizer: theirs is the fused one
on a GPU only. Rounds, ratios and the peak are those of `pretraining.py`.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import io
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from pretraining import Side, lab_side, measure, operations, summary, tables

from attnlab.base.files import read_text
from attnlab.base.machine import facts
from attnlab.data.batching import Batch, Batches, BatchPlan
from attnlab.data.text.stream import Blocks
from attnlab.data.tokenizers.vocabulary import Vocabulary
from attnlab.data.world.world import World, WorldSpec
from attnlab.models.gpt import GPTShape, preset

LAB, LAB_MODERN, NANO, MINI = "lab vanilla", "lab modern", "nanoGPT", "minGPT"
RATE, DECAY, BETAS = 1e-3, 0.1, (0.9, 0.95)


def text() -> tuple[str, str]:
    """A text and its name."""
    root = os.environ.get("ATTNLAB_DATA")
    file = Path(root or "", "shakespeare", "input.txt")
    if root and file.is_file():
        return read_text(file), "shakespeare/input.txt"
    return "\n".join(World(WorldSpec(people=600, places=100)).corpus()), "the synthetic world"


def blocks(context: int, size: int, count: int) -> tuple[list[Batch], int, str]:
    """Full batches of the text, the size of its vocabulary, and its name."""
    characters, name = text()
    vocabulary = Vocabulary.build([characters])
    examples = Blocks.cut(torch.tensor(vocabulary.encode(characters)), context)
    batches = Batches(examples, BatchPlan(examples.lengths, size))
    plan = [indices for indices in batches.plan.epoch(0) if len(indices) == size][:count]
    return [batches.collate(indices, 0) for indices in plan], len(vocabulary), name


def nanogpt(checkout: Path, shape: GPTShape, batches: Sequence[Batch]) -> Side:
    module = _module("nanogpt_model", checkout / "model.py")
    config = module.GPTConfig(
        block_size=shape.context,
        vocab_size=shape.vocabulary,
        n_layer=shape.layers,
        n_head=shape.heads,
        n_embd=shape.width,
        dropout=shape.dropout,
        bias=shape.bias,
    )
    torch.manual_seed(0)
    with contextlib.redirect_stdout(io.StringIO()):
        model = module.GPT(config).train()
        optimizer = model.configure_optimizers(DECAY, RATE, BETAS, "cpu")
    return _side(NANO, model, optimizer, batches)


def mingpt(checkout: Path, shape: GPTShape, batches: Sequence[Batch]) -> Side:
    sys.path.insert(0, str(checkout))  # its modules import each other as mingpt.…
    module = importlib.import_module("mingpt.model")
    settings = module.CN(learning_rate=RATE, weight_decay=DECAY, betas=BETAS)
    config = module.GPT.get_default_config()
    config.merge_from_dict(
        {
            "model_type": None,
            "n_layer": shape.layers,
            "n_head": shape.heads,
            "n_embd": shape.width,
            "vocab_size": shape.vocabulary,
            "block_size": shape.context,
            **dict.fromkeys(("embd_pdrop", "resid_pdrop", "attn_pdrop"), shape.dropout),
        }
    )
    torch.manual_seed(0)
    with contextlib.redirect_stdout(io.StringIO()):
        model = module.GPT(config).train()
    return _side(MINI, model, model.configure_optimizers(settings), batches)


def _module(name: str, file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def _side(name: str, model: Any, optimizer: torch.optim.Optimizer, batches: Sequence[Batch]) -> Side:
    """Both peers return logits and loss."""
    return Side(
        name,
        lambda batch: model(batch.inputs["tokens"], batch.inputs["targets"])[1],
        list(model.parameters()),
        optimizer,
        batches,
    )


PEERS = {NANO: (nanogpt, "model.py"), MINI: (mingpt, "mingpt/model.py")}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nanogpt", type=Path, help="a checkout of nanoGPT")
    parser.add_argument("--mingpt", type=Path, help="a checkout of minGPT")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=3, help="steps of each side in a round")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--threads", type=int, default=facts.cores())
    parser.add_argument("--quick", action="store_true", help="a toy size, for tests")
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    args = parser.parse_args(arguments)
    checkouts = {name: path for name, path in ((NANO, args.nanogpt), (MINI, args.mingpt)) if path is not None}
    if not checkouts:
        parser.error("give --nanogpt, --mingpt or both: nothing to compare with")
    for name, path in checkouts.items():
        if not (path / PEERS[name][1]).is_file():
            parser.error(f"{path} is no checkout of {name}: {PEERS[name][1]} is missing")
    if min(args.rounds, args.steps, args.batch_size, args.threads) < 1:
        parser.error("--rounds, --steps, --batch-size and --threads must be at least 1")
    torch.set_num_threads(args.threads)

    size = {"layers": 1, "heads": 2, "width": 16, "context": 32} if args.quick else {}
    batches, vocabulary, source = blocks(size.get("context", 128), args.batch_size, args.rounds * args.steps)
    shape = preset("vanilla", vocabulary, dropout=0.0, **size)
    sides = [lab_side(LAB, shape, batches), lab_side(LAB_MODERN, preset("modern", vocabulary, **size), batches)]
    sides += [PEERS[name][0](path, shape, batches) for name, path in checkouts.items()]
    best = measure(sides, args.rounds, args.steps, (128,) if args.quick else (1024, 1536, 2048))
    pairs = [(side, peer) for peer in checkouts for side in (LAB, LAB_MODERN)]
    results = {
        "source": source,
        "batch": args.batch_size,
        "threads": args.threads,
        "cpu": facts.cpu_name(),
        "versions": facts.versions(),
        "parameters": {side.name: sum(weight.numel() for weight in side.learning) for side in sides},
        **summary(sides, best, operations(shape), pairs),
    }
    print(
        f"{source}, {vocabulary} characters, batches of {args.batch_size}, {args.threads} threads; "
        f"peak {results['peak_gflops']:.0f} GFLOP/s, {results['mflop_per_position']:.1f} MFLOP per position\n"
    )
    print(tables(results))
    if args.json:
        args.json.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
