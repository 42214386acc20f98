"""What both scripts do: prepare a command, train, keep the best model on dev, report on test.

OUTPUT_DIR/
    config.json, model.safetensors, vocab.txt, tokenizer_config.json    the best model on dev so far
    training.json                                                       what identifies the training
    checkpoint.pt                                                       its state at the last evaluation, until the end
    results.json                                                        scores, curve, cost: the training is finished
    eval_results.txt                                                    dev_acc, dev_loss, test_acc, test_loss
"""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Callable
from math import ceil
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from batches import once
from data_utils import FILES, Features, data_file, find_processor, load_and_cache_examples
from errors import UserError, note
from files import read_json, sha256, write_json, write_whole
from models import find_model
from mymodel import BertForSequenceClassification
from training import Losses, Scores, train
from weights import CONFIG, SAFE, load_weights, read_config, save_model, weight_file
from wordpiece import SETTINGS, VOCABULARY, WordPiece

RECORD, CHECKPOINT, RESULTS, SCORES = "training.json", "checkpoint.pt", "results.json", "eval_results.txt"
MADE = (RESULTS, SCORES, CHECKPOINT, RECORD, CONFIG, SAFE, VOCABULARY, SETTINGS)
SETTINGS_OF_TRAINING = (  # the options on which the weights depend
    *("task_name", "train_examples", "max_seq_length", "seed", "num_train_epochs", "max_steps"),
    *("per_gpu_train_batch_size", "gradient_accumulation_steps", "learning_rate", "warmup_steps"),
    *("weight_decay", "adam_epsilon", "max_grad_norm", "logging_steps", "evaluate_during_training", "fp16"),
    *("block_size", "line_by_line", "mlm_alpha", "mlm_probability"),  # of classifier_mlm.py
)


class Work:
    """A command: the model to start from, its tokenizer, the texts, the output folder."""

    def __init__(self, args: argparse.Namespace, kind: Callable[..., nn.Module], **parts: float) -> None:
        """`kind(config, **parts)` is the model to train."""
        self.args, self.kind, self.parts, self.output = args, kind, parts, Path(args.output_dir)
        if self.output.exists() and not self.output.is_dir():
            raise UserError(f"--output_dir: {self.output} is a file: give a folder.")
        if not args.do_train and not (self.output / CONFIG).is_file():
            raise UserError(f"--do_eval alone needs a trained model, and {self.output} has none: add --do_train.")
        self.start = find_model(args.model_name_or_path) if args.do_train else self.output
        if args.do_train and self.output.is_dir() and self.start.samefile(self.output):
            raise UserError(f"--output_dir: {self.output} is the folder of the model to start from: give another.")
        named = args.tokenizer_name if args.do_train else None
        self.tokenizer = WordPiece.from_folder(find_model(named) if named else self.start)
        self.config = read_config(self.start, find_processor(args.task_name).get_labels())
        self._must_fit()
        self.device = torch.device("cuda" if torch.cuda.is_available() and not args.no_cuda else "cpu")
        if args.fp16 and self.device.type == "cpu":
            raise UserError("--fp16 needs a GPU: fp16 on a CPU is slower than fp32, leave the option out.")
        self.sets: dict[str, Features] = {}
        self.facts: dict[str, Any] = {}
        """What a script adds to results.json."""

    def _must_fit(self) -> None:
        """Texts must not be longer than the positions, nor the vocabulary larger than the embeddings."""
        args, positions = self.args, self.config.max_position_embeddings
        if "block_size" in args and args.block_size <= 0:
            args.block_size = positions
        for name in ("max_seq_length", "block_size"):
            if getattr(args, name, 0) > positions:
                raise UserError(f"--{name} {getattr(args, name)} is more than the model's {positions} positions.")
        if len(self.tokenizer) > self.config.vocab_size:
            raise UserError(
                f"the vocabulary of {args.tokenizer_name or self.start} has {len(self.tokenizer)} pieces, the weights "
                f"in {self.start} have {self.config.vocab_size}: they do not match."
            )

    def train(self, make_losses: Callable[[Work], Losses]) -> None:
        """Train, or resume, or nothing if the same training is finished."""
        args, path = self.args, self.output
        identity = self._identity()
        known = read_json(path / RECORD) if (path / RECORD).is_file() else None
        if known == identity and (path / RESULTS).is_file() and not args.overwrite_output_dir:
            note(f"{path} has this training, finished: --overwrite_output_dir trains again.")
            (path / CHECKPOINT).unlink(missing_ok=True)
            return
        if not args.overwrite_output_dir and known != identity:
            self._refuse(known, identity)
        resume = known == identity and not (path / RESULTS).is_file()

        self._load_texts()
        torch.manual_seed(args.seed)
        model = self.kind(self.config, **self.parts)
        load_weights(model, self.start)
        self.model = model.to(self.device)
        losses = make_losses(self)
        with torch.random.fork_rng(), torch.no_grad():  # an unfinished #todo is found before anything is written
            losses(0)
        if not resume:
            path.mkdir(parents=True, exist_ok=True)
            for name in MADE:
                (path / name).unlink(missing_ok=True)  # of another training
            write_json(path / RECORD, identity)
        self.tokenizer.save(path)
        batches = ceil(len(self.sets["train"]) / args.per_gpu_train_batch_size)
        steps = total_steps(args, batches)
        progress = train(
            self.model,
            losses,
            lambda: score(self.model, self.sets["dev"], args, self.device)[0],
            lambda: save_model(self.model, self.config, path),
            args,
            steps,
            path / CHECKPOINT,
        )
        results = {
            **identity,
            "asked": args.model_name_or_path,
            "steps": steps,
            "epochs": steps * args.gradient_accumulation_steps / batches,
            "best_step": progress.best_step,
            "seconds": round(progress.seconds, 1),
            "cpu_seconds": round(progress.cpu_seconds, 1),
            "history": progress.history,
            "texts": {split: len(texts) for split, texts in self.sets.items()},
            "cut": {split: texts.cut for split, texts in self.sets.items()},
            "machine": machine(self.device),
            **self.facts,
        }
        write_json(path / RESULTS, results)
        (path / CHECKPOINT).unlink()

    def evaluate(self) -> None:
        """Score the model in the output folder on dev and test, once; scores of a finished training are kept."""
        path = self.output / RESULTS
        results: dict[str, Any] = read_json(path) if path.is_file() else {}
        if "scores" not in results or not self.args.do_train:
            self._load_texts()
            model = BertForSequenceClassification(self.config)
            load_weights(model, self.output)
            scores: dict[str, float] = {}
            answers: dict[str, dict[str, str]] = {}
            for split in ("dev", "test"):
                found, predicted = score(model.to(self.device), self.sets[split], self.args, self.device)
                scores |= {f"{split}_acc": found.accuracy, f"{split}_loss": found.loss}
                answers[split] = {"labels": _digits(self.sets[split].labels), "predicted": _digits(predicted)}
            results |= {"scores": scores, "answers": answers}
            if self.args.do_train:
                write_json(path, results)
        lines = [f"{name} = {value:.4f}" for name, value in results["scores"].items()]
        if self.args.eval_all_checkpoints:
            lines += [f"dev_acc_{entry['step']} = {entry['dev_acc']:.4f}" for entry in results.get("history", ())]
        write_whole(self.output / SCORES, [f"{line}\n".encode() for line in lines])
        print(*lines, f"results: {self.output / SCORES}", sep="\n", flush=True)

    def _load_texts(self) -> None:
        args = self.args
        for split in FILES if args.do_train else ("dev", "test"):
            if split not in self.sets:
                self.sets[split] = texts = load_and_cache_examples(args, args.task_name, self.tokenizer, split)
                if texts.cut:
                    note(f"{texts.cut} of {len(texts)} {split} texts are cut to {args.max_seq_length} pieces.")

    def _identity(self) -> dict[str, Any]:
        """What must be the same for a training to be resumed: options, model, data."""
        args = self.args
        files = {split: data_file(args.data_dir, split) for split in FILES}
        if "train_data_file" in args:
            files["unlabelled"] = Path(args.train_data_file)
            if not files["unlabelled"].is_file():
                raise UserError(f"--train_data_file: {args.train_data_file} does not exist: check the name.")
        return {
            "model": self.kind.__name__,
            "options": {name: getattr(args, name) for name in SETTINGS_OF_TRAINING if name in args},
            "start": {"folder": self.start.resolve().name, "sha256": sha256(weight_file(self.start))},
            "files": {name: sha256(path) for name, path in files.items()},
            "vocabulary": len(self.tokenizer),
        }

    def _refuse(self, known: dict[str, Any] | None, identity: dict[str, Any]) -> None:
        """Another training, or other files, in the output folder are not replaced unasked."""
        if known is None:
            if self.output.is_dir() and any(self.output.iterdir()):
                raise UserError(f"{self.output} is not empty: give another folder, or --overwrite_output_dir.")
            return
        before, now = ({**record, **record.get("options", {})} for record in (known, identity))
        name = next(name for name in {**now, **before} if name != "options" and before.get(name) != now.get(name))
        what = f"{before.get(name)}, got {now.get(name)}" if name in now["options"] else "others"
        raise UserError(
            f"{self.output} was trained with {name} {what}: give the same command, another folder, or "
            "--overwrite_output_dir to replace it."
        )


def total_steps(args: argparse.Namespace, batches: int) -> int:
    """Optimizer steps: --max_steps, or as many as the epochs of `batches` batches have."""
    if args.max_steps > 0:
        return args.max_steps
    return max(1, ceil(args.num_train_epochs * batches / args.gradient_accumulation_steps))


@torch.no_grad()
def score(
    model: nn.Module, texts: Features, args: argparse.Namespace, device: torch.device
) -> tuple[Scores, list[int]]:
    """Accuracy, mean loss and answers of the classifier over a whole set."""
    classifier = getattr(model, "classification", model).eval()
    predicted, loss = [0] * len(texts), 0.0
    for indices, inputs in once(texts, args.per_gpu_eval_batch_size, device):
        labels = inputs.pop("labels")
        logits = classifier(**inputs).logits
        loss += float(F.cross_entropy(logits, labels, reduction="sum"))
        for index, answer in zip(indices, logits.argmax(-1).tolist(), strict=True):
            predicted[index] = answer
    right = sum(answer == label for answer, label in zip(predicted, texts.labels, strict=True))
    return Scores(right / len(texts), loss / len(texts)), predicted


def machine(device: torch.device) -> dict[str, str | int | None]:
    """Where a training ran: its cost means nothing without it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    name = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    return {
        "processor": name,
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "device": device.type,
        "torch": str(torch.__version__),
        "python": platform.python_version(),
    }


def _digits(classes: list[int]) -> str:
    """Class numbers as one word; there are fewer than ten classes."""
    return "".join(map(str, classes))
