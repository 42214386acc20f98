"""Fine-tuning a classifier in the lab and with `transformers.Trainer`, in one process, sides alternating.

1. speed      examples per second over the same training texts: `attnlab classify` (batches of similar length) and
              Trainer with its defaults (random batches, padded to the longest of each, its default AdamW). From the
              first step's batch to the last step's end on both sides: no evaluation, no checkpoints.
2. accuracy   with --epochs and --seeds: the same, trained to the end; accuracy on dev after the last epoch, per seed.
3. head       --tune head on features computed once, compared with the frozen body run in every epoch: the whole job,
              reading and features included, one evaluation at the end.
4. predict    texts per second, from text to probabilities, and `transformers.pipeline` on the exported folder.

    python benchmarks/classification.py --task sst2                        # a slice of 20 steps per side, 5 times
    python benchmarks/classification.py --task boolq --epochs 2 --seeds 3 --json accuracy.json
    python benchmarks/classification.py --task sst2 --only head --examples 2000
    python benchmarks/classification.py --task sst2 --only predict

Ratios are the lab's examples per second over Trainer's: above 1 the lab is faster. With one thread (the default), times
are CPU seconds: waiting for a busy core is not counted; with more they are seconds. All in fp32.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from attnlab.base.console import Verbosity, set_verbosity
from attnlab.config import check
from attnlab.config.classify import ClassifyConfig
from attnlab.data.encoded import encode
from attnlab.data.tasks.catalog import read_texts, select_examples
from attnlab.data.tasks.labelled import LabelledSet, LabelledText
from attnlab.jobs.classify.built import encode_splits
from attnlab.jobs.classify.export import export
from attnlab.jobs.classify.job import ClassifyJob
from attnlab.jobs.engine import train_run
from attnlab.jobs.job import Parts, RunOptions
from attnlab.models.pretrained.classifier import predict
from attnlab.models.pretrained.load import import_transformers, quietly
from attnlab.models.pretrained.source import model_folder
from attnlab.models.pretrained.tuned import load_for_tuning, load_trained
from attnlab.stats.intervals import Mean
from attnlab.stats.scores import Scores
from attnlab.training.callbacks import Callback, RunLength, StepReport, TrainState
from attnlab.training.objectives import Classification

WARM_UP = 2  # batches, before the first round


@dataclass(frozen=True)
class Measured:
    rate: float
    """Training examples per second."""
    accuracy: float
    """On dev after the last step; nan if not measured."""


class Watch(Callback):
    """The time from the start of training to the end of its last step, and the last evaluation."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.now, self.accuracy = now, float("nan")

    def on_start(self, state: TrainState, length: RunLength) -> None:
        self.start = self.now()

    def on_step(self, state: TrainState, report: StepReport) -> None:
        self.end, self.examples = self.now(), state.examples

    def on_evaluate(self, state: TrainState, values: dict[str, float], best: bool) -> None:
        self.accuracy = values["accuracy"]


class Bench:
    """Both sides of one task, model and rate."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.now = time.process_time if args.threads == 1 else time.perf_counter
        self.everything = read_texts(self.config(0, 1).data)

    def config(self, seed: int, epochs: int, method: str = "full", examples: int | None = None) -> ClassifyConfig:
        args = self.args
        config: ClassifyConfig = check(
            ClassifyConfig,
            {
                "data": {"task": args.task, "max_tokens": args.max_tokens, "examples": examples, "hold_out": False},
                "model": {"name": args.model},
                "tuning": {"method": method},
                "optimizer": {"lr": args.lr, "weight_decay": 0.01, "beta2": 0.999},
                "batch": {"size": args.batch_size},
                "training": {"epochs": epochs, "seed": seed, "evaluate_every": f"{epochs} epochs", "save_every": "0"},
                "watch": {"train_sample": 0},
                "machine": {"device": "cpu", "precision": "fp32", "threads": args.threads},
            },
        )
        return config

    def texts(self, config: ClassifyConfig) -> LabelledSet:
        return select_examples(self.everything, config.data, config.training.seed, None)

    def lab(self, config: ClassifyConfig, evaluate: bool) -> Measured:
        watch = Watch(self.now)
        with tempfile.TemporaryDirectory() as folder:
            train_run(watched(ClassifyJob, watch, evaluate)(config), RunOptions(Path(folder) / "run"))
        return Measured(watch.examples / (watch.end - watch.start), watch.accuracy)

    def theirs(self, config: ClassifyConfig, evaluate: bool) -> Measured:
        transformers = import_transformers()
        data, now = self.texts(config), self.now
        folder = model_folder(config.model.name)
        transformers.set_seed(config.training.seed)
        with quietly():
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
            model = transformers.AutoModelForSequenceClassification.from_pretrained(
                folder, local_files_only=True, num_labels=len(data.classes)
            )

        class Clock(transformers.TrainerCallback):  # type: ignore[name-defined]
            def on_train_begin(self, *args: Any, **more: Any) -> None:
                self.start = now()

            def on_step_end(self, *args: Any, **more: Any) -> None:
                self.end = now()

        clock = Clock()
        with tempfile.TemporaryDirectory() as out, quietly():
            settings = transformers.TrainingArguments(
                out,
                per_device_train_batch_size=config.batch.size,
                per_device_eval_batch_size=64,
                num_train_epochs=config.training.epochs,
                learning_rate=config.optimizer.lr,
                seed=config.training.seed,
                save_strategy="no",
                logging_strategy="no",
                report_to=[],
                use_cpu=True,
                disable_tqdm=True,
            )
            assert config.data.max_tokens is not None
            trainer = transformers.Trainer(
                model,
                settings,
                train_dataset=rows(data.splits["train"], tokenizer, config.data.max_tokens),
                data_collator=transformers.DataCollatorWithPadding(tokenizer),
                callbacks=[clock],
            )
            trainer.remove_callback(transformers.PrinterCallback)
            trainer.train()
            accuracy = float("nan")
            if evaluate:
                predicted = trainer.predict(rows(data.splits["dev"], tokenizer, config.data.max_tokens))
                accuracy = float((predicted.predictions.argmax(-1) == predicted.label_ids).mean())
        seen = len(data.splits["train"]) * (config.training.epochs or 0)
        return Measured(seen / (clock.end - clock.start), accuracy)

    def speed(self) -> dict[str, Any]:
        args = self.args
        size = args.examples or args.steps * args.batch_size
        for side in (self.lab, self.theirs):
            side(self.config(0, 1, examples=WARM_UP * args.batch_size), False)
        rounds = [self.round(self.config(seed, 1, examples=size), False, seed) for seed in range(args.repeats)]
        return {"examples": size, **rates(rounds)}

    def accuracy(self) -> dict[str, Any]:
        args = self.args
        rounds = []
        for seed in range(args.first_seed, args.first_seed + args.seeds):
            ours, theirs = self.round(self.config(seed, args.epochs, examples=args.examples), True, seed)
            rounds.append((ours, theirs))
            print(
                f"  seed {seed}: dev accuracy {ours.accuracy:.4f} (lab), {theirs.accuracy:.4f} (Trainer); examples "
                f"per second {ours.rate:.1f}, {theirs.rate:.1f}",
                flush=True,
            )
        results: dict[str, Any] = {"epochs": args.epochs, **rates(rounds)}
        for n, side in enumerate(("lab", "trainer")):
            results[f"{side}_dev_accuracies"] = [pair[n].accuracy for pair in rounds]
            results[f"{side}_dev_accuracy"] = statistics.fmean(results[f"{side}_dev_accuracies"])
        difference = Mean(tuple(ours.accuracy - theirs.accuracy for ours, theirs in rounds))
        results |= {"difference": difference.mean, "difference_interval": difference.interval}
        return results

    def round(self, config: ClassifyConfig, evaluate: bool, number: int) -> tuple[Measured, Measured]:
        """(lab, Trainer), in reverse order in every second round."""
        if number % 2:
            theirs = self.theirs(config, evaluate)
            return self.lab(config, evaluate), theirs
        ours = self.lab(config, evaluate)
        return ours, self.theirs(config, evaluate)

    def head(self) -> dict[str, Any]:
        """The same head on the same frozen body, 20 epochs."""
        config = self.config(0, 20, "head", self.args.examples)
        config.optimizer.lr = self.args.head_lr
        seconds: dict[str, list[float]] = {"cached": [], "every_epoch": []}
        results: dict[str, Any] = {"epochs": 20, "examples": len(self.texts(config).splits["train"])}
        for _ in range(self.args.head_repeats):
            for name, job in (("cached", ClassifyJob), ("every_epoch", BodyEveryEpoch)):
                watch = Watch(self.now)
                start = self.now()
                with tempfile.TemporaryDirectory() as folder:
                    train_run(watched(job, watch)(config), RunOptions(Path(folder) / "run"))
                seconds[name].append(self.now() - start)
                results[f"{name}_dev_accuracy"] = watch.accuracy
        ratios = [b / a for a, b in zip(seconds["cached"], seconds["every_epoch"], strict=True)]
        results |= {f"{name}_seconds": statistics.median(times) for name, times in seconds.items()}
        return results | spread("ratio", ratios)

    def predict(self) -> dict[str, Any]:
        """The same weights on the texts of dev, loading not timed."""
        config = self.config(0, 1, examples=self.args.batch_size)
        config.model.pooling = "pooler"  # transformers has a class for it
        texts = self.everything.splits["dev"]
        with tempfile.TemporaryDirectory() as folder:
            run, plain = Path(folder) / "run", Path(folder) / "plain"
            train_run(ClassifyJob(config), RunOptions(run))
            export(run, plain)
            ours, theirs = load_trained(run, "cpu"), self.pipeline(plain)
            torch.set_num_threads(self.args.threads)
            given = [{"text": each.text} | ({"text_pair": each.pair} if each.pair else {}) for each in texts]
            rates: dict[str, list[float]] = {"lab": [], "pipeline": []}
            for _ in range(self.args.repeats):
                start = self.now()
                probabilities = ours.logits(ours.encode(texts)).softmax(-1)
                middle = self.now()
                also = theirs(given)
                rates["lab"].append(len(texts) / (middle - start))
                rates["pipeline"].append(len(texts) / (self.now() - middle))
        apart = max(abs(float(row.max()) - each["score"]) for row, each in zip(probabilities, also, strict=True))
        results: dict[str, Any] = {"texts": len(texts), "largest_difference": apart}
        results |= {f"{name}_texts_per_second": statistics.median(values) for name, values in rates.items()}
        return results | spread("ratio", [a / b for a, b in zip(rates["lab"], rates["pipeline"], strict=True)])

    def pipeline(self, folder: Path) -> Any:
        with quietly():
            return import_transformers().pipeline(
                "text-classification", str(folder), device="cpu", batch_size=self.args.batch_size, truncation=True
            )


class BodyEveryEpoch(ClassifyJob):
    """`--tune head` without cached features: the frozen body is run for every text in every epoch."""

    def build(self, device: str) -> Parts:
        data = select_examples(read_texts(self.config.data), self.config.data, self.config.training.seed, None)
        loaded = load_for_tuning(self.config, data.classes)
        assert self.config.data.max_tokens is not None
        texts = encode_splits(data, loaded, self.config.data.max_tokens)
        labels = torch.tensor(texts["dev"].labels)

        def evaluate(model: torch.nn.Module) -> dict[str, float]:
            return Scores(predict(model, texts["dev"], device), labels).summary()

        return Parts(loaded.model, Classification(), texts["train"], evaluate)


def watched(kind: type[ClassifyJob], watch: Watch, evaluate: bool = True) -> type[ClassifyJob]:
    """The job with a stopwatch; its end, which scores and writes predictions, is not timed."""

    class Watched(kind):  # type: ignore[valid-type, misc]
        def build(self, device: str) -> Parts:
            parts: Parts = super().build(device)
            parts.callbacks.append(watch)
            parts.finish = None
            parts.evaluate = parts.evaluate if evaluate else None
            return parts

    return Watched


def rows(examples: list[LabelledText], tokenizer: Any, longest: int) -> list[dict[str, Any]]:
    """The input of Trainer: the same tokens, padded by its collator."""
    encoded = encode(tokenizer, [each.text for each in examples], [each.pair for each in examples], longest)
    types = "token_type_ids" in tokenizer.model_input_names
    return [
        {"input_ids": row.input_ids, "attention_mask": [1] * len(row.input_ids), "labels": each.label}
        | ({"token_type_ids": row.token_type_ids} if types else {})
        for row, each in zip(encoded, examples, strict=True)
    ]


def rates(rounds: list[tuple[Measured, Measured]]) -> dict[str, float]:
    ours, theirs = ([pair[n].rate for pair in rounds] for n in (0, 1))
    results = {
        "lab_examples_per_second": statistics.median(ours),
        "trainer_examples_per_second": statistics.median(theirs),
    }
    return results | spread("ratio", [a / b for a, b in zip(ours, theirs, strict=True)])


def spread(name: str, values: list[float]) -> dict[str, float]:
    return {name: statistics.median(values), f"{name}_low": min(values), f"{name}_high": max(values)}


def show(title: str, values: dict[str, Any]) -> None:
    print(title)
    for name, value in values.items():
        print(f"  {name:<32} {value:,.4g}" if isinstance(value, float) else f"  {name:<32} {value}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="sst2", help="sst2, boolq, or another task of the lab")
    parser.add_argument("--model", default="minilm", help="a name, or a folder")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=5e-5)
    parser.add_argument("--max-tokens", type=int, default=128)
    parser.add_argument("--steps", type=int, default=20, help="of a timed slice")
    parser.add_argument("--repeats", type=int, default=5, help="alternations of the two sides")
    parser.add_argument("--examples", type=int, help="training texts (default: the slice's; all for accuracy and head)")
    parser.add_argument("--epochs", type=int, help="train to the end and compare accuracies, instead of a slice")
    parser.add_argument("--seeds", type=int, default=3, help="of the accuracy comparison")
    parser.add_argument("--first-seed", type=int, default=0, help="of the accuracy comparison: to add more")
    parser.add_argument("--head-lr", type=float, default=1e-3)
    parser.add_argument("--head-repeats", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", choices=["trainer", "head", "predict"])
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    args = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    set_verbosity(Verbosity.QUIET)
    torch.set_num_threads(args.threads)
    bench = Bench(args)
    results: dict[str, Any] = {
        name: getattr(args, name) for name in ("task", "model", "batch_size", "lr", "max_tokens")
    }
    show("settings", results)
    if args.only in (None, "trainer"):
        name = "accuracy" if args.epochs else "speed"
        results[name] = bench.accuracy() if args.epochs else bench.speed()
        show(f"the lab and transformers.Trainer: {name}", results[name])
    if args.only in (None, "head"):
        results["head"] = bench.head()
        show("a head on features computed once, and the body in every epoch", results["head"])
    if args.only in (None, "predict"):
        results["predict"] = bench.predict()
        show("predictions and transformers.pipeline", results["predict"])
    if args.json:
        args.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
