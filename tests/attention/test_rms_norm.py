"""The lab's RMSNorm and squared ReLU are torch's, forward and backward."""

from __future__ import annotations

import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from attnlab.attention.parts.rms_norm import RMSNorm
from attnlab.models.parts import SquaredReLU


@pytest.mark.parametrize("shape", [(5, 8), (2, 3, 7, 8)])
def test_rms_norm_is_that_of_torch(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    ours, theirs = RMSNorm(8), nn.RMSNorm(8)
    gain = 0.5 + torch.rand(8)
    x = 3 * torch.randn(shape)
    x.view(-1, 8)[0] = 0.0  # a vector of nothing stays finite
    found = []
    for norm in (ours, theirs):
        norm.load_state_dict({"weight": gain})
        given = x.clone().requires_grad_()
        y = norm(given)
        (y * torch.cos(torch.arange(y.numel()).view(shape))).sum().backward()
        found.append((y, given.grad, norm.weight.grad))
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_rms_norm_of_16_bits_computes_in_32(dtype: torch.dtype) -> None:
    """As under autocast: 16 bits in and out, 32 bits of gain. Only inputs and outputs are rounded."""
    torch.manual_seed(0)
    norm = RMSNorm(8)
    torch.nn.init.uniform_(norm.weight, 0.5, 1.5)
    x = (3 * torch.randn(2, 5, 4, 8)).to(dtype).transpose(1, 2).requires_grad_()
    weights = torch.randn(x.shape).to(dtype)
    wide, gain = x.detach().double().requires_grad_(), norm.weight.detach().double().requires_grad_()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y = norm(x)
        y.backward(weights)
    expected = F.rms_norm(wide, (8,), gain, torch.finfo(torch.float32).eps)
    expected.backward(weights.double())
    assert y.dtype == x.grad.dtype == dtype and norm.weight.grad.dtype == torch.float32
    rounding = torch.finfo(dtype).eps
    torch.testing.assert_close(y.double(), expected, rtol=rounding, atol=rounding)
    torch.testing.assert_close(x.grad.double(), wide.grad, rtol=rounding, atol=rounding)
    torch.testing.assert_close(norm.weight.grad.double(), gain.grad, rtol=1e-5, atol=1e-5)


def test_rms_norm_takes_strided_heads() -> None:
    x = torch.randn(2, 5, 4, 8).transpose(1, 2)
    torch.testing.assert_close(RMSNorm(8)(x), nn.RMSNorm(8)(x))


def test_squared_relu_is_the_square_of_the_relu() -> None:
    x = torch.linspace(-2, 2, 17)
    one, two = x.clone().requires_grad_(), x.clone().requires_grad_()
    ours, theirs = SquaredReLU()(one), F.relu(two).square()
    weights = torch.arange(17.0)
    (ours * weights).sum().backward(), (theirs * weights).sum().backward()
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(one.grad, two.grad)
