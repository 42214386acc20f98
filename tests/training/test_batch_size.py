"""`batch_size: auto` and `largest`: the most that fit, found without disturbing anything."""

from collections.abc import Sequence

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from attnlab.base.errors import DoesNotFit
from attnlab.config.sections import AUTO_STEPS
from attnlab.data.batching import Batch, Batches, BatchPlan
from attnlab.training import batch_size
from attnlab.training.batch_size import find_batch_size, largest

MIB = 1024**2


@given(limit=st.integers(1, 300), fits_up_to=st.integers(0, 400))
def test_doubling_then_bisecting_finds_the_largest(limit: int, fits_up_to: int) -> None:
    tried: list[int] = []
    found = largest(lambda n: tried.append(n) or n <= fits_up_to, limit)
    assert found == min(limit, fits_up_to)
    assert len(tried) == len(set(tried)) and len(tried) <= 2 * limit.bit_length() + 2


class Wide:
    """Each example is a row of 64 Ki floats, the later ones longer."""

    lengths = tuple(range(1, 201))

    def collate(self, indices: Sequence[int], epoch: int) -> dict[str, torch.Tensor]:
        return {"x": torch.ones(len(indices), 65536)}


class Sum:
    def weight(self, batch: Batch) -> float:
        return float(batch.examples)

    def __call__(self, model: nn.Module, batch: Batch) -> torch.Tensor:
        return model(batch.inputs["x"]).mean()


class Grow(nn.Module):
    """Keeps about eight rows of activations for each row of input."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(8):
            x = torch.sin(x * self.scale)
        return x


def batches(accumulate: int = 1) -> Batches:
    return Batches(Wide(), BatchPlan(Wide.lengths, size=1), accumulate)


def test_on_a_cpu_the_budget_decides() -> None:
    small = find_batch_size(Grow(), Sum(), batches(), "cpu", "largest", budget=100 * MIB)
    large = find_batch_size(Grow(), Sum(), batches(), "cpu", "largest", budget=300 * MIB)
    # 16 activations of 256 KiB an example, and the gradients on the way: 100 MiB hold some 25 of them.
    assert 15 <= small.size <= 30 and 2 * small.size <= large.size <= 4 * small.size
    assert small.bytes <= 100 * MIB and small.bound == "memory"
    assert f"batch size largest: {small.size}, the most that fit" in small.sentence()


def test_running_out_of_memory_is_a_failed_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    class Small(Grow):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if len(x) > 13:
                raise torch.OutOfMemoryError("CUDA out of memory")
            return super().forward(x)

    assert find_batch_size(Small(), Sum(), batches(), "cpu", "largest", budget=1e12).size == 13


def test_another_error_is_not_taken_for_a_lack_of_memory() -> None:
    class Broken(Grow):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise RuntimeError("shapes do not match")

    with pytest.raises(RuntimeError, match="shapes"):
        find_batch_size(Broken(), Sum(), batches(), "cpu", "largest", budget=1e12)


def test_a_size_beyond_the_budget_is_not_even_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    class Watched(Grow):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            seen.append(len(x))
            return super().forward(x)

    found = find_batch_size(Watched(), Sum(), batches(), "cpu", "largest", budget=100 * MIB)
    assert max(seen) <= 1.5 * found.size


def test_it_disturbs_neither_model_nor_generators() -> None:
    model = Grow()
    before = torch.get_rng_state()
    find_batch_size(model, Sum(), batches(), "cpu", budget=50 * MIB)
    assert torch.equal(before, torch.get_rng_state()) and model.scale.grad is None


def test_nothing_fits_is_one_sentence() -> None:
    with pytest.raises(DoesNotFit, match=r"not even one example fits.*--batch-memory"):
        find_batch_size(Grow(), Sum(), batches(), "cpu", budget=1 * MIB)


def test_no_more_than_there_are_examples() -> None:
    found = find_batch_size(Grow(), Sum(), batches(), "cpu", "largest", budget=1e12)
    assert (found.size, found.bound) == (len(Wide.lengths), "examples")
    assert batch_size.LIMIT >= 1024


@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("processes", [1, 2])
def test_auto_leaves_steps_in_an_epoch(accumulate: int, processes: int) -> None:
    found = find_batch_size(Grow(), Sum(), batches(accumulate), "cpu", budget=1e12, processes=processes)
    steps = Batches(Wide(), BatchPlan(Wide.lengths, found.size), accumulate).steps_in(0)
    one_more = Batches(Wide(), BatchPlan(Wide.lengths, found.size + processes), accumulate).steps_in(0)
    assert one_more < AUTO_STEPS <= steps, "the largest of these"
    assert found.bound == "steps" and f"{AUTO_STEPS} steps per epoch" in found.sentence()


def test_auto_is_still_bound_by_memory() -> None:
    found = find_batch_size(Grow(), Sum(), batches(), "cpu", budget=25 * MIB)
    assert found.bound == "memory" and found.size < len(Wide.lengths) // AUTO_STEPS


def test_a_set_smaller_than_the_steps_has_batches_of_one() -> None:
    class Few(Wide):
        lengths = (1, 2, 3)

    few = Batches(Few(), BatchPlan(Few.lengths, size=1))
    assert find_batch_size(Grow(), Sum(), few, "cpu", budget=1e12).size == 1
    assert find_batch_size(Grow(), Sum(), few, "cpu", "largest", budget=1e12).size == 3
