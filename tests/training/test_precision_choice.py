"""`precision: auto` on a CPU: the precision in which a step of the model itself is faster, and the reason why."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from attnlab.base.machine import precision
from attnlab.base.machine.precision import Trial
from attnlab.config import MachineSection, check, read_recipe
from attnlab.config.pretrain import PretrainConfig
from attnlab.data.batching import Batch, Batches, BatchPlan
from attnlab.jobs.engine import train_run
from attnlab.jobs.job import RunOptions
from attnlab.jobs.pretrain import PretrainJob
from attnlab.jobs.registry import saved_config
from attnlab.runs import read_record
from attnlab.training import precision_choice, setup
from attnlab.training.precision_choice import FEWEST_STEPS, choose_precision, decide, measure_steps

LONG_RUN = FEWEST_STEPS
CONFIG = check(PretrainConfig, {"machine": {"device": "cpu", "threads": 1}})


class Numbers:
    lengths = [1] * 8

    def collate(self, indices: list[int], epoch: int) -> dict[str, Tensor]:
        return {"x": torch.ones(len(indices), 4)}


class Sum:
    def weight(self, batch: Batch) -> float:
        return 1.0

    def __call__(self, model: nn.Module, batch: Batch) -> Tensor:
        return model(batch.inputs["x"]).sum()


def batches() -> Batches:
    return Batches(Numbers(), BatchPlan(Numbers.lengths, size=4))  # type: ignore[arg-type]


@pytest.fixture
def fast_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CPU whose bf16 matrix products are three times as fast as fp32's."""
    speeds = {"fp32": 100.0, "bf16": 300.0, "fp16": 5.0}
    monkeypatch.setattr(precision, "trials", lambda device, fresh=False: [Trial(*each) for each in speeds.items()])


@pytest.mark.parametrize(
    ("fp32", "bf16", "chosen", "words"),
    [
        (1.0, 1.3, "fp32", "a bf16 step takes 1.3 times as long"),
        (1.0, 0.95, "fp32", "a bf16 step takes 0.95 times as long"),  # faster, but not clearly
        (1.0, 0.5, "bf16", "an fp32 step takes 2 times as long"),
    ],
)
def test_the_faster_step_decides(fp32: float, bf16: float, chosen: str, words: str) -> None:
    found, sentence = decide(fp32, bf16)
    assert found == chosen and sentence.startswith(f"precision: {chosen}, ") and words in sentence


@pytest.mark.parametrize(("bf16", "chosen"), [(0.5, "bf16"), (2.0, "fp32")])
def test_a_run_takes_what_was_measured_and_records_it(
    bf16: float, chosen: str, monkeypatch: pytest.MonkeyPatch, fast_products: None, tmp_path: Path
) -> None:
    monkeypatch.setattr(precision_choice, "measure_steps", lambda *_: {"fp32": 1.0, "bf16": bf16})
    settings = {
        "model": {"layers": 1, "heads": 2, "width": 8, "context": 16},
        "world": {"people": 8, "places": 2, "documents": 1, "paraphrases": 1},
        "training": {"steps": LONG_RUN, "evaluate_every": 0},
        "machine": {"device": "cpu", "threads": 1},
    }
    run = train_run(PretrainJob(check(PretrainConfig, settings)), RunOptions(tmp_path / "run"))
    assert run is not None
    assert any(change.startswith(f"precision: {chosen}, ") for change in read_record(run)["changes"])
    assert read_recipe(run / "config.yaml")[0]["machine"]["precision"] == chosen
    assert saved_config(run).machine.precision == chosen, "a resumed run keeps it"


def test_auto_stays_where_bf16_products_are_fast(fast_products: None) -> None:
    assert setup.resolve(MachineSection(device="cpu")).precision == "auto"
    assert setup.resolve(MachineSection(device="cpu", precision="bf16")).precision == "bf16"


def test_a_short_run_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision_choice, "measure_steps", lambda *_: pytest.fail("measured"))
    chosen, sentence = choose_precision(nn.Linear(4, 1), Sum(), batches(), PretrainConfig(), LONG_RUN - 1)
    assert chosen == "fp32" and "too short" in sentence


def test_a_tiny_model_ends_in_fp32_and_is_left_as_it_was() -> None:
    model = nn.Linear(4, 1)
    before, state = model.weight.clone(), torch.get_rng_state()
    chosen, sentence = choose_precision(model, Sum(), batches(), CONFIG, LONG_RUN)
    assert chosen == "fp32" and "a bf16 step takes" in sentence
    assert torch.equal(model.weight, before) and torch.equal(torch.get_rng_state(), state)


def test_a_model_that_fails_in_bf16_is_trained_in_fp32() -> None:
    class OnlyFp32(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 1)

        def forward(self, x: Tensor) -> Tensor:
            y = self.linear(x)
            if y.dtype != torch.float32:
                raise RuntimeError("no kernel for 'BFloat16'")
            return y

    chosen, sentence = choose_precision(OnlyFp32(), Sum(), batches(), CONFIG, LONG_RUN)
    assert chosen == "fp32" and "no kernel for 'BFloat16'" in sentence


def test_both_precisions_are_timed_on_the_same_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    timed: list[str] = []
    monkeypatch.setattr(precision_choice, "_train_step", lambda *arguments: timed.append(arguments[-1]))
    seconds = measure_steps(nn.Linear(4, 1), Sum(), batches(), CONFIG)
    assert timed == ["fp32", "bf16"] * (precision_choice.WARM_UP + precision_choice.MOST)
    assert set(seconds) == {"fp32", "bf16"}
