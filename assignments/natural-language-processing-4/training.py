"""The training loop: AdamW, a rate that rises and falls linearly, evaluation on dev, the best model kept.

Everything the next step depends on is in one file, written at every evaluation and every save_steps: weights,
optimizer, random numbers, progress. After a kill, training resumes there and ends with the same weights, to the bit.
"""

from __future__ import annotations

import argparse
import io
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from errors import UserError, note
from files import write_whole

Losses = Callable[[int], Mapping[str, Tensor]]
"""The losses of batch number n; `loss` is the one to minimise, the others are recorded."""


class Scores(NamedTuple):
    accuracy: float
    loss: float


@dataclass
class Progress:
    step: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    best_step: int = 0
    best_accuracy: float = -1.0
    history: list[dict[str, float]] = field(default_factory=list)
    """One entry per evaluation: step, mean losses since the last one, scores on dev."""
    sums: dict[str, float] = field(default_factory=dict)
    """Losses since the last evaluation, added up."""


def train(
    model: nn.Module,
    losses: Losses,
    score_dev: Callable[[], Scores],
    keep_best: Callable[[], None],
    args: argparse.Namespace,
    steps: int,
    checkpoint: Path,
) -> Progress:
    """Train for `steps` steps, or those left after the checkpoint."""
    optimizer = torch.optim.AdamW(
        parameter_groups(model, args.weight_decay), lr=args.learning_rate, eps=args.adam_epsilon, fused=True
    )
    scaler = torch.amp.GradScaler(enabled=args.fp16)  # changes nothing unless enabled
    progress = _resume(checkpoint, model, optimizer, scaler)
    started, cpu_started = time.monotonic() - progress.seconds, time.process_time() - progress.cpu_seconds
    while progress.step < steps:
        model.train()
        for group in optimizer.param_groups:
            group["lr"] = args.learning_rate * rate_factor(progress.step, args.warmup_steps, steps)
        optimizer.zero_grad()
        for part in range(args.gradient_accumulation_steps):
            with torch.autocast("cuda", torch.float16, enabled=args.fp16):
                output = losses(progress.step * args.gradient_accumulation_steps + part)
            if not torch.isfinite(output["loss"]):
                raise UserError(f"the loss is {output['loss']:.0f} at step {progress.step}: lower --learning_rate.")
            scaler.scale(output["loss"] / args.gradient_accumulation_steps).backward()
            for name, value in output.items():
                progress.sums[name] = progress.sums.get(name, 0.0) + float(value.detach())
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), args.max_grad_norm)
        scaler.step(optimizer)
        scaler.update()

        progress.step += 1
        last = progress.step == steps
        evaluate = last or (args.evaluate_during_training and progress.step % args.logging_steps == 0)
        if evaluate:
            _record(progress, score_dev(), steps, args)
            if progress.best_step == progress.step:
                keep_best()
        if evaluate or (args.save_steps > 0 and progress.step % args.save_steps == 0):
            progress.seconds = time.monotonic() - started
            progress.cpu_seconds = time.process_time() - cpu_started
            _save(checkpoint, model, optimizer, scaler, progress)
    return progress


def rate_factor(step: int, warmup: int, steps: int) -> float:
    """The learning rate of a step as a share of its peak: linear from 0 to 1 in the warm-up, then linear to 0."""
    if step < warmup:
        return step / warmup
    return (steps - step) / max(1, steps - warmup)


def parameter_groups(model: nn.Module, weight_decay: float) -> list[dict[str, object]]:
    """Weight decay is for matrices: embeddings, biases and norms have none."""
    tables = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    matrices = [p for p in model.parameters() if p.ndim == 2 and id(p) not in tables]
    others = [p for p in model.parameters() if p.ndim != 2 or id(p) in tables]
    return [{"params": matrices, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]


def _record(progress: Progress, scores: Scores, steps: int, args: argparse.Namespace) -> None:
    """Enter an evaluation; a better accuracy on dev than all before makes this step the best."""
    batches = (progress.step - (progress.history[-1]["step"] if progress.history else 0)) * (
        args.gradient_accumulation_steps
    )
    means = {name: total / batches for name, total in progress.sums.items()}
    progress.sums = {}
    progress.history.append({"step": progress.step, **means, "dev_acc": scores.accuracy, "dev_loss": scores.loss})
    if scores.accuracy > progress.best_accuracy:
        progress.best_step, progress.best_accuracy = progress.step, scores.accuracy
    shown = ", ".join(f"{name} {value:.4f}" for name, value in progress.history[-1].items() if name != "step")
    note(f"step {progress.step} of {steps}: {shown}")


def _save(
    path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, scaler: torch.amp.GradScaler, progress: Progress
) -> None:
    buffer = io.BytesIO()
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scaler": scaler.state_dict(),
        "random": torch.get_rng_state(),
        "random_cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
        "progress": asdict(progress),
    }
    torch.save(state, buffer)
    write_whole(path, [buffer.getbuffer()])


def _resume(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, scaler: torch.amp.GradScaler) -> Progress:
    if not path.is_file():
        return Progress()
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # those of pickle have no common base
        raise UserError(f"{path} cannot be read ({error}): remove it to start again.") from None
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    scaler.load_state_dict(state["scaler"])
    torch.set_rng_state(state["random"])
    if torch.cuda.is_available():
        torch.cuda.set_rng_state_all(state["random_cuda"])
    progress = Progress(**state["progress"])
    note(f"resuming after step {progress.step}.")
    return progress
