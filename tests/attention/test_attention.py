"""Vanilla attention against torch's own, and its decoding against its full pass."""

import math

import pytest
import torch
import torch.nn.functional as F

from attnlab.attention import Cache, MixerShape, build_mixer
from attnlab.attention.registry import POSITIONS
from attnlab.base.errors import UserError

B, T, C, H = 2, 9, 16, 4


def mixer(**changes):
    torch.manual_seed(0)
    return build_mixer("vanilla", MixerShape(width=C, heads=H, context=16, **changes)).double().eval()


def tokens():
    return torch.randn(B, T, C, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("causal", [True, False])
def test_equals_torchs_multi_head_attention(causal):
    attention, x = mixer(causal=causal), tokens().transpose(0, 1)  # torch wants (T, B, C)
    qkv, output = attention.projections.qkv, attention.output
    expected, _ = F.multi_head_attention_forward(
        x,
        x,
        x,
        C,
        H,
        qkv.weight,
        qkv.bias,
        None,
        None,
        False,
        0.0,
        output.weight,
        output.bias,
        attn_mask=torch.ones(T, T, dtype=torch.bool).triu(1) if causal else None,
    )
    torch.testing.assert_close(attention(x.transpose(0, 1)), expected.transpose(0, 1), rtol=0, atol=1e-12)


@pytest.mark.parametrize("causal", [True, False])
def test_padding_does_not_touch_real_tokens(causal):
    attention, x = mixer(causal=causal), tokens()
    padding = torch.arange(T) < torch.tensor([[5], [T]])
    together = attention(x, padding)
    alone = attention(x[:1, :5])
    torch.testing.assert_close(together[:1, :5], alone)


def test_alibi_equals_a_loop():
    attention, x = mixer(positions="alibi"), tokens()
    q, k, v = attention.projections(x)
    expected = torch.zeros(B, H, T, C // H, dtype=torch.float64)
    for h in range(H):
        slope = 2.0 ** (-8 * (h + 1) / H)
        for t in range(T):
            scores = torch.stack(
                [(q[:, h, t] * k[:, h, s]).sum(-1) / math.sqrt(C // H) - slope * (t - s) for s in range(t + 1)]
            )
            expected[:, h, t] = torch.einsum("sb,bsd->bd", scores.softmax(0), v[:, h, : t + 1])
    expected = attention.output(expected.transpose(1, 2).reshape(B, T, C))
    torch.testing.assert_close(attention(x), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("qk_norm", [True, False])
def test_decoding_equals_the_full_pass_for_rows_of_different_length(positions, qk_norm):
    attention, x = mixer(positions=positions, qk_norm=qk_norm), tokens()
    full = attention(x)
    lengths = [3, 5]
    cache = Cache()
    with torch.no_grad():
        start = attention(x[:, :5], torch.arange(5) < torch.tensor(lengths)[:, None], cache)
        for row, length in enumerate(lengths):
            torch.testing.assert_close(start[row, :length], full[row, :length])
        for step in range(4):
            new = torch.stack([x[row, length + step] for row, length in enumerate(lengths)])
            y = attention(new[:, None], None, cache)[:, 0]
            for row, length in enumerate(lengths):
                torch.testing.assert_close(y[row], full[row, length + step])


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(UserError, match="did you mean 'vanilla'"):
        build_mixer("vanila", MixerShape(16, 4, 8))


def test_width_must_divide_into_heads():
    with pytest.raises(UserError, match="width 10 cannot be split into 4 heads"):
        MixerShape(10, 4, 8)
