"""Training through torch.compile: the same weights and names, exact after a stop; and what 'auto' says."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from attnlab.base.errors import RunFailed, UserError
from attnlab.base.interrupts import Interrupted, StopRequest
from attnlab.base.randomness import seed_everything
from attnlab.config import MachineSection, OptimizerSection, ScheduleSection, TrainingSection, check
from attnlab.config.language import LanguageConfig
from attnlab.data.batching import Batch, Batches, BatchPlan
from attnlab.runs.checkpoints import Checkpoints
from attnlab.training import compile_choice, loop, setup
from attnlab.training.callbacks import Callback, StepReport, TrainState
from attnlab.training.compile_choice import choose_compile, decide
from attnlab.training.estimate import TrainingSpeed
from attnlab.training.loop import Environment, Learner, Plan, Trainer
from attnlab.training.optimizers import Schedule, make_optimizer
from attnlab.training.setup import make_accelerator


class Rows:
    """Batches of different lengths, as batches by length are."""

    def __init__(self) -> None:
        self.lengths = [2 + n % 7 for n in range(40)]

    def collate(self, indices: Sequence[int], epoch: int) -> dict[str, torch.Tensor]:
        longest = max(self.lengths[n] for n in indices)
        return {"x": torch.stack([torch.cos(torch.arange(4.0 * longest) * (n + 1)).view(longest, 4) for n in indices])}


class ToZero:
    def weight(self, batch: Batch) -> float:
        return float(batch.examples)

    def __call__(self, model: nn.Module, batch: Batch) -> torch.Tensor:
        y = model(batch.inputs["x"])
        return F.mse_loss(y, torch.zeros_like(y))


class StopAt(Callback):
    def __init__(self, request: StopRequest, step: int) -> None:
        self.request, self.step = request, step

    def on_step(self, state: TrainState, report: StepReport) -> None:
        if state.step == self.step:
            self.request.received = signal.SIGTERM


def make(compile: bool, dropout: float, folder: Path | None = None, **extra: Any) -> Trainer:
    seed_everything(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(dropout), nn.Linear(8, 3))
    rows, steps = Rows(), 15
    return Trainer(
        Learner(model, ToZero(), Batches(rows, BatchPlan(rows.lengths, size=8))),
        Plan(
            make_optimizer(model, OptimizerSection(lr=0.01)),
            Schedule(ScheduleSection(), steps),
            TrainingSection(steps=steps),
        ),
        Environment(
            make_accelerator(MachineSection(device="cpu", precision="fp32", threads=1)),
            compile=compile,
            checkpoints=Checkpoints(folder) if folder else None,
            **extra,
        ),
    )


def test_compiled_training_gives_the_same_weights_under_the_same_names() -> None:
    plain, fast = make(False, 0.0), make(True, 0.0)
    plain.fit(), fast.fit()
    names, ours = plain.model.state_dict(), fast.model.state_dict()
    assert list(names) == list(ours)
    for name, tensor in names.items():
        torch.testing.assert_close(ours[name], tensor, msg=name)


def test_a_compiled_run_resumes_to_the_bit(tmp_path: Path) -> None:
    whole = make(True, 0.3)
    whole.fit()
    request = StopRequest()
    with pytest.raises(Interrupted):
        make(True, 0.3, tmp_path, stop=request, callbacks=[StopAt(request, 4)]).fit()
    rest = make(True, 0.3, tmp_path)
    assert rest.restore() and rest.state.step == 4
    rest.fit()
    for a, b in zip(whole.model.parameters(), rest.model.parameters(), strict=True):
        assert torch.equal(a, b)


class NotForCompilers(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("C++ compile error\nand many more lines")


def test_a_model_that_does_not_compile_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "compiled", lambda model: NotForCompilers())
    with pytest.raises(RunFailed) as failed:
        make(True, 0.0).fit()
    told = "torch.compile does not work for this model here (C++ compile error): use --compile off."
    assert str(failed.value) == told


@pytest.mark.parametrize(("given", "meant"), [(False, "off"), (True, "on"), ("auto", "auto")])
def test_on_and_off_are_words_though_yaml_takes_them_for_booleans(given: Any, meant: str) -> None:
    assert check(LanguageConfig, {"machine": {"compile": given}}).machine.compile == meant


def test_on_without_a_compiler_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "why_not", lambda device: "no C++ compiler")
    with pytest.raises(UserError, match=r"--compile: .*\(no C\+\+ compiler\): use off or auto"):
        setup.resolve(MachineSection(device="cpu", precision="fp32", compile="on"))


def paces(monkeypatch: pytest.MonkeyPatch, plain: float, fast: float) -> list[str]:
    """Let steps take these seconds; gives back a list of what was measured."""
    asked: list[str] = []

    def speed(model: object, objective: object, batches: object, config: LanguageConfig) -> TrainingSpeed:
        asked.append(config.machine.compile)
        return TrainingSpeed([fast if config.machine.compile == "on" else plain], [1])

    monkeypatch.setattr(compile_choice, "measure_speed", speed)
    monkeypatch.setattr(compile_choice, "why_not", lambda device: "")
    return asked


def chosen(steps: int) -> tuple[str, str]:
    config = check(LanguageConfig, {"machine": {"device": "cpu", "compile": "auto"}})
    rows = Rows()
    return choose_compile(nn.Linear(1, 1), ToZero(), Batches(rows, BatchPlan(rows.lengths)), config, steps)


def test_auto_does_not_even_try_in_a_short_run(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = paces(monkeypatch, plain=1.0, fast=0.1)
    choice, why = chosen(steps=60)
    assert choice == "off" and "about 1:00 is too short" in why and asked == ["off"]


def test_auto_takes_the_faster_one_in_a_long_run(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = paces(monkeypatch, plain=1.0, fast=0.5)
    assert chosen(steps=10_000)[0] == "on" and asked == ["off", "on"]
    paces(monkeypatch, plain=1.0, fast=1.1)
    assert chosen(steps=10_000)[0] == "off"


def test_auto_goes_on_without_a_compiler_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    paces(monkeypatch, plain=1.0, fast=0.5)
    monkeypatch.setattr(compile_choice, "why_not", lambda device: "no C++ compiler")
    choice, why = chosen(steps=10_000)
    assert choice == "off" and "(no C++ compiler)" in why


def test_what_compiling_costs_must_be_earned_back() -> None:
    assert decide(plain=1.0, fast=0.9, steps=2_000, cost=100.0)[0] == "on"
    assert decide(plain=1.0, fast=0.9, steps=900, cost=100.0)[0] == "off"
    assert decide(plain=1.0, fast=0.99, steps=1_000_000, cost=100.0)[0] == "off"
