"""The lab's BERT compared with that of `transformers`, and its parts with what they replace, in one run.

1. body, classify   forward and backward, the same weights on the same texts: BertModel and sequence classification.
                    padded: both on padded rows, random batches. unpadded: the lab leaves padding out, same batches.
                    by length: the lab's batches also contain texts of similar length; same texts.
2. joint            a step of classification and masked words: scores for masked places only, compared with all places.
3. tokenizer        pieces per second compared with `tokenizers`, the first and the second time.

    python benchmarks/bert.py --model FOLDER                # texts from $ATTNLAB_DATA/yelp/train.csv, if it exists

Every ratio is the other side's time over the lab's: above 1 the lab is faster. Sides alternate; a ratio is the
median over alternations. Times are CPU seconds of one thread: waiting for a busy core is not counted.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlab.base.console import Verbosity, set_verbosity
from attnlab.data.batching import IGNORE, BatchPlan
from attnlab.data.encoded import LabelledExamples
from attnlab.data.tasks.catalog import load_sentiment
from attnlab.data.text.masking import MaskedExamples, Masking
from attnlab.data.tokenizers.wordpiece import WordPiece
from attnlab.models.bert.heads import BertForCLSMLM, BertForSequenceClassification
from attnlab.models.bert.model import BertModel
from attnlab.models.pretrained.source import model_folder

Inputs = list[dict[str, Tensor]]
Side = Callable[[], None]


def read_texts(limit: int) -> tuple[list[str], str]:
    """Yelp reviews, or the embedded sentences if they are missing."""
    file = Path(os.environ.get("ATTNLAB_DATA", ""), "yelp", "train.csv")
    if file.is_file():
        with file.open(encoding="utf-8", newline="") as rows:
            return [row[1].replace("\\n", "\n") for row in csv.reader(rows)][:limit], "Yelp train"
    return [example.text for example in load_sentiment()["train"]][:limit], "the embedded sentiment set"


def batches(examples: LabelledExamples | MaskedExamples, size: int, by_length: bool) -> Inputs:
    plan = BatchPlan(examples.lengths, size, by_length=by_length).epoch(0)
    return [examples.collate(indices, 0) for indices in plan]


def passes(model: nn.Module, inputs: Inputs, loss: Callable[[nn.Module, dict[str, Tensor]], Tensor]) -> Side:
    """Forward and backward over all batches."""

    def run() -> None:
        for batch in inputs:
            model.zero_grad()
            loss(model, batch).backward()

    return run


def alternate(sides: dict[str, Side], repeats: int) -> dict[str, list[float]]:
    """CPU seconds of every side in every round, after one warm-up round."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(repeats + 1):
        order = list(sides) if number % 2 else list(reversed(sides))
        for name in order:
            start = time.process_time()
            sides[name]()
            if number:
                times[name].append(time.process_time() - start)
    return times


def ratio(times: dict[str, list[float]], peer: str, ours: str) -> float:
    return statistics.median(a / b for a, b in zip(times[peer], times[ours], strict=True))


def body_loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    """The loss uses every real piece's vector, so that the whole body is needed."""
    real = batch["attention_mask"]
    states = model(input_ids=batch["input_ids"], attention_mask=real).last_hidden_state
    return states[real.bool()].square().mean()


def classifier_loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    return model(**batch).loss


def compare_models(folder: Path, texts: list[str], args: argparse.Namespace) -> dict[str, dict[str, float]]:
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    tokenizer = WordPiece.from_pretrained(folder)
    examples = LabelledExamples(texts, [n % 2 for n in range(len(texts))], tokenizer, args.longest)
    random, like = (batches(examples, args.size, by_length) for by_length in (False, True))
    kinds: list[tuple[str, Any, Callable[[nn.Module, dict[str, Tensor]], Tensor], dict[str, Any]]] = [
        ("BertModel", BertModel, body_loss, {}),
        ("BertForSequenceClassification", BertForSequenceClassification, classifier_loss, {"classify_from": "pooler"}),
    ]
    results: dict[str, dict[str, float]] = {}
    for name, build, loss, changes in kinds:
        ours = build.from_pretrained(folder, labels=2, dropout=args.dropout, attention_dropout=args.dropout, **changes)
        with tempfile.TemporaryDirectory() as shared:
            ours.save_pretrained(shared)
            theirs = getattr(transformers, name).from_pretrained(shared, local_files_only=True)
            padded = build.from_pretrained(shared, unpad=False)
        values = [loss(model.eval(), random[0]).item() for model in (ours, padded, theirs)]
        if max(values) - min(values) > 1e-4:
            raise SystemExit(f"{name}: the sides do not compute the same: {values}")
        sides = {
            "transformers": passes(theirs.train(), random, loss),
            "padded": passes(padded.train(), random, loss),
            "unpadded": passes(ours.train(), random, loss),
            "by length": passes(ours.train(), like, loss),
        }
        times = alternate(sides, args.repeats)
        results[name] = {side: ratio(times, "transformers", side) for side in ("padded", "unpadded", "by length")}
        results[name]["transformers_seconds"] = statistics.median(times["transformers"])
    real = sum(examples.lengths)
    results["batches"] = {"texts": len(texts), "mean_length": real / len(texts)} | {
        f"padding_{name}": 1 - real / sum(batch["input_ids"].numel() for batch in inputs)
        for name, inputs in (("random", random), ("by_length", like))
    }
    return results


def compare_joint(folder: Path, texts: list[str], args: argparse.Namespace) -> dict[str, float]:
    """The same step twice: the vocabulary's scores at masked places, and at all places."""
    model = BertForCLSMLM.from_pretrained(folder, labels=2, dropout=args.dropout, attention_dropout=args.dropout)
    tokenizer = WordPiece.from_pretrained(folder)
    labelled = batches(LabelledExamples(texts, [0] * len(texts), tokenizer, args.longest), args.size, False)
    masked = batches(MaskedExamples(texts, Masking(tokenizer), args.longest), args.size, False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6)

    def loss(full: bool, first: dict[str, Tensor], second: dict[str, Tensor]) -> Tensor:
        inputs = {name: tensor for name, tensor in second.items() if name != "labels"}
        if full:
            logits = model(**inputs).masked.logits  # (B, T, V)
            side = F.cross_entropy(logits.flatten(0, 1), second["labels"].flatten(), ignore_index=IGNORE)
        else:
            side = model(**inputs, masked_labels=second["labels"]).loss
        return model(**first).loss + side

    def step(full: bool) -> Side:
        def run() -> None:
            for first, second in zip(labelled, masked, strict=True):
                optimizer.zero_grad()
                loss(full, first, second).backward()
                optimizer.step()

        return run

    model.eval()
    values = [loss(full, labelled[0], masked[0]).item() for full in (True, False)]
    if abs(values[0] - values[1]) > 1e-4:
        raise SystemExit(f"joint: the sides do not compute the same: {values}")
    model.train()
    times = alternate({"all places": step(True), "masked places": step(False)}, args.repeats)
    return {
        "ratio": ratio(times, "all places", "masked places"),
        "all_places_seconds": statistics.median(times["all places"]),
        "masked_places_seconds": statistics.median(times["masked places"]),
    }


def compare_tokenizers(folder: Path, texts: list[str], repeats: int) -> dict[str, float]:
    from tokenizers import Tokenizer

    theirs = Tokenizer.from_file(str(folder / "tokenizer.json"))
    ours = WordPiece.from_pretrained(folder)
    pieces = sum(len(ours.piece_ids(text)) for text in texts)  # this also fills the word cache

    def again() -> None:
        for text in texts:
            ours.piece_ids(text)

    def first() -> None:
        fresh = WordPiece(ours.vocabulary, ours.words)
        for text in texts:
            fresh.piece_ids(text)

    def library() -> None:
        for text in texts:
            theirs.encode(text, add_special_tokens=False)

    times = alternate({"library": library, "first": first, "again": again}, repeats)
    rates = {f"{name}_pieces_per_second": pieces / statistics.median(values) for name, values in times.items()}
    return rates | {f"ratio_{name}": ratio(times, "library", name) for name in ("first", "again")}


def show(title: str, values: dict[str, Any]) -> None:
    print(title)
    for name, value in values.items():
        print(f"  {name:<32} {value:,.3f}" if isinstance(value, float) else f"  {name:<32} {value}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="minilm", help="a folder with a BERT and its tokenizer.json, or minilm")
    parser.add_argument("--repeats", type=int, default=5, help="alternations of the sides")
    parser.add_argument("--texts", type=int, default=64)
    parser.add_argument("--size", type=int, default=16, help="texts in a batch")
    parser.add_argument("--longest", type=int, default=512, help="longest text in pieces")
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--only", choices=["models", "joint", "tokenizer"])
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    args = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    torch.set_num_threads(1)
    torch.manual_seed(0)
    set_verbosity(Verbosity.QUIET)
    folder = model_folder(args.model)
    texts, source = read_texts(args.texts)
    many, _ = read_texts(20 * args.texts)
    results: dict[str, Any] = {"source": source, "model": folder.name, "longest": args.longest, "dropout": args.dropout}
    show("settings", results)
    if args.only in (None, "models"):
        results["models"] = compare_models(folder, texts, args)
        for name, values in results["models"].items():
            show(name, values)
    if args.only in (None, "joint"):
        results["joint"] = compare_joint(folder, texts, args)
        show("a joint step, masked places only", results["joint"])
    if args.only in (None, "tokenizer"):
        results["tokenizer"] = compare_tokenizers(folder, many, args.repeats)
        show("the tokenizer", results["tokenizer"])
    if args.json:
        args.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
