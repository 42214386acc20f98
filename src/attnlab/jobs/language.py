"""Train a GPT on a text read as one stream, and measure its loss on the end of that text.

The reported weights are those of the last step: choosing the best ones on the validation part and then
reporting on the same part would favour models that are evaluated more often.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlab.base.errors import UserError
from attnlab.base.files import sha256, write_text
from attnlab.base.randomness import seed_everything
from attnlab.config import check
from attnlab.config.language import LanguageConfig
from attnlab.data.batching import Batches, BatchPlan
from attnlab.data.text.stream import Blocks, Stream, must_fill_a_block, read_stream
from attnlab.jobs.engine import TrainingJob
from attnlab.jobs.job import Parts, TrainedModel
from attnlab.jobs.samples import samples_passages, write_samples
from attnlab.models.gpt import GPT, make_gpt, model_files
from attnlab.models.loading import load_gpt
from attnlab.report.page import Passage
from attnlab.runs import RunFolder, read_config
from attnlab.stats.intervals import Mean
from attnlab.training.callbacks import TrainState
from attnlab.training.estimate import estimate, measure_speed
from attnlab.training.objectives import NextToken, mean_loss

AT_ONCE = 8192  # tokens per pass while measuring
LENGTHS_FILE = "lengths.json"


class LanguageJob(TrainingJob[LanguageConfig]):
    kind = "language"

    def build(self, device: str) -> Parts:
        config = self.config
        stream = self.read()
        model = make_gpt(config.model, stream.vocabulary)
        train, dev = (Blocks.cut(part, self.length) for part in (stream.train, stream.dev))
        watched = dev.sample(config.measures.dev_blocks)

        def finish(run: RunFolder, state: TrainState) -> dict[str, Any]:
            model.eval()
            results = _losses(model, train.sample(len(dev)), dev, config.measures.prefix_blocks, device)
            if config.measures.lengths:
                by_length = losses_by_length(model, stream.dev, config.measures.lengths, device)
                write_text(run.path / LENGTHS_FILE, json.dumps(by_length))
            if config.measures.samples:
                write_samples(run.path, model, stream.vocabulary, config.measures, stream.dev, self.length)
            batches = self.batches(train)
            speed = measure_speed(model, NextToken(), batches, config)
            cost = estimate(model, NextToken(), batches, 1, device)
            return {**results, "tokens_per_second": speed.tokens_per_second, "step_memory_mib": cost.bytes / 2**20}

        facts = {
            "source": str(config.data.corpus),
            "sha256": sha256(Path(str(config.data.corpus))),
            "train_tokens": len(stream.train),
            "dev_tokens": len(stream.dev),
            "blocks": len(train),
            "vocabulary": len(stream.vocabulary),
            "unknown_share": round(stream.unknown_share, 4),
        }
        return Parts(
            model,
            NextToken(),
            train,
            mean_loss(Batches(watched, BatchPlan(watched.lengths)), device),
            files=model_files(config.model, stream.vocabulary),
            facts=facts,
            finish=finish,
            passages=self.passages,
        )

    @classmethod
    def load(cls, run: Path) -> TrainedModel:
        return load_gpt(run)

    @classmethod
    def passages(cls, run: Path, record: dict[str, Any]) -> Sequence[Passage]:
        return samples_passages(run, check(LanguageConfig, read_config(run)).measures)

    @property
    def length(self) -> int:
        """Tokens per block, in training and in validation."""
        return self.config.data.train_context or self.config.model.context

    def batches(self, train: Blocks) -> Batches:
        """The training batches, as in the run."""
        batch = self.config.batch
        plan = BatchPlan(train.lengths, batch.size, batch.tokens, seed=self.config.training.seed)  # type: ignore[arg-type]
        return Batches(train, plan, batch.accumulate)

    def read(self) -> Stream:
        """Read the text; raise if it is too short for the blocks or the lengths to measure."""
        config = self.config
        if config.data.corpus is None:
            raise UserError("--corpus is missing: give the text file to train on.")
        if self.length > config.model.context:
            raise UserError(
                f"--train-context {self.length} is longer than the context of {config.model.context} "
                "the model is built for: make --context larger."
            )
        path = Path(config.data.corpus)
        stream = read_stream(path, config.data.tokens, config.data.dev_share, config.data.rare)
        must_fill_a_block(path, "training", stream.train, self.length)
        must_fill_a_block(path, "validation", stream.dev, max([self.length, *config.measures.lengths]))
        return stream


def perplexity(loss: float) -> float:
    return math.exp(loss) if loss < 700 else math.inf


def _losses(model: GPT, train: Blocks, dev: Blocks, prefix_blocks: int, device: str) -> dict[str, float]:
    """Losses on a part of the training text as long as the validation text, on the validation text, and on a sample of
    it in one pass and prefix by prefix."""
    losses = {"train": mean_of(model, train, device), "dev": mean_of(model, dev, device)}
    if prefix_blocks:
        some = dev.sample(prefix_blocks)
        losses["sample"] = mean_of(model, some, device)
        with torch.no_grad():
            losses["prefix"] = float(prefix_losses(model, some.tokens.to(device), some.targets.to(device)).mean())
    return {f"{name}_loss": loss for name, loss in losses.items()} | {
        f"{name}_perplexity": perplexity(loss) for name, loss in losses.items()
    }


@torch.no_grad()
def losses_by_position(model: GPT, blocks: Blocks, device: str) -> Tensor:
    """(T,): the mean loss at each position of a block."""
    rows = max(1, AT_ONCE // blocks.tokens.shape[1])
    total = sum(token_losses(model, x.to(device), y.to(device)).double().sum(0) for x, y in blocks.parts(rows))
    assert isinstance(total, Tensor)
    return total.cpu() / len(blocks)


def mean_of(model: GPT, blocks: Blocks, device: str) -> float:
    return float(losses_by_position(model, blocks, device).mean())


def losses_by_length(model: GPT, dev: Tensor, lengths: list[int], device: str) -> dict[str, Any]:
    """The loss on the validation text cut at each length; for a length the model cannot read, the reason.

    The text ends where the longest blocks end: lengths that divide the longest see the same tokens.
    """
    end = (len(dev) - 1) // max(lengths) * max(lengths)
    by_length: dict[str, Any] = {}
    for length in lengths:
        if model.longest is not None and length > model.longest:
            by_length[str(length)] = {"reason": f"it has a table of {model.longest} positions and none beyond"}
            continue
        by_position = losses_by_position(model, Blocks.cut(dev[: end + 1], length), device)
        by_length[str(length)] = {"loss": float(by_position.mean()), "by_position": by_position.tolist()}
    return by_length


def token_losses(model: nn.Module, tokens: Tensor, targets: Tensor) -> Tensor:
    """Losses (B, T) for tokens and targets (B, T), in one pass."""
    logits = model(tokens)  # (B, T, V)
    return F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")


def prefix_losses(model: nn.Module, tokens: Tensor, targets: Tensor) -> Tensor:
    """The same (B, T), in T passes without a cache, which could hide a leak."""
    losses = tokens.new_zeros(tokens.shape, dtype=next(model.parameters()).dtype)
    for t in range(tokens.shape[1]):
        logits = model(tokens[:, : t + 1])[:, -1]  # (B, V)
        losses[:, t] = F.cross_entropy(logits, targets[:, t], reduction="none")
    return losses


def shown_perplexity(mean: Mean, brief: bool = False) -> str:
    """exp of the mean loss with exp of its interval."""
    if not mean.count:
        return "not measured"
    ends = None if brief else mean.interval
    return _exp(mean.mean) + (f" ({_exp(ends[0])} to {_exp(ends[1])})" if ends else "")


def _exp(loss: float) -> str:
    value = math.exp(min(loss, 700.0))
    return f"{value:.3f}" if value < 1000 else f"{value:,.0f}" if value < 1e7 else f"{value:.3g}"


def steps_in(seconds: float, config: LanguageConfig) -> int:
    """How many training steps of this model fit into a budget, by the measured speed of a copy.

    Fixed before the first run of a variant and the same for all its seeds: a schedule needs to know where it ends.
    """
    torch.set_num_threads(int(config.machine.threads))
    seed_everything(config.training.seed)
    job = LanguageJob(config)
    parts = job.build(config.machine.device)
    speed = measure_speed(parts.model, parts.objective, job.batches(parts.data), config)  # type: ignore[arg-type]
    return max(1, round(seconds / speed.seconds_per_step))
