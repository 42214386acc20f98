"""What both scripts do: train, keep the best model on dev, report on test.

    OUTPUT_DIR/
        config.json, model.safetensors, vocab.txt, ...    the best model on dev, as a Hugging Face folder
        eval_results.txt                                  its scores on dev and test
        run/                                              the lab's run folder: curves, checkpoints, report.html

After any stop, the same command resumes at the last checkpoint and ends with the same weights, to the bit;
--overwrite_output_dir replaces a finished training, or another one.
"""

from __future__ import annotations

import argparse
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import ceil
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from attnlab.base import console
from attnlab.base.errors import UserError
from attnlab.base.files import sha256, write_text
from attnlab.base.machine.facts import resolve_device
from attnlab.base.randomness import random_untouched, seed_everything
from attnlab.config import BatchSection, MachineSection, OptimizerSection, ScheduleSection, TrainingSection
from attnlab.config.job import JobConfig
from attnlab.data.batching import Batches, BatchPlan, Examples
from attnlab.data.tokenizers.wordpiece import WordPiece
from attnlab.jobs.job import Parts
from attnlab.jobs.scripted import KIND, remove_unstarted, settings_of_run, train_or_resume
from attnlab.models.bert.config import BertConfig
from attnlab.models.pretrained.source import find_bert, fingerprint
from attnlab.runs import RunFolder, is_run, read_record, read_status, series
from attnlab.runs.checkpoints import load_best
from attnlab.training.callbacks import TrainState
from attnlab.training.loop import Metric
from attnlab.training.objectives import Evaluate, Objective
from data_utils import Features, load_and_cache_examples, processors, read_reviews

AT_THE_END = "1000000000 steps"
MADE = ("config.json", "model.safetensors", "vocab.txt", "tokenizer.json", "tokenizer_config.json", "eval_results.txt")


class Work:
    """A script's command: the texts, the model, training and evaluation."""

    def __init__(self, args: argparse.Namespace, build: type) -> None:
        self.args, self.name = args, build.__name__
        self.output = Path(args.output_dir)
        self.folder = find_bert(args.model_name_or_path) if args.do_train else self.output
        if self.output.exists() and not self.output.is_dir():
            raise UserError(f"--output_dir: {self.output} is a file: give a folder.")
        if args.do_train and self.output.is_dir() and self.folder.samefile(self.output):
            raise UserError(f"--output_dir: {self.output} is the folder of the model to start from: give another.")
        if not args.do_train and not (self.output / "config.json").is_file():
            raise UserError(f"--do_eval alone needs a trained model, and {self.output} has none: add --do_train.")
        named = args.tokenizer_name if args.do_train else None
        self.tokenizer = WordPiece.from_pretrained(find_bert(named) if named else self.folder)
        self.sets = {
            split: load_and_cache_examples(args, args.task_name, self.tokenizer, split)
            for split in ("train", "dev", "test")
        }
        seed_everything(args.seed)
        with unfinished(self.name):
            self.model = build.from_pretrained(
                self.folder, labels=processors[args.task_name]().get_labels(), classify_from="cls"
            )
        self._must_fit(self.model.config)

    def _must_fit(self, config: BertConfig) -> None:
        """Texts must not be longer than the positions, nor the vocabulary larger than the embeddings."""
        args = self.args
        if getattr(args, "block_size", None) is not None:
            if args.block_size > config.context:
                raise UserError(f"--block_size {args.block_size} is more than the model's {config.context} positions.")
            args.block_size = args.block_size if args.block_size > 0 else config.context
        if args.max_seq_length > config.context:
            raise UserError(
                f"--max_seq_length {args.max_seq_length} is more than the model's {config.context} positions."
            )
        if len(self.tokenizer) > config.vocabulary:
            raise UserError(
                f"the vocabulary of {args.tokenizer_name} has {len(self.tokenizer)} pieces, the weights in "
                f"{self.folder} have {config.vocabulary}: they do not match."
            )

    def train(self, data: Examples, objective: Objective, **facts: Any) -> None:
        """Train on `data`; `facts` identify the training besides the labelled texts."""
        run, asked = self.output / "run", self.args.overwrite_output_dir
        remove_unstarted(run)
        if not asked and not is_run(run) and self.output.is_dir() and any(self.output.iterdir()):
            raise UserError(f"{self.output} is not empty: give another folder, or --overwrite_output_dir.")
        job = Training(self, data, objective, facts)
        job.replaces = asked and is_run(run) and not job.can_go_on(run)
        with unfinished(self.name):
            train_or_resume(job, run, "train", job.replaces)

    def evaluate(self) -> None:
        """Score the model in the output folder, without training."""
        device = resolve_device("cpu" if self.args.no_cuda else "auto")
        self.report(self.scores(device, self.model.to(device)), None)

    def scores(self, device: str, model: nn.Module) -> dict[str, float]:
        return {
            f"{split}_{name}": value
            for split in ("dev", "test")
            for name, value in self.score(split, device)(model.eval()).items()
        }

    def score(self, split: str, device: str) -> Evaluate:
        return accuracy(self.sets[split], self.args.per_gpu_eval_batch_size, device)

    def report(self, scores: Mapping[str, float], run: Path | None) -> None:
        """Print the scores and write them to eval_results.txt, as scripts of this family do."""
        lines = [f"{name.replace('accuracy', 'acc')} = {value:.4f}" for name, value in scores.items()]
        if run is not None and self.args.eval_all_checkpoints:
            steps, values = series(run / "metrics.jsonl", "dev", "accuracy")
            lines += [f"dev_acc_{step} = {value:.4f}" for step, value in zip(steps, values, strict=True)]
        write_text(self.output / "eval_results.txt", "".join(f"{line}\n" for line in lines))
        for line in lines:
            console.result(line)
        console.result(f"results: {self.output / 'eval_results.txt'}")


class Training:
    """A training as the lab runs it."""

    kind = KIND
    replaces = False
    """Whether this replaces another training in the output folder."""

    def __init__(self, work: Work, data: Examples, objective: Objective, facts: Mapping[str, Any]) -> None:
        args = work.args
        self.work, self.data, self.objective = work, data, objective
        self.config = settings(args, len(data.lengths))
        reviews = read_reviews(Path(args.data_dir))
        self.facts = {
            "model": work.name,
            "start": str(work.folder.resolve()),
            "start_sha256": fingerprint(work.folder),
            "examples": {split: len(examples) for split, examples in work.sets.items()},
            "classes": list(reviews.classes),
            "max_seq_length": args.max_seq_length,
            **{f"{split}_sha256": sha256(path) for split, path in reviews.files.items()},
            **facts,
        }

    def can_go_on(self, run: Path) -> bool:
        """Whether the run in this folder is this training, interrupted: then it can be resumed."""
        if read_status(run)["state"] == "finished" or read_record(run).get("data") != self.facts:
            return False
        try:
            settings_of_run(self.config, run)
        except UserError:
            return False
        return True

    def build(self, device: str) -> Parts:
        work = self.work
        with random_untouched(), torch.no_grad():  # unfinished or unsuitable classes fail before anything is written
            batch = Batches(self.data, BatchPlan(self.data.lengths)).collate([0], 0)
            self.objective(work.model.train(), batch)
        for name in MADE if self.replaces else ():
            (work.output / name).unlink(missing_ok=True)  # of another training
        changes = [
            f"{examples.cut} of {len(examples)} {split} texts are cut to {work.args.max_seq_length} pieces."
            for split, examples in work.sets.items()
            if examples.cut
        ]
        return Parts(
            work.model,
            self.objective,
            self.data,
            work.score("dev", device),
            Metric("accuracy", "higher"),
            facts=self.facts,
            changes=changes,
            finish=self._finish(device),
        )

    def _finish(self, device: str) -> Callable[[RunFolder, TrainState], dict[str, Any]]:
        """Save the best model on dev in the output folder, and test it."""

        def finish(run: RunFolder, state: TrainState) -> dict[str, Any]:
            work = self.work
            load_best(work.model, run.path)
            work.tokenizer.save_pretrained(work.output)
            work.model.save_pretrained(work.output)
            if not work.args.do_eval:
                return {}
            scores = work.scores(device, work.model)
            work.report(scores, run.path)
            return scores

        return finish


def settings(args: argparse.Namespace, examples: int) -> JobConfig:
    """The options as the lab's settings: AdamW, a rate that falls linearly, evaluation every logging_steps."""
    steps = args.max_steps if args.max_steps > 0 else None
    if steps is None and args.num_train_epochs % 1:
        per_step = args.per_gpu_train_batch_size * args.gradient_accumulation_steps
        steps = max(1, round(args.num_train_epochs * ceil(examples / per_step)))
    return JobConfig(
        optimizer=OptimizerSection(
            lr=args.learning_rate, weight_decay=args.weight_decay, beta2=0.999, clip=args.max_grad_norm
        ),
        schedule=ScheduleSection(name="linear", warmup_steps=args.warmup_steps),
        batch=BatchSection(size=args.per_gpu_train_batch_size, accumulate=args.gradient_accumulation_steps),
        training=TrainingSection(
            steps=steps,
            epochs=None if steps else int(args.num_train_epochs),
            seed=args.seed,
            evaluate_every=f"{args.logging_steps} steps" if args.evaluate_during_training else AT_THE_END,
            save_every=f"{max(0, args.save_steps)} steps",
            log_every=args.logging_steps,
            keep=args.save_total_limit,
        ),
        machine=MachineSection(device="cpu" if args.no_cuda else "auto", precision="fp16" if args.fp16 else "fp32"),
    )


def accuracy(data: Features, size: int, device: str) -> Evaluate:
    """Accuracy and loss over a whole set; a model returns logits, or an object with `logits`."""
    batches = Batches(data, BatchPlan(data.lengths, size))

    @torch.no_grad()
    def evaluate(model: nn.Module) -> dict[str, float]:
        right = loss = 0.0
        for batch in batches.once():
            inputs = dict(batch.to(torch.device(device)).inputs)
            labels = inputs.pop("labels")
            output = model(**inputs)
            logits = getattr(output, "logits", output)
            right += float((logits.argmax(-1) == labels).sum())
            loss += float(F.cross_entropy(logits.float(), labels, reduction="sum"))
        return {"accuracy": right / len(data), "loss": loss / len(data)}

    return evaluate


@contextmanager
def unfinished(name: str) -> Iterator[None]:
    """An unfinished #todo of mymodel.py is reported with its class and line."""
    try:
        yield
    except NotImplementedError as error:
        frames = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
        unwritten = [(code.co_qualname, line) for code, line in frames if Path(code.co_filename).name == "mymodel.py"]
        where, line = unwritten[-1] if unwritten else (name, None)
        place = f"mymodel.py, line {line}" if line else "mymodel.py"
        raise UserError(f"{place}: {where} is not finished (NotImplementedError): write it.") from None
