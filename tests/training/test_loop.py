"""The loop: what it promises about gradients, evaluation, stopping, and resuming after a stop."""

import errno
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from accelerate import Accelerator
from torch import nn

from attnlab.base.errors import RunFailed
from attnlab.base.interrupts import Interrupted, StopRequest, listening
from attnlab.base.randomness import seed_everything
from attnlab.config import MachineSection, OptimizerSection, ScheduleSection, TrainingSection
from attnlab.data.batching import Batch, Batches, BatchPlan
from attnlab.runs.checkpoints import Checkpoints
from attnlab.training.callbacks import Callback, LogLine, StepReport, TrainState
from attnlab.training.loop import Environment, Learner, Metric, Plan, Trainer
from attnlab.training.optimizers import Schedule, make_optimizer
from attnlab.training.setup import make_accelerator

TARGETS = torch.randn(48, 3, generator=torch.Generator().manual_seed(1))


class Points:
    """Inputs and targets; example `poison` has an infinite target."""

    def __init__(self, poison: int | None = None) -> None:
        self.lengths = [1] * 48
        self.poison = poison

    def collate(self, indices: Sequence[int], epoch: int) -> dict[str, torch.Tensor]:
        x = torch.stack([torch.cos(torch.arange(4.0) * (n + 1)) for n in indices])
        y = TARGETS[torch.tensor(indices)].clone()
        if self.poison in indices:
            y[list(indices).index(self.poison)] = float("inf")
        return {"x": x, "y": y}


class Squares:
    def weight(self, batch: Batch) -> float:
        return float(batch.examples)

    def __call__(self, model: nn.Module, batch: Batch) -> torch.Tensor:
        return F.mse_loss(model(batch.inputs["x"]), batch.inputs["y"])


def accelerator() -> Accelerator:
    return make_accelerator(MachineSection(device="cpu", precision="fp32", threads=1))


def make(
    folder: Path | None = None,
    *,
    size: int = 8,
    accumulate: int = 1,
    dropout: float = 0.3,
    optimizer: str = "adamw",
    points: Points | None = None,
    steps: int = 24,
    **extra: Any,
) -> Trainer:
    seed_everything(0)
    model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Dropout(dropout), nn.Linear(16, 3))
    points = points or Points()
    settings = TrainingSection(steps=steps, **extra.pop("settings", {}))
    lr = extra.pop("lr", 0.01)
    judged = {name: extra.pop(name) for name in ("evaluate", "metric") if name in extra}
    return Trainer(
        Learner(model, Squares(), Batches(points, BatchPlan(points.lengths, size=size), accumulate), **judged),
        Plan(
            make_optimizer(model, OptimizerSection(name=optimizer, lr=lr)),
            Schedule(ScheduleSection(warmup_steps=2), steps),
            settings,
            extra.pop("clip", 1.0),
        ),
        Environment(accelerator(), checkpoints=Checkpoints(folder) if folder else None, **extra),
    )


def weights(trainer: Trainer) -> list[torch.Tensor]:
    return [p.detach().clone() for p in trainer.model.parameters()]


def same(one: Trainer, two: Trainer) -> bool:
    return all(torch.equal(a, b) for a, b in zip(weights(one), weights(two), strict=True))


def test_it_equals_a_bare_pytorch_loop() -> None:
    trainer = make()
    trainer.fit()
    reference = make()
    model, optimizer = reference.model, reference.optimizer
    step = 0
    for epoch in range(4):
        for indices in reference.batches.plan.epoch(epoch):
            batch = reference.batches.collate(indices, epoch)
            model.train()
            optimizer.zero_grad()
            F.mse_loss(model(batch.inputs["x"]), batch.inputs["y"]).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            for group in optimizer.param_groups:
                group["lr"] = 0.01 * reference.schedule(step, 0)
            optimizer.step()
            step += 1
    assert step == 24 and same(trainer, reference)


def test_gradients_added_up_over_small_batches_equal_one_large_batch() -> None:
    """Also when the last small batch is smaller than the others: every example weighs the same."""
    one = make(size=48, dropout=0.0, steps=6, clip=None)
    many = make(size=7, accumulate=7, dropout=0.0, steps=6, clip=None)
    one.fit(), many.fit()
    for a, b in zip(weights(one), weights(many), strict=True):
        assert torch.allclose(a, b, atol=1e-6)


class StopAt(Callback):
    """Asks to stop after some step, as a signal would."""

    def __init__(self, request: StopRequest, step: int) -> None:
        self.request, self.step = request, step

    def on_step(self, state: TrainState, report: StepReport) -> None:
        if state.step == self.step:
            self.request.received = signal.SIGTERM


@pytest.mark.parametrize("optimizer", ["adamw", "muon", "sgd", "adagrad", "adafactor"])
@pytest.mark.parametrize("stop_at", [1, 6, 13])
def test_a_stopped_run_resumes_to_the_bit(tmp_path: Path, optimizer: str, stop_at: int) -> None:
    whole = make(optimizer=optimizer)
    whole.fit()
    request = StopRequest()
    first = make(tmp_path, optimizer=optimizer, stop=request, callbacks=[StopAt(request, stop_at)])
    with pytest.raises(Interrupted):
        first.fit()
    assert first.state.step == stop_at
    second = make(tmp_path, optimizer=optimizer)
    torch.manual_seed(99)  # whatever the generators held, the checkpoint decides
    assert second.restore() and second.state.step == stop_at
    second.fit()
    assert same(whole, second)
    counts = ("step", "epoch", "batch", "examples", "tokens")
    assert [getattr(second.state, n) for n in counts] == [getattr(whole.state, n) for n in counts]


def test_evaluating_often_changes_nothing() -> None:
    rarely = make()
    rarely.fit()
    often = make(settings={"evaluate_every": "1 step"}, evaluate=lambda model: {"noise": float(torch.rand(()))})
    often.fit()
    assert same(rarely, often)


def scripted(values: list[float]) -> Any:
    remaining = iter(values)
    return lambda model: {"accuracy": next(remaining)}


def test_the_best_weights_on_dev_are_kept_and_patience_ends_the_run(tmp_path: Path) -> None:
    trainer = make(
        tmp_path,
        evaluate=scripted([0.1, 0.5, 0.4, 0.3, 0.9]),
        metric=Metric("accuracy", "higher"),
        settings={"evaluate_every": "2 steps", "patience": 2},
    )
    state = trainer.fit()
    assert state.stopped_early and state.step == 8 and (state.best, state.best_step) == (0.5, 4)
    best = Checkpoints(tmp_path).best()
    assert best is not None and best.state == {"step": 4, "accuracy": 0.5}


def test_of_equally_good_weights_those_with_the_lower_loss_are_kept(tmp_path: Path) -> None:
    dev = iter([(0.5, 0.7), (0.9, 0.4), (0.9, 0.3), (0.9, 0.35), (0.8, 0.1)])
    trainer = make(
        tmp_path,
        steps=10,
        evaluate=lambda model: dict(zip(("accuracy", "loss"), next(dev), strict=True)),
        metric=Metric("accuracy", "higher", "loss"),
        settings={"evaluate_every": "2 steps"},
    )
    state = trainer.fit()
    assert (state.best, state.best_tie, state.best_step) == (0.9, 0.3, 6)
    best = Checkpoints(tmp_path).best()
    assert best is not None and best.state["step"] == 6


def test_patience_is_remembered_over_a_stop(tmp_path: Path) -> None:
    request = StopRequest()
    every = {"evaluate_every": "2 steps", "patience": 2}
    metric = Metric("accuracy", "higher")
    first = make(
        tmp_path,
        evaluate=scripted([0.5, 0.4]),
        metric=metric,
        settings=every,
        stop=request,
        callbacks=[StopAt(request, 5)],
    )
    with pytest.raises(Interrupted):
        first.fit()
    second = make(tmp_path, evaluate=scripted([0.3]), metric=metric, settings=every)
    second.restore()
    assert second.fit().step == 6 and second.state.best == 0.5


def test_an_evaluation_cut_short_is_made_up_for(tmp_path: Path) -> None:
    """A signal during an evaluation ends it at once; the resumed run evaluates that step first."""
    with listening() as request:

        def interrupted(model: nn.Module) -> dict[str, float]:
            os.kill(os.getpid(), signal.SIGTERM)
            return {"accuracy": 1.0}

        first = make(tmp_path, evaluate=interrupted, settings={"evaluate_every": "4 steps"}, stop=request)
        with pytest.raises(Interrupted):
            first.fit()
    assert first.state.step == 4 and first.state.evaluated_at == -1
    seen: list[int] = []
    second = make(tmp_path, settings={"evaluate_every": "4 steps"})
    second.evaluate = lambda model: {"accuracy": float(seen.append(second.state.step) or 0)}
    second.restore()
    second.fit()
    assert seen == [4, 8, 12, 16, 20, 24]


def test_a_loss_that_is_not_finite_stops_the_run_and_names_it(tmp_path: Path) -> None:
    trainer = make(tmp_path, points=Points(poison=11), settings={"save_every": "1 step"})
    with pytest.raises(RunFailed) as failure:
        trainer.fit()
    text = str(failure.value)
    assert "the loss is inf" in text and f"step {trainer.state.step} " in text
    assert "learning rate" in text and "batch" in text and "11" in text
    newest = Checkpoints(tmp_path).newest()  # of the last good step
    assert (newest is None and trainer.state.step == 1) or (
        newest is not None
        and newest.state["training"]["step"] == trainer.state.step - 1
        and all(torch.isfinite(tensor).all() for tensor in newest.tensors["model"].values())
    )


def test_losses_are_fetched_once_per_line_and_the_step_is_named_all_the_same(tmp_path: Path) -> None:
    """Nothing waits for the device between two lines; what went wrong is found at the next one, and not saved."""
    named = make(points=Points(poison=11), settings={"save_every": "1 step"})
    with pytest.raises(RunFailed) as at_once:
        named.checkpoints = Checkpoints(tmp_path / "one")
        named.fit()
    late = make(tmp_path / "two", points=Points(poison=11), settings={"save_every": "0", "log_every": 20})
    with pytest.raises(RunFailed) as later:
        late.fit()
    assert str(later.value) == str(at_once.value) and late.state.step == 20
    assert Checkpoints(tmp_path / "two").newest() is None


def test_a_line_is_the_mean_of_its_steps() -> None:
    lines: list[float] = []

    class Lines(Callback):
        def on_log(self, state: TrainState, line: LogLine) -> None:
            lines.append(line.loss)

    make(callbacks=[Lines()], settings={"log_every": 1}, dropout=0.0).fit()
    each, lines = lines, []
    make(callbacks=[Lines()], settings={"log_every": 4}, dropout=0.0).fit()
    assert lines == pytest.approx([sum(each[n : n + 4]) / 4 for n in range(0, len(each), 4)])


def test_a_full_disk_stops_the_run_with_the_last_checkpoint_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = make(tmp_path, settings={"save_every": "5 steps"})
    real = Checkpoints.save

    def save(self: Checkpoints, step: int, *rest: Any) -> Path:
        if step == 10:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(self, step, *rest)

    monkeypatch.setattr(Checkpoints, "save", save)
    with pytest.raises(RunFailed, match="the disk is full: the checkpoint of step 10"):
        trainer.fit()
    newest = Checkpoints(tmp_path).newest()
    assert newest is not None and newest.state["training"]["step"] == 5
