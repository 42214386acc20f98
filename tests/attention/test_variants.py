"""All variants: padding changes nothing, decoding equals training, and a model with them learns."""

import pytest
import torch

from attnlab.attention import VARIANTS, Cache
from attnlab.attention.variants.performer import RandomFeatures
from attnlab.base.errors import UserError
from attnlab.models.generate import generate
from attnlab.models.gpt import GPT, GPTShape

B, T, C = 2, 19, 8
NAMES = sorted(VARIANTS)


def tokens():
    return torch.randn(B, T, C, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("name", NAMES)
@torch.no_grad()
def test_padding_does_not_touch_real_tokens(tiny, name, causal):
    built, x = tiny(name, causal=causal), tokens()
    padding = torch.arange(T) < torch.tensor([[11], [T]])
    torch.testing.assert_close(built(x, padding)[:1, :11], built(x[:1, :11]))
    garbage = torch.where(padding[..., None], x, 100.0)
    torch.testing.assert_close(built(garbage, padding)[:1, :11], built(x, padding)[:1, :11])


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"naive-mask"}))
@torch.no_grad()
def test_decoding_equals_the_full_pass_for_rows_of_different_length(tiny, name):
    built, x = tiny(name), tokens()
    full, lengths, cache = built(x), [3, 7], Cache()
    start = built(x[:, :7], torch.arange(7) < torch.tensor(lengths)[:, None], cache)
    for row, length in enumerate(lengths):
        torch.testing.assert_close(start[row, :length], full[row, :length])
    for step in (0, 2, 4, 6, 8, 10):  # two tokens at a time
        new = torch.stack([x[row, length + step : length + step + 2] for row, length in enumerate(lengths)])
        y = built(new, None, cache)
        for row, length in enumerate(lengths):
            torch.testing.assert_close(y[row], full[row, length + step : length + step + 2])


@torch.no_grad()
def test_the_naive_mask_decodes_differently_than_it_is_trained(tiny):
    built, x, cache = tiny("naive-mask"), tokens(), Cache()
    decoded = torch.cat([built(x[:, t : t + 1], None, cache) for t in range(T)], 1)
    full = built(x)
    assert not torch.allclose(decoded[:, 0], full[:, 0], rtol=0.01)
    torch.testing.assert_close(decoded[:, -1], full[:, -1])  # the last token has no future


@torch.no_grad()
def test_the_fused_kernel_and_explicit_weights_agree(tiny):
    fused, pieces, x = tiny("vanilla"), tiny("pieces"), tokens()
    pieces.load_state_dict(fused.state_dict())
    torch.testing.assert_close(fused(x), pieces(x), rtol=0, atol=1e-12)


@pytest.mark.parametrize("positions", ["rotary", "alibi"])
@pytest.mark.parametrize("name", NAMES)
@torch.no_grad()
def test_positions_inside_attention_order_the_tokens_or_are_refused(tiny, name, positions):
    if positions not in VARIANTS[name].positions:
        with pytest.raises(UserError, match=f"does not support {positions} positions"):
            tiny(name, positions=positions)
        return
    built, x = tiny(name, causal=False, positions=positions), tokens()
    other_order = x[:, [1, 0, *range(2, T)]]
    assert not torch.allclose(built(x)[:, 2:], built(other_order)[:, 2:])
    causal, cache = tiny(name, positions=positions), Cache()
    if name != "naive-mask":
        decoded = torch.cat([causal(x[:, t : t + 1], None, cache) for t in range(T)], 1)
        torch.testing.assert_close(decoded, causal(x))


@pytest.mark.parametrize("name", NAMES)
def test_a_model_with_it_memorizes_and_recites(name):
    torch.manual_seed(0)
    model = GPT(GPTShape(7, layers=2, heads=4, width=16, context=10, dropout=0.0, attention=name))
    text = torch.tensor([[1, 5, 5, 2, 6, 0, 3, 3, 4]])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(50):
        loss = torch.nn.functional.cross_entropy(model(text[:, :-1])[0], text[0, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 0.2
    if name != "naive-mask":
        assert generate(model, [[1, 5], [1]], 8, stop=4)[0].tokens == [5, 2, 6, 0, 3, 3]


def test_synthesizer_with_one_b_has_the_course_parameter_count():
    shape = GPTShape(256, layers=4, heads=8, width=256, context=128)
    counts = {
        name: GPT(GPTShape(**{**vars(shape), "attention": name})).parameter_count()
        for name in ("synthesizer-shared", "synthesizer")
    }
    assert counts["synthesizer-shared"] == 3_076_988
    # Own B_i for 8 heads, and all 128 columns.
    assert counts["synthesizer"] == 3_076_988 + 4 * (8 * 32 * 128 + 128 - 32 * 127 - 127)


@torch.no_grad()
def test_performer_approaches_softmax_attention_with_more_features(tiny):
    vanilla, x = tiny("vanilla"), tokens()

    def error(count):
        built = tiny("performer")
        built.load_state_dict(vanilla.state_dict(), strict=False)
        errors = []
        for seed in range(5):
            torch.manual_seed(seed)
            built.features = RandomFeatures(C // 4, count).double()
            errors.append(float((built(x) - vanilla(x)).abs().mean()))
        return sum(errors) / 5

    assert error(2000) < error(20) / 4
    assert error(2000) < 0.01


def test_performer_keeps_its_directions_when_saved(tiny):
    saved, other = tiny("performer"), tiny("performer")
    torch.nn.init.zeros_(other.features.directions)
    other.load_state_dict(saved.state_dict())
    torch.testing.assert_close(other(tokens()), saved(tokens()))
