"""The mark of the most memory a run held, and the limit that makes too much of it an error."""

from __future__ import annotations

import sys

import pytest
import torch

from attnlab.base.machine import facts
from attnlab.base.machine.facts import is_out_of_memory, peak, start_peak, within_free_memory
from attnlab.jobs.subruns import reason_of

MIB = 2**20
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process set its mark back")


def test_the_peak_counts_what_was_let_go_and_forgets_it_when_started_again() -> None:
    start_peak()
    before = peak("cpu")
    large = torch.ones(64 * MIB)  # 256 MiB
    del large
    after = peak("cpu")
    assert before is not None and after is not None and after - before > 200 * MIB
    start_peak()
    again = peak("cpu")
    assert again is not None and after - again > 200 * MIB


def test_more_than_is_free_is_an_error_and_only_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "memory", lambda: (10**12, 128 * MIB))
    with within_free_memory(), pytest.raises(RuntimeError) as failure:
        torch.ones(256 * MIB)
    assert is_out_of_memory(failure.value) and "ran out of memory" in reason_of(failure.value)
    assert torch.ones(64 * MIB).sum() == 64 * MIB
