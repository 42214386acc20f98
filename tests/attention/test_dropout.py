import pytest
import torch

from attnlab.attention import MixerShape, build_mixer
from attnlab.attention.parts.weighting import Dropout


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 0.9])
def test_it_drops_with_its_probability_and_keeps_the_mean(p):
    torch.manual_seed(0)
    x = torch.ones(401, 503)
    y = Dropout(p)(x)
    assert (y == 0).float().mean() == pytest.approx(p, abs=0.005)
    assert y[y != 0].unique().item() == pytest.approx(1 / (1 - p), rel=1e-3)
    assert y.mean() == pytest.approx(1, abs=0.02)


def test_all_positions_are_dropped_equally_and_independently():
    torch.manual_seed(0)
    dropped = torch.stack([Dropout(0.3)(torch.ones(8)) == 0 for _ in range(4000)]).float()
    assert (dropped.mean(0) - 0.3).abs().max() < 0.03
    correlation = torch.corrcoef(dropped.T) - torch.eye(8)
    assert correlation.abs().max() < 0.06


def test_gradients_pass_where_numbers_did():
    x = torch.randn(50, 7, requires_grad=True)
    y = Dropout(0.4)(x)
    y.sum().backward()
    torch.testing.assert_close(x.grad, y.detach() / x.detach())


def test_the_seed_decides_and_evaluation_does_nothing():
    x, dropout = torch.randn(30), Dropout(0.5)
    draws = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        draws.append(dropout(x))
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])
    assert torch.equal(dropout.eval()(x), x)


@pytest.mark.parametrize("name", ["vanilla", "grouped-query", "synthesizer", "linear", "aft-simple", "fastformer"])
def test_attention_with_dropout_is_right_on_average(name):
    torch.manual_seed(0)
    mixer = build_mixer(name, MixerShape(8, 8, 6, dropout=0.2))
    x = torch.randn(1, 6, 8)
    expected = mixer.eval()(x)
    mean = mixer.train()(x.expand(20_000, -1, -1)).mean(0, keepdim=True)
    torch.testing.assert_close(mean, expected, rtol=0, atol=0.03)
