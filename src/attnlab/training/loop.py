"""The one training loop of the lab. It is independent of GPT, BERT or labels.

A model and an objective give a loss; batches come from a stream that can start anywhere; devices and precision come
from `accelerate`, and what several processes must agree on from `processes`: each works on its part of a batch, and all
end a step with the same weights. zero_grad, backward and step are in `_step`.
"""

from __future__ import annotations

import errno
import math
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Literal

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from attnlab.base.errors import RunFailed, UserError, first_line
from attnlab.base.interrupts import Interrupted, Stopped, StopRequest
from attnlab.base.randomness import random_untouched
from attnlab.config import TrainingSection
from attnlab.config.sections import parse_every
from attnlab.data.batching import Batch, Batches
from attnlab.distributed import sharding
from attnlab.distributed.team import ALONE, Processes, load_random_of, random_of_all, sharing
from attnlab.runs.checkpoints import Checkpoint, Checkpoints, load_weights, read_checkpoint, weights_of
from attnlab.training.callbacks import Callback, RunLength, StepReport, TrainState, Where, Window
from attnlab.training.compiling import compiled
from attnlab.training.objectives import Evaluate, Objective, StepLoss
from attnlab.training.optimizers import Schedule, load_optimizer, optimizer_tensors

NOT_WRITTEN = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "a file would be larger than this process may write (ulimit -f)",
    errno.EROFS: "the file system has become read-only",
    errno.EIO: "the disk reports an error",
}


@dataclass(frozen=True)
class Metric:
    """The dev metric that decides which checkpoint is best."""

    name: str
    better: Literal["higher", "lower"]
    tie: str | None = None
    """Of equally good ones the one where this is lower."""

    def improves(self, values: Mapping[str, float], best: float | None, tie: float | None = None) -> bool:
        value = values[self.name]
        if best is None or math.isnan(best):
            return True
        if value == best and self.tie is not None and tie is not None:
            return values[self.tie] < tie
        return value > best if self.better == "higher" else value < best


@dataclass
class Learner:
    """The model, its objective and data, and how it is evaluated on dev."""

    model: nn.Module
    objective: Objective
    batches: Batches
    evaluate: Evaluate | None = None
    metric: Metric | None = None
    whole: nn.Module | None = None
    """The unsharded copy of a sharded model, used for evaluation and saving."""


@dataclass
class Plan:
    """How the weights are updated, for how long, and when to log, evaluate and save."""

    optimizer: torch.optim.Optimizer
    schedule: Schedule
    settings: TrainingSection
    clip: float | None = 1.0


@dataclass
class Environment:
    """Where training runs, its checkpoints and its callbacks."""

    accelerator: Accelerator
    processes: Processes = ALONE
    checkpoints: Checkpoints | None = None
    callbacks: Sequence[Callback] = ()
    stop: StopRequest = field(default_factory=StopRequest)
    compile: bool = False


class Trainer:
    """Trains a model. Everything that changes is in `state`, the model and the optimizer."""

    def __init__(self, learner: Learner, plan: Plan, environment: Environment) -> None:
        accelerator = environment.accelerator
        self.accelerator, self.processes, self.compile = accelerator, environment.processes, environment.compile
        self.model, self.optimizer = accelerator.prepare(learner.model, plan.optimizer)
        self.whole = self.model if learner.whole is None else learner.whole.to(accelerator.device)
        # Steps use the compiled model. Evaluation and decoding use the model itself: their shapes vary too much.
        self.losses = StepLoss(compiled(self.model) if environment.compile else self.model, learner.objective)
        self.stepping = environment.processes.spread(self.losses)
        self.learning = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        self.objective, self.batches = learner.objective, learner.batches
        self.evaluate, self.metric = learner.evaluate, learner.metric
        self.schedule, self.settings, self.clip = plan.schedule, plan.settings, plan.clip
        self.checkpoints, self.callbacks = environment.checkpoints, environment.callbacks
        self.stop = environment.stop
        self.state = TrainState()
        self.stop_requested = False
        self.window = Window()

    def fit(self) -> TrainState:
        """Train from `state` to the end, to early stopping or to an interruption."""
        self._notify("on_start", self.state, RunLength(self.schedule.steps, self.batches.steps_in(0)))
        try:
            self._run_or_save()
            self._gather_sharded()
        except OSError as error:
            if error.errno not in NOT_WRITTEN:
                raise
            raise RunFailed(
                f"{NOT_WRITTEN[error.errno]}: the checkpoint of step {self.state.step} could not be written. "
                "The earlier checkpoints are complete: mend that and resume."
            ) from error
        finally:
            self._notify("on_end", self.state)
        return self.state

    def _run_or_save(self) -> None:
        try:
            self._run()
        except Stopped:
            self.save()
            raise

    def _run(self) -> None:
        state = self.state
        self.model.train()
        self._evaluate_if_due()  # an evaluation that was interrupted
        if not self._finished():
            self._compile_if_enabled()
            for step_batches, place in self.batches.stream(state.epoch, state.batch):
                report = self._step(step_batches)
                state.step += 1
                state.epoch, state.batch = place
                self._count(report)
                if state.step % self.settings.log_every == 0:
                    self._log()
                self._notify("on_step", state, report)
                self._evaluate_if_due()
                if self._finished():
                    break
                if self._due(self.settings.save_every):
                    self.save()
                self._stop_if_requested()
        self.save()

    def _compile_if_enabled(self) -> None:
        """Compile on the first batch of the run, also after a resume: the compiled code depends on the first batch."""
        if not self.compile:
            return
        first = self.batches.share(self.batches.plan.epoch(0)[0], 0).to(self.accelerator.device)
        with random_untouched():
            try:
                self.accelerator.backward(self.stepping(first, [1.0] * len(self.losses.weights(first))))
            except Exception as error:  # compilers raise many kinds
                raise RunFailed(
                    f"torch.compile does not work for this model here ({first_line(error)}): use --compile off."
                ) from error
        self.optimizer.zero_grad()

    def _step(self, step_batches: list[Batch]) -> StepReport:
        """One optimizer step on one batch, or on several whose gradients are added up.

        Nothing here waits for the device: losses and norms stay tensors until they are logged.
        """
        start = time.perf_counter()
        weights = [self.losses.weights(batch) for batch in step_batches]
        *totals, examples, tokens, positions, stops = self.processes.total(
            [
                *map(sum, zip(*weights, strict=True)),
                sum(batch.examples for batch in step_batches),
                sum(batch.tokens for batch in step_batches),
                sum(batch.positions for batch in step_batches),
                float(self.stop.received is not None),
            ]
        )
        self.stop_requested = stops > 0  # known to every process at the same step
        losses: list[Tensor] = []
        self.optimizer.zero_grad()
        for n, (batch, weight) in enumerate(zip(step_batches, weights, strict=True)):
            last = n == len(step_batches) - 1
            with self.processes.watching(), nullcontext() if last else self.processes.adding_up(self.stepping):
                value = self.stepping(batch.to(self.accelerator.device), self._shares(weight, totals))
                self.accelerator.backward(value)
            losses.append(value.detach())
        norm = self._clipped_norm()
        rate = self._set_rate()
        self.optimizer.step()
        report = StepReport(rate, time.perf_counter() - start, int(examples), int(tokens), int(positions))
        indices = [index for batch in step_batches for index in batch.indices]
        where = Where(self.state.step + 1, self.state.epoch + 1, self.state.batch + 1, indices)
        self.window.add(report, sum(losses[1:], losses[0]) / self.processes.count, norm, where)
        return report

    def _shares(self, weights: list[float], totals: list[float]) -> list[float]:
        """The factor of each part's mean loss, so that every target of the step counts equally in any process.

        Gradients are averaged over the processes, hence the number of processes as a factor.
        """
        return [
            self.processes.count * (weight / total if total else 1.0)
            for weight, total in zip(weights, totals, strict=True)
        ]

    def _clipped_norm(self) -> Tensor | None:
        if self.clip is None:
            return None
        norm = self.accelerator.clip_grad_norm_(self.learning, self.clip)
        return None if norm is None else self.processes.full_tensor(norm).detach()

    def _set_rate(self) -> float:
        """The schedule's factor times each group's peak; returns the rate of the last group."""
        factor = self.schedule(self.state.step, self.state.tokens)
        for group in self.optimizer.param_groups:
            group["lr"] = group["peak_lr"] * factor
        return float(self.optimizer.param_groups[-1]["lr"])

    def _log(self) -> None:
        """One line for the steps since the last one."""
        self._must_be_finite()
        self._notify("on_log", self.state, self.window.line())

    def _must_be_finite(self) -> None:
        """Raise if a loss since the last check is not finite; all processes check at the same steps."""
        scaled = self.accelerator.scaler is not None  # fp16's loss scaling skips steps with infinite gradients
        bad = self.window.settle(self.processes, infinite_norms=scaled)
        if bad is None:
            return
        indices = [index for part in self.processes.gather(bad.where.indices) for index in part]
        shown = ", ".join(map(str, indices[:8])) + (", ..." if len(indices) > 8 else "")
        raise RunFailed(
            f"{bad.what} at step {bad.where.step} (learning rate {bad.rate:.3g}, epoch {bad.where.epoch}, "
            f"batch {bad.where.batch}, examples {shown}): try a lower rate or a longer warm-up; "
            "the last good checkpoint is kept."
        )

    def _count(self, report: StepReport) -> None:
        self.state.examples += report.examples
        self.state.tokens += report.tokens
        self.state.positions += report.positions
        self.state.seconds += report.seconds

    def _due(self, every: str) -> bool:
        """Whether the last step completes 'N steps' or 'N epochs'."""
        count, unit = parse_every(every)
        if count == 0 or self.state.step == 0:
            return False
        if unit == "steps":
            return self.state.step % count == 0
        return self.state.batch == 0 and self.state.epoch % count == 0

    def _finished(self) -> bool:
        return self.state.stopped_early or self.state.step >= self.schedule.steps

    def _evaluate_if_due(self) -> None:
        if self.evaluate is None or self.state.evaluated_at == self.state.step:
            return
        last = self.state.step >= self.schedule.steps and parse_every(self.settings.evaluate_every)[0] > 0
        if not (last or self._due(self.settings.evaluate_every)):
            return
        self._must_be_finite()
        self._gather_sharded()
        values = self._evaluate()
        self.state.evaluated_at, self.state.last = self.state.step, values
        better = self._compare_with_best(values)
        self.processes.together(lambda: self._notify("on_evaluate", self.state, values, better))

    def _evaluate(self) -> dict[str, float]:
        """Every process evaluates; what it does batch by batch is shared among them."""
        assert self.evaluate is not None
        self.whole.eval()
        guard = self.stop.at_once  # not around the exchange of results: a process that left would be waited for
        together = guard() if self.processes.count == 1 else sharing(self.processes, guard)
        with together, random_untouched(), torch.no_grad():
            values = self.evaluate(self.whole)
        self.whole.train()
        return self.processes.from_first(lambda: values)

    def _gather_sharded(self) -> None:
        if self.whole is not self.model:
            sharding.gather_weights(self.model, self.whole)

    def _stop_if_requested(self) -> None:
        """All processes stop after the same step, whichever received the signal."""
        alone = self.processes.count == 1
        if (self.stop.received is not None) if alone else self.stop_requested:
            raise Interrupted(signal.Signals(self.processes.largest(int(self.stop.received or 0))))

    def _compare_with_best(self, values: dict[str, float]) -> bool:
        """Save the weights if they are the best so far; count evaluations without improvement."""
        if self.metric is None:
            return False
        value = values[self.metric.name]
        better = self.metric.improves(values, self.state.best, self.state.best_tie)
        if better:
            self.state.best, self.state.best_step, self.state.worse = value, self.state.step, 0
            self.state.best_tie = values[self.metric.tie] if self.metric.tie is not None else None
            if self.checkpoints is not None and self.processes.first:
                weights = weights_of(self.accelerator.unwrap_model(self.whole))
                self.checkpoints.save_best(self.state.step, weights, {"step": self.state.step, **values})
        else:
            self.state.worse += 1
            self.state.stopped_early = self.settings.patience is not None and (
                self.state.worse >= self.settings.patience
            )
        return better

    def save(self) -> None:
        """Write a checkpoint of the current state; raises, and writes nothing, if a loss is not finite."""
        if self.checkpoints is None:
            return
        self._must_be_finite()
        generators, plain = random_of_all(self.processes)
        if not self.processes.first and self.whole is self.model:
            return
        self._gather_sharded()
        tensors = {
            "model": weights_of(self.accelerator.unwrap_model(self.whole)),
            "optimizer": optimizer_tensors(
                self.accelerator.unwrap_model(self.model), self._inner_optimizer(), self.processes
            ),
            "random": generators,
        }
        if not self.processes.first:
            return
        self._notify("on_save", self.state)
        state = {"training": self.state.to_dict(), "window": self.window.to_dict(), "random": plain}
        if self.accelerator.scaler is not None:  # fp16's loss scaling adapts during training
            state["scaler"] = self.accelerator.scaler.state_dict()
        self.checkpoints.save(self.state.step, tensors, state)

    def restore(self) -> bool:
        """Load the newest good checkpoint; False if there is none."""
        checkpoint = self._newest()
        if checkpoint is None:
            return False
        try:
            self._load(checkpoint)
        except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            reason = f"no {error}" if isinstance(error, KeyError) else first_line(error)
            raise UserError(f"{checkpoint.path} does not belong to this run ({reason}): delete it.") from error
        return True

    def _load(self, checkpoint: Checkpoint) -> None:
        model = self.accelerator.unwrap_model(self.model)
        load_weights(self.accelerator.unwrap_model(self.whole), checkpoint.tensors["model"])
        if self.whole is not self.model:
            sharding.scatter_weights(self.whole, self.model)
        load_optimizer(model, self._inner_optimizer(), checkpoint.tensors["optimizer"], self.processes)
        load_random_of(self.processes.rank, checkpoint.tensors["random"], checkpoint.state["random"])
        if self.accelerator.scaler is not None:
            self.accelerator.scaler.load_state_dict(checkpoint.state["scaler"])
        self.state = TrainState.from_dict(checkpoint.state["training"])
        self.window = Window.from_dict(checkpoint.state.get("window", {}))  # earlier versions have none

    def _newest(self) -> Checkpoint | None:
        """The first process chooses, and sets damaged ones aside; the others read the same."""
        if self.checkpoints is None:
            return None
        checkpoint = self.checkpoints.repaired() if self.processes.first else None
        path = self.processes.from_first(lambda: checkpoint.path if checkpoint is not None else None)
        return checkpoint if checkpoint is not None or path is None else read_checkpoint(path)

    def _inner_optimizer(self) -> torch.optim.Optimizer:
        return getattr(self.optimizer, "optimizer", self.optimizer)

    def _notify(self, event: str, *args: object) -> None:
        for callback in self.callbacks:
            getattr(callback, event)(*args)
