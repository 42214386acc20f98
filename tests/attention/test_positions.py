import math

import pytest
import torch

from attnlab.attention import MixerShape
from attnlab.attention.parts.positions import Rotary, embedding_positions, relative_positions
from attnlab.base.errors import UserError


def test_rotary_scores_depend_on_the_distance_only():
    rotary = Rotary(8)
    q, k = torch.randn(2, 8)
    vectors = torch.stack((q, k)).view(2, 1, 1, 8).double()

    def score(t, s):
        turned = [rotary.rotate(v[None], torch.tensor([p])) for v, p in zip(vectors, (t, s), strict=True)]
        return (turned[0] * turned[1]).sum()

    for t, s in ((5, 2), (13, 10), (403, 400)):
        torch.testing.assert_close(score(t, s), score(3, 0), atol=1e-4, rtol=0)
    assert not torch.allclose(score(3, 0), score(0, 0))


def test_rotary_rotates_each_pair_by_its_own_angle():
    rotary, x, t, width = Rotary(6), torch.randn(1, 1, 1, 6), 7, 6
    y = rotary.rotate(x, torch.tensor([t]))[0, 0, 0]
    for i in range(3):
        angle = t * 10000 ** (-2 * i / width)
        a, b = x[0, 0, 0, i], x[0, 0, 0, i + 3]
        torch.testing.assert_close(y[i], a * math.cos(angle) - b * math.sin(angle))
        torch.testing.assert_close(y[i + 3], a * math.sin(angle) + b * math.cos(angle))


@pytest.mark.parametrize("width", [6, 7])
def test_sinusoidal_equals_its_formula(width):
    y = embedding_positions("sinusoidal", width, 4)(torch.zeros(1, 12, width), torch.arange(12))[0]
    for t in range(12):
        for c in range(width):
            wave = math.sin if c % 2 == 0 else math.cos
            pairs = (width + 1) // 2
            assert y[t, c] == pytest.approx(wave(t / 10000 ** (c // 2 / pairs)), abs=1e-5)


def test_learned_adds_its_row():
    learned = embedding_positions("learned", 4, 6)
    torch.nn.init.normal_(learned.table)
    y = learned(torch.zeros(2, 2, 4), torch.tensor([[0, 1], [4, 5]]))
    torch.testing.assert_close(y, torch.stack((learned.table[:2], learned.table[4:])))


def test_mistakes_are_one_sentence():
    with pytest.raises(UserError, match="odd"):
        relative_positions(MixerShape(9, 3, 4, positions="rotary"))
    with pytest.raises(UserError, match="did you mean 'rotary'"):
        embedding_positions("rotery", 8, 4)
