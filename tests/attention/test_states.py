import pytest
import torch

from attnlab.attention.parts.states import NOTHING, prefixes, shift
from attnlab.attention.variants.linear import causal_sums


def slow(logits, values):
    return torch.stack(
        [(logits[..., : t + 1, :].softmax(-2) * values[..., : t + 1, :]).sum(-2) for t in range(values.shape[-2])], -2
    )


@pytest.mark.parametrize("length", [1, 2, 9, 10, 23])
@pytest.mark.parametrize("columns", [1, 3])
def test_prefixes_equal_a_softmax_for_each(length, columns):
    logits, values = torch.randn(2, length, columns).double() * 5, torch.randn(2, length, 3).double()
    logs, averages = prefixes(logits, values)
    torch.testing.assert_close(averages, slow(logits, values))
    torch.testing.assert_close(logs, logits.logcumsumexp(-2))


def test_a_sequence_can_be_cut_anywhere():
    logits, values = torch.randn(2, 12, 3).double(), torch.randn(2, 12, 3).double()
    logs, averages = prefixes(logits, values)
    for cut in (1, 5, 11):
        start = logs[:, cut - 1 : cut], averages[:, cut - 1 : cut]
        rest = prefixes(logits[:, cut:], values[:, cut:], start)
        torch.testing.assert_close(rest, (logs[:, cut:], averages[:, cut:]))


def test_a_giant_weight_does_not_erase_the_values_before():
    logits, values = torch.zeros(1, 16, 1), torch.randn(1, 16, 2)
    before = prefixes(logits, values)[1]
    logits[:, 10] = 5000.0
    after = prefixes(logits, values)[1]
    assert torch.equal(before[:, :10], after[:, :10])
    torch.testing.assert_close(after[:, 10:], values[:, 10:11].expand(-1, 6, -1))


def test_gradients_equal_those_of_the_softmaxes():
    logits, values = (torch.randn(1, 11, 2).double().requires_grad_(), torch.randn(1, 11, 2).double().requires_grad_())
    weights = torch.randn(1, 11, 2).double()
    fast = torch.autograd.grad((prefixes(logits, values)[1] * weights).sum(), (logits, values))
    loop = torch.autograd.grad((slow(logits, values) * weights).sum(), (logits, values))
    torch.testing.assert_close(fast, loop)


def test_an_empty_set_has_no_weight():
    logits, values = torch.randn(1, 6, 1), torch.randn(1, 6, 2)
    logits[:, 4:] = NOTHING
    averages = prefixes(logits, values)[1]
    torch.testing.assert_close(averages[:, 4:], averages[:, 3:4].expand(-1, 2, -1))


@pytest.mark.parametrize("steps", [1, 3, 5, 9, -2, -5, -9])
def test_shift_moves_states_and_leaves_empty_ones(steps):
    logs, averages = torch.arange(5.0).view(1, 5, 1), torch.arange(5.0, 10.0).view(1, 5, 1)
    moved = shift((logs, averages), steps)
    for t in range(5):
        there = 0 <= t - steps < 5
        assert moved[0][0, t, 0] == (logs[0, t - steps, 0] if there else NOTHING)
        assert moved[1][0, t, 0] == (averages[0, t - steps, 0] if there else 0)


def test_kernel_sums_in_chunks_equal_a_running_sum():
    q, k, v = (torch.rand(2, 3, 150, 5).double() for _ in "qkv")
    y, last = causal_sums(q, k, v)
    running = torch.einsum("bhtr,bhtd->bhtrd", k, v).cumsum(2)
    torch.testing.assert_close(y, torch.einsum("bhtr,bhtrd->bhtd", q, running))
    torch.testing.assert_close(last, running[:, :, -1])
    rest, _ = causal_sums(q[:, :, 70:], k[:, :, 70:], v[:, :, 70:], running[:, :, 69])
    torch.testing.assert_close(rest, y[:, :, 70:])
