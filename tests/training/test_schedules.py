"""Learning rates follow their formulas and end where they should."""

import math
from typing import Any

import pytest

from attnlab.config import ScheduleSection
from attnlab.training.optimizers import Schedule


def rates(steps: int, **settings: Any) -> list[float]:
    schedule = Schedule(ScheduleSection(**settings), steps)
    return [schedule(step, tokens=100 * step) for step in range(steps)]


def test_constant_stays() -> None:
    assert rates(5, name="constant") == [1.0] * 5


def test_linear_falls_to_its_final_share() -> None:
    assert rates(4, name="linear") == pytest.approx([1, 0.75, 0.5, 0.25])
    assert rates(4, name="linear", final=0.2) == pytest.approx([1, 0.8, 0.6, 0.4])


def test_cosine_is_the_formula() -> None:
    assert rates(8, name="cosine") == pytest.approx([(1 + math.cos(math.pi * s / 8)) / 2 for s in range(8)])


def test_a_wave_rises_again_and_keeps_its_floor() -> None:
    values = rates(33, name="wave", wave_steps=8, final=0.1)
    assert values == pytest.approx([max(0.1, (1 + math.cos(math.pi * s / 8)) / 2) for s in range(33)])
    assert values[8] == values[24] == 0.1 and values[16] == values[32] == 1.0
    assert rates(8, name="wave") == rates(8, name="cosine")


@pytest.mark.parametrize("name", ["constant", "linear", "cosine", "wsd", "wave"])
def test_warm_up_by_steps_and_by_ratio_rise_to_the_peak(name: str) -> None:
    by_steps = rates(20, name=name, warmup_steps=4)
    assert by_steps == rates(20, name=name, warmup_ratio=0.2)
    assert by_steps[:4] == pytest.approx([0.25, 0.5, 0.75, 1.0])
    assert by_steps[4] == 1.0


def test_warm_up_by_tokens() -> None:
    assert rates(5, name="constant", warmup_tokens=300) == pytest.approx([1 / 300, 101 / 300, 201 / 300, 1, 1])


def test_warm_up_stable_decay_keeps_its_shares_of_the_whole_run() -> None:
    values = rates(100, name="wsd", warmup_ratio=0.1, decay_ratio=0.2)
    assert values[10:80] == [1.0] * 70
    assert values[81] < 1.0
    assert values[90] == pytest.approx(0.5)
