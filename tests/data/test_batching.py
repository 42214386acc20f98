"""Batches hold every example once, put like lengths together, stay random, and can be entered anywhere."""

from collections.abc import Sequence
from itertools import islice, pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlab.data.batching import Batches, BatchPlan, pad

LENGTHS = np.random.default_rng(0).integers(1, 60, size=500).tolist()


class Rows:
    """Example n is n, repeated as often as it is long."""

    def __init__(self, lengths: Sequence[int]) -> None:
        self.lengths = lengths

    def collate(self, indices: Sequence[int], epoch: int) -> dict[str, torch.Tensor]:
        tokens = pad([[index] * self.lengths[index] for index in indices], -1)
        return {"tokens": tokens, "padding": tokens >= 0}


def padding_share(plan: BatchPlan) -> float:
    batches = Batches(Rows(plan.lengths), plan)
    made = [batches.collate(indices, 0) for indices in plan.epoch(0)]
    return 1 - sum(b.tokens for b in made) / sum(b.positions for b in made)


@given(
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=200),
    size=st.integers(1, 17),
    by_length=st.booleans(),
    epoch=st.integers(0, 3),
)
@settings(max_examples=60, deadline=None)
def test_every_example_once_and_no_batch_too_large(lengths: list[int], size: int, by_length: bool, epoch: int) -> None:
    plan = BatchPlan(lengths, size=size, by_length=by_length).epoch(epoch)
    assert sorted(index for batch in plan for index in batch) == list(range(len(lengths)))
    assert all(len(batch) <= size for batch in plan)
    assert len(plan) == -(-len(lengths) // size)


@given(lengths=st.lists(st.integers(1, 40), min_size=1, max_size=200), budget=st.integers(40, 300))
@settings(max_examples=60, deadline=None)
def test_a_budget_of_tokens_holds_with_padding(lengths: list[int], budget: int) -> None:
    for batch in BatchPlan(lengths, size=None, tokens=budget).epoch(0):
        assert len(batch) * max(lengths[index] for index in batch) <= budget


def test_like_lengths_together_waste_a_fraction_of_the_padding() -> None:
    random = padding_share(BatchPlan(LENGTHS, size=8, by_length=False))
    sorted_ = padding_share(BatchPlan(LENGTHS, size=8, by_length=True))
    assert random > 0.35 and sorted_ < 0.05


def test_epochs_differ_and_repeat_with_the_seed() -> None:
    plan = BatchPlan(LENGTHS, size=8, seed=3)
    assert list(plan.epoch(0)) == list(BatchPlan(LENGTHS, size=8, seed=3).epoch(0))
    assert list(plan.epoch(0)) != list(plan.epoch(1))
    assert list(plan.epoch(0)) != list(BatchPlan(LENGTHS, size=8, seed=4).epoch(0))


def test_neighbours_change_from_epoch_to_epoch() -> None:
    """Sorting by length must not freeze who meets whom."""
    plan = BatchPlan(LENGTHS, size=8)
    pairs = [{frozenset(pair) for batch in plan.epoch(e) for pair in pairwise(batch)} for e in range(2)]
    assert len(pairs[0] & pairs[1]) < 0.2 * len(pairs[0])


@pytest.mark.parametrize("accumulate", [1, 3])
def test_a_stream_entered_in_the_middle_goes_on_as_if_never_left(accumulate: int) -> None:
    batches = Batches(Rows(LENGTHS), BatchPlan(LENGTHS, size=64), accumulate)
    whole = [([b.indices for b in group], place) for group, place in islice(batches.stream(0, 0), 9)]
    epoch, start = whole[3][1]
    rest = [
        ([b.indices for b in group], place)
        for (group, place), _ in zip(batches.stream(epoch, start), range(5), strict=False)
    ]
    assert rest == whole[4:]


def test_the_longest_batch_is_the_worst_case() -> None:
    batches = Batches(Rows([3, 9, 5]), BatchPlan([3, 9, 5]))
    assert batches.longest(2).positions == 18
    assert batches.longest(5).examples == 5


@pytest.mark.parametrize("count", [1, 2, 5, 99])
def test_pieces_have_the_same_rows_with_less_padding(count: int) -> None:
    lengths = [7, 2, 9, 2, 5, 1, 8]
    batch = Batches(Rows(lengths), BatchPlan(lengths)).collate(range(len(lengths)), 0)
    pieces = batch.pieces(count)
    assert len(pieces) == min(count, len(lengths))
    rows = {
        index: row[mask].tolist()
        for piece in pieces
        for index, row, mask in zip(piece.indices, piece.inputs["tokens"], piece.inputs["padding"], strict=True)
    }
    assert rows == {index: [index] * length for index, length in enumerate(lengths)}
    assert sum(piece.tokens for piece in pieces) == batch.tokens == sum(lengths)
    positions = sum(piece.positions for piece in pieces)
    assert positions == batch.positions if count == 1 else positions < batch.positions
    assert positions == sum(piece.inputs["tokens"].numel() for piece in pieces)


def test_a_batch_without_padding_is_one_piece() -> None:
    batch = Batches(Rows([4, 4, 4]), BatchPlan([4, 4, 4])).collate([0, 1, 2], 0)
    assert batch.pieces(3) == [batch]


def test_workers_build_the_same_batches_and_draw_no_number_of_the_training() -> None:
    def stream(workers: int) -> list[tuple[list[tuple[tuple[int, ...], list[list[int]]]], tuple[int, int]]]:
        batches = Batches(Rows(LENGTHS), BatchPlan(LENGTHS, size=64), accumulate=2, pieces=2, workers=workers)
        return [
            ([(batch.indices, batch.inputs["tokens"].tolist()) for batch in step], place)
            for step, place in islice(batches.stream(0, 2), 7)
        ]

    state = torch.get_rng_state()
    assert stream(2) == stream(0)
    assert torch.equal(torch.get_rng_state(), state)
