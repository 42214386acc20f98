"""Mixers that are right, and mixers with one mistake each, to measure the audit by its false alarms and its misses.

Each is a variation of `Plain`. The docstring of a wrong one says what is wrong; `wrong` names the checks that must
fail.
`docs/audit.md` lists them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import parametrizations

from attnlab.attention import Cache, MixerShape

Kind = Callable[[MixerShape], nn.Module]
RIGHT: dict[str, Kind] = {}
WRONG: dict[str, tuple[Kind, frozenset[str]]] = {}
"""By name: the mixer, and the checks that must fail, the first of them before all others."""
GRADIENT, PERTURBATION = "future, by gradient", "future, by perturbation"
FUTURE = (GRADIENT, PERTURBATION)


def right(kind: type[nn.Module]) -> type[nn.Module]:
    RIGHT[kind.__name__] = kind
    return kind


def wrong(*checks: str) -> Callable[[type[nn.Module]], type[nn.Module]]:
    def add(kind: type[nn.Module]) -> type[nn.Module]:
        WRONG[kind.__name__] = (kind, frozenset(checks))
        return kind

    return add


def before(length: int, like: Tensor) -> Tensor:
    """(T, T), True where a key is not later than the query."""
    return torch.ones(length, length, dtype=torch.bool, device=like.device).tril()


@right
class Plain(nn.Module):
    """Softmax attention, step by step."""

    def __init__(self, shape: MixerShape) -> None:
        super().__init__()
        self.shape, self.heads, self.causal = shape, shape.heads, shape.causal
        self.qkv = nn.Linear(shape.width, 3 * shape.width)
        self.output = nn.Linear(shape.width, shape.width)

    def split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        return q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])

    def visible(self, scores: Tensor) -> Tensor:
        T = scores.shape[-1]
        return before(T, scores) if self.causal else torch.ones(T, T, dtype=torch.bool)

    def weights(self, scores: Tensor, visible: Tensor) -> Tensor:
        return scores.masked_fill(~visible, -math.inf).softmax(-1)

    def attend(self, x: Tensor, padding: Tensor | None = None) -> Tensor:
        q, k, v = (self.split(part) for part in self.qkv(x).chunk(3, -1))
        scores = self.scores(q, k)
        visible = self.visible(scores)
        if padding is not None:
            visible = visible & padding[:, None, None, :]
        return (self.weights(scores, visible) @ v).transpose(1, 2).flatten(2)

    def forward(self, x: Tensor, padding: Tensor | None = None) -> Tensor:
        return self.output(self.attend(x, padding))


# Right: paths that are closed at the start.


@right
class ZeroOutput(Plain):
    """Its output projection starts at zero: the first output is 0 everywhere."""

    def __init__(self, shape: MixerShape) -> None:
        super().__init__(shape)
        nn.init.zeros_(self.output.weight)
        nn.init.zeros_(self.output.bias)


@right
class ReZero(Plain):
    """A gate that starts at zero."""

    def __init__(self, shape: MixerShape) -> None:
        super().__init__(shape)
        self.gate = nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor, padding: Tensor | None = None) -> Tensor:
        return self.gate * super().forward(x, padding)


@right
class LayerScale(ReZero):
    """A gate per feature."""

    def __init__(self, shape: MixerShape) -> None:
        super().__init__(shape)
        self.gate = nn.Parameter(torch.zeros(shape.width))


@right
class TanhGate(ReZero):
    """tanh of a gate that starts at zero."""

    def forward(self, x: Tensor, padding: Tensor | None = None) -> Tensor:
        return self.gate.tanh() * self.output(self.attend(x, padding))


@right
class ReluGate(ReZero):
    """relu of a gate that starts at zero."""

    def forward(self, x: Tensor, padding: Tensor | None = None) -> Tensor:
        return self.gate.relu() * self.output(self.attend(x, padding))


@right
class ZeroQueries(Plain):
    """Attention that starts as a mean of the past."""

    def __init__(self, shape: MixerShape) -> None:
        super().__init__(shape)
        nn.init.zeros_(self.qkv.weight[: 2 * shape.width].detach())


# Right: randomness, modes, precision, sizes.


@right
class OwnDropout(Plain):
    """Dropout of its own, whatever the shape says."""

    def weights(self, scores: Tensor, visible: Tensor) -> Tensor:
        return F.dropout(super().weights(scores, visible), 0.3, self.training)


@right
class NoisyTraining(Plain):
    """Noise on its output, in training only."""

    def forward(self, x: Tensor, padding: Tensor | None = None) -> Tensor:
        y = super().forward(x, padding)
        return y + 0.1 * torch.randn_like(y) if self.training else y


@right
class In32Bits(Plain):
    """Computes in 32 bits, whatever it is given."""

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        return super().scores(q.float(), k.float()).to(q.dtype)


@right
class Tiny(Plain):
    """Outputs of the size 1e-8."""

    def forward(self, x: Tensor, padding: Tensor | None = None) -> Tensor:
        return 1e-8 * super().forward(x, padding)


@right
class Huge(Plain):
    """Outputs of the size 1e8."""

    def forward(self, x: Tensor, padding: Tensor | None = None) -> Tensor:
        return 1e8 * super().forward(x, padding)


@right
class KeepsItsWeights(Plain):
    """Stores its weights for whoever wants to look; no call reads them."""

    def weights(self, scores: Tensor, visible: Tensor) -> Tensor:
        self.last = super().weights(scores, visible)
        return self.last


@right
class WorksOnACopy(Plain):
    """Changes a copy of its input in place."""

    def forward(self, x: Tensor, padding: Tensor | None = None) -> Tensor:
        x = x.clone()
        x *= 0.5
        return super().forward(x, padding)


# Right: other ways to weigh the past.


@right
class MaximumOfAll(Plain):
    """Subtracts the largest of all scores, later ones included, which cancels in the quotient."""

    def weights(self, scores: Tensor, visible: Tensor) -> Tensor:
        raised = (scores - scores.amax(-1, keepdim=True)).exp() * visible
        return raised / raised.sum(-1, keepdim=True)

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        return F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-1, -2)


@right
class OneMore(Plain):
    """Softmax with one more in the denominator: a query may look at nothing."""

    def weights(self, scores: Tensor, visible: Tensor) -> Tensor:
        scores = scores.masked_fill(~visible, -math.inf)
        nothing = scores.new_zeros(*scores.shape[:-1], 1)
        return torch.cat((scores, nothing), -1).softmax(-1)[..., :-1]


@right
class Sink(Plain):
    """A learned key with a learned value beside the tokens."""

    def __init__(self, shape: MixerShape) -> None:
        super().__init__(shape)
        self.sink = nn.Parameter(torch.randn(2, shape.heads, 1, shape.head_width))

    def attend(self, x: Tensor, padding: Tensor | None = None) -> Tensor:
        q, k, v = (self.split(part) for part in self.qkv(x).chunk(3, -1))
        visible = self.visible(q @ k.transpose(-1, -2))
        if padding is not None:
            visible = visible & padding[:, None, None, :]
        scores = self.scores(q, k).masked_fill(~visible, -math.inf)
        scores = torch.cat((self.scores(q, self.sink[:1].expand(len(x), -1, -1, -1)), scores), -1)
        v = torch.cat((self.sink[1:].expand(len(x), -1, -1, -1), v), 2)
        return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)


@right
class Sigmoid(Plain):
    """Sigmoid instead of softmax."""

    def weights(self, scores: Tensor, visible: Tensor) -> Tensor:
        return (scores - 2).sigmoid() * visible


@right
class SquaredRelu(Plain):
    """relu² of the scores, divided by their number."""

    def weights(self, scores: Tensor, visible: Tensor) -> Tensor:
        return scores.relu().square() * visible / visible.sum(-1, keepdim=True).clamp_min(1)


@right
class TopFour(Plain):
    """Each query looks at its four best keys only."""

    def weights(self, scores: Tensor, visible: Tensor) -> Tensor:
        scores = scores.masked_fill(~visible, -math.inf)
        least = scores.topk(min(4, scores.shape[-1])).values[..., -1:]
        return scores.masked_fill(scores < least, -math.inf).softmax(-1)


@right
class Window(Plain):
    """Looks back at most five tokens."""

    def visible(self, scores: Tensor) -> Tensor:
        near = torch.ones_like(super().visible(scores)).triu(-4)
        return super().visible(scores) & (near if self.causal else near & near.T)


@right
class EverySecond(Plain):
    """Sees the tokens at an even distance."""

    def visible(self, scores: Tensor) -> Tensor:
        at = torch.arange(scores.shape[-1])
        return super().visible(scores) & ((at[:, None] - at) % 2 == 0)


@right
class LinearBias(Plain):
    """Penalises distance."""

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        at = torch.arange(q.shape[2], dtype=q.dtype)
        return super().scores(q, k) - 0.1 * (at[:, None] - at).abs()


@right
class OffsetTable(Plain):
    """A learned bias per distance."""

    def __init__(self, shape: MixerShape) -> None:
        super().__init__(shape)
        self.bias = nn.Parameter(torch.zeros(shape.heads, shape.context))

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        at = torch.arange(q.shape[2])
        return super().scores(q, k) + self.bias[:, (at[:, None] - at).abs()]


@right
class TalkingHeads(Plain):
    """Scores and weights are mixed among the heads, the mask comes between."""

    def __init__(self, shape: MixerShape) -> None:
        super().__init__(shape)
        self.first, self.second = (nn.Linear(shape.heads, shape.heads, bias=False) for _ in range(2))

    def weights(self, scores: Tensor, visible: Tensor) -> Tensor:
        scores = self.first(scores.movedim(1, -1)).movedim(-1, 1)
        return self.second(super().weights(scores, visible).movedim(1, -1)).movedim(-1, 1)


@right
class InBlocks(Plain):
    """Queries in blocks of 64, each over all keys up to its end."""

    def attend(self, x: Tensor, padding: Tensor | None = None) -> Tensor:
        q, k, v = (self.split(part) for part in self.qkv(x).chunk(3, -1))
        outputs = []
        for start in range(0, x.shape[1], 64):
            scores = self.scores(q[:, :, start : start + 64], k)
            visible = self.visible(k @ k.transpose(-1, -2))[start : start + 64]
            if padding is not None:
                visible = visible & padding[:, None, None, :]
            outputs.append(self.weights(scores, visible) @ v)
        return torch.cat(outputs, 2).transpose(1, 2).flatten(2)


@right
class NormalisedFeatures(Plain):
    """Layer norm inside, over the features of a token."""

    def __init__(self, shape: MixerShape) -> None:
        super().__init__(shape)
        self.norm = nn.LayerNorm(shape.width)

    def forward(self, x: Tensor, padding: Tensor | None = None) -> Tensor:
        return super().forward(self.norm(x), padding)


@right
class NormalisedWeights(Plain):
    """A projection with weight normalisation."""

    def __init__(self, shape: MixerShape) -> None:
        super().__init__(shape)
        self.output = parametrizations.weight_norm(self.output)


@right
class InputGate(Plain):
    """The output is gated by the token itself."""

    def __init__(self, shape: MixerShape) -> None:
        super().__init__(shape)
        self.gate = nn.Linear(shape.width, shape.width)

    def forward(self, x: Tensor, padding: Tensor | None = None) -> Tensor:
        return self.gate(x).sigmoid() * super().forward(x, padding)


# Right: no attention at all. Causal only.


class Causal(nn.Module):
    bidirectional = False

    def __init__(self, shape: MixerShape) -> None:
        super().__init__()
        self.value = nn.Linear(shape.width, shape.width)


@right
class MeanOfThePast(Causal):
    """The mean of all values so far."""

    def forward(self, x: Tensor) -> Tensor:
        count = torch.arange(1, x.shape[1] + 1, dtype=x.dtype)[:, None]
        return self.value(x).cumsum(1) / count


@right
class WithoutParameters(nn.Module):
    """The mean of the past, nothing to learn."""

    bidirectional = False

    def __init__(self, shape: MixerShape) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        return x.cumsum(1) / torch.arange(1, x.shape[1] + 1, dtype=x.dtype)[:, None]


@right
class Decay(Causal):
    """A running mean with a learned decay."""

    def __init__(self, shape: MixerShape) -> None:
        super().__init__(shape)
        self.decay = nn.Parameter(torch.zeros(shape.width))

    def forward(self, x: Tensor) -> Tensor:
        v, state, outputs = self.value(x), torch.zeros_like(x[:, 0]), []
        for t in range(x.shape[1]):
            state = self.decay.sigmoid() * state + v[:, t]
            outputs.append(state)
        return torch.stack(outputs, 1)


@right
class Recurrent(nn.Module):
    """torch's GRU."""

    bidirectional = False

    def __init__(self, shape: MixerShape) -> None:
        super().__init__()
        self.gru = nn.GRU(shape.width, shape.width, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.gru(x)[0]


@right
class Convolution(nn.Module):
    """Four tokens back, padded on the left."""

    bidirectional = False

    def __init__(self, shape: MixerShape) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(shape.width, shape.width, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.convolution(F.pad(x.transpose(1, 2), (3, 0))).transpose(1, 2)


@right
class TokenShift(Causal):
    """A mixture of each token with the one before."""

    def forward(self, x: Tensor) -> Tensor:
        return self.value(x + F.pad(x, (0, 0, 1, 0))[:, :-1])


@right
class FrozenFeatures(Causal):
    """A random projection that is not trained."""

    def __init__(self, shape: MixerShape) -> None:
        super().__init__(shape)
        self.features = nn.Linear(shape.width, shape.width).requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        raised = F.elu(self.features(x)) + 1.01  # (B, T, C)
        return (raised * self.value(x)).cumsum(1) / raised.cumsum(1)


@right
class OwnCache(Plain):
    """Keeps its keys and values in the cache."""

    bidirectional = False

    def forward(self, x: Tensor, padding: Tensor | None = None, cache: Cache | None = None) -> Tensor:
        if cache is None:
            return super().forward(x, padding)
        q, k, v = (self.split(part) for part in self.qkv(x).chunk(3, -1))
        at = cache.positions(x)
        visible, (k, v) = cache.extend(x, padding, at, keys=k, values=v)
        weights = self.weights(self.scores(q, k), visible.mask())
        return self.output((weights @ v).transpose(1, 2).flatten(2))


# Wrong: the future.


@wrong(*FUTURE)
class NoMask(Plain):
    """No mask at all."""

    def visible(self, scores: Tensor) -> Tensor:
        return torch.ones(scores.shape[-2:], dtype=torch.bool)


@wrong(*FUTURE)
class MaskAfterSoftmax(Plain):
    """The mask is applied after the softmax."""

    def weights(self, scores: Tensor, visible: Tensor) -> Tensor:
        return scores.softmax(-1) * visible


@wrong(*FUTURE)
class MaskTransposed(Plain):
    """Sees what follows instead of what was."""

    def visible(self, scores: Tensor) -> Tensor:
        return before(scores.shape[-1], scores).T


@wrong(*FUTURE)
class MaskOneTooFar(Plain):
    """Sees the next token."""

    def visible(self, scores: Tensor) -> Tensor:
        return torch.ones(scores.shape[-2:], dtype=torch.bool).tril(1)


@wrong(*FUTURE)
class WrongAxis(Plain):
    """Softmax over the queries."""

    def weights(self, scores: Tensor, visible: Tensor) -> Tensor:
        return scores.masked_fill(~visible, -math.inf).softmax(-2)


@wrong(*FUTURE)
class OnePair(Plain):
    """Position 3 sees token 9, and nothing else is wrong."""

    def visible(self, scores: Tensor) -> Tensor:
        mask = before(scores.shape[-1], scores)
        mask[3:4, 9:10] = True
        return mask


@wrong(*FUTURE)
class LastPosition(Plain):
    """The last but one sees the last."""

    def visible(self, scores: Tensor) -> Tensor:
        mask = before(scores.shape[-1], scores)
        mask[-2:-1, -1:] = True
        return mask


@wrong(*FUTURE)
class Faint(Plain):
    """A leak of the size 1e-7."""

    def forward(self, x: Tensor, padding: Tensor | None = None) -> Tensor:
        return super().forward(x, padding) + 1e-7 * x.flip(1)


@wrong(PERTURBATION)
class Detached(Plain):
    """A leak without a gradient."""

    def forward(self, x: Tensor, padding: Tensor | None = None) -> Tensor:
        return super().forward(x, padding) * (1 + x.detach().amax(1, keepdim=True))


@wrong(*FUTURE)
class Late(Plain):
    """No mask from position 100 on."""

    def visible(self, scores: Tensor) -> Tensor:
        mask = before(scores.shape[-1], scores)
        mask[100:, 100:] = True
        return mask


@wrong(*FUTURE)
class BlockEdges(Plain):
    """The last query of a block of 64 sees the first key of the next."""

    def visible(self, scores: Tensor) -> Tensor:
        mask = before(scores.shape[-1], scores)
        for edge in range(64, scores.shape[-1], 64):
            mask[edge - 1, edge] = True
        return mask


@wrong(*FUTURE)
class MaskInEvaluationOnly(Plain):
    """No mask in training."""

    def visible(self, scores: Tensor) -> Tensor:
        return torch.ones(scores.shape[-2:], dtype=torch.bool) if self.training else before(scores.shape[-1], scores)


@wrong(*FUTURE)
class BatchNorm(Plain):
    """Batch norm over all tokens, those of the future among them, in training."""

    def __init__(self, shape: MixerShape) -> None:
        super().__init__(shape)
        self.norm = nn.BatchNorm1d(shape.width)

    def forward(self, x: Tensor, padding: Tensor | None = None) -> Tensor:
        return super().forward(self.norm(x.transpose(1, 2)).transpose(1, 2), padding)


@wrong(*FUTURE)
class Centred(Plain):
    """Subtracts the mean of the whole sequence."""

    def forward(self, x: Tensor, padding: Tensor | None = None) -> Tensor:
        return super().forward(x - x.mean(1, keepdim=True), padding)


@wrong(*FUTURE)
class DividedBySpread(Plain):
    """Divides by the spread of the whole sequence."""

    def forward(self, x: Tensor, padding: Tensor | None = None) -> Tensor:
        return super().forward(x / x.std((1, 2), keepdim=True), padding)


@wrong(PERTURBATION)
class KnowsTheLength(Causal):
    """Divides by the length of the sequence."""

    def forward(self, x: Tensor) -> Tensor:
        return self.value(x).cumsum(1) / x.shape[1]


@wrong(*FUTURE)
class TwoWays(nn.Module):
    """A recurrent network in both directions."""

    bidirectional = False

    def __init__(self, shape: MixerShape) -> None:
        super().__init__()
        self.gru = nn.GRU(shape.width, shape.width // 2, batch_first=True, bidirectional=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.gru(x)[0]


@wrong(*FUTURE)
class CentredConvolution(nn.Module):
    """A convolution padded on both sides."""

    bidirectional = False

    def __init__(self, shape: MixerShape) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(shape.width, shape.width, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return self.convolution(x.transpose(1, 2)).transpose(1, 2)


@wrong(*FUTURE)
class Fourier(Causal):
    """Mixes by a Fourier transform."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.fft.fft(self.value(x), dim=1).real


@wrong(*FUTURE)
class Reversed(Causal):
    """Sums from the end."""

    def forward(self, x: Tensor) -> Tensor:
        return self.value(x).flip(1).cumsum(1).flip(1)


@wrong(*FUTURE)
class HeadsMerged(Plain):
    """The heads are merged without their transposition: positions are mixed up."""

    def attend(self, x: Tensor, padding: Tensor | None = None) -> Tensor:
        q, k, v = (self.split(part) for part in self.qkv(x).chunk(3, -1))
        scores = self.scores(q, k)
        visible = self.visible(scores)
        if padding is not None:
            visible = visible & padding[:, None, None, :]
        return (self.weights(scores, visible) @ v).reshape(x.shape)


@wrong(*FUTURE)
class LooksAtTheEnd(Plain):
    """Adds the last token."""

    def forward(self, x: Tensor, padding: Tensor | None = None) -> Tensor:
        return super().forward(x, padding) + x[:, -1:]


@wrong(PERTURBATION)
class Ranked(Causal):
    """Weighs each token by its rank among all."""

    def forward(self, x: Tensor) -> Tensor:
        rank = x.sum(-1).argsort(1).argsort(1).to(x.dtype)[..., None]
        return self.value(x).cumsum(1) * (1 + rank)


@wrong(*FUTURE)
class HiddenByAGate(ReZero):
    """No mask, behind a gate that starts at zero."""

    def visible(self, scores: Tensor) -> Tensor:
        return torch.ones(scores.shape[-2:], dtype=torch.bool)


@wrong(*FUTURE)
class HiddenByZeros(ZeroOutput):
    """No mask, behind a projection that starts at zero."""

    def visible(self, scores: Tensor) -> Tensor:
        return torch.ones(scores.shape[-2:], dtype=torch.bool)


@wrong(*FUTURE)
class TrainsIntoTheFuture(Causal):
    """A trained matrix over positions that only starts as a lower triangle."""

    def __init__(self, shape: MixerShape) -> None:
        super().__init__(shape)
        self.mixing = nn.Parameter(torch.ones(shape.context, shape.context).tril() / shape.context)

    def forward(self, x: Tensor) -> Tensor:
        return self.mixing[: x.shape[1], : x.shape[1]] @ self.value(x)


# Wrong: no function of its input.


@wrong("deterministic")
class AlwaysDropout(Plain):
    """Dropout in evaluation too."""

    def weights(self, scores: Tensor, visible: Tensor) -> Tensor:
        return F.dropout(super().weights(scores, visible), 0.3, True)


@wrong("deterministic")
class Clock(Plain):
    """Depends on the time of day."""

    def forward(self, x: Tensor, padding: Tensor | None = None) -> Tensor:
        return super().forward(x, padding) + 1e-3 * math.sin(time.perf_counter_ns())


@wrong("input")
class ChangesItsInput(Plain):
    """Scales its input in place."""

    def forward(self, x: Tensor, padding: Tensor | None = None) -> Tensor:
        x.detach().mul_(0.5)
        return super().forward(x, padding)


@wrong("state")
class Remembers(Plain):
    """Adds the mean of the call before."""

    def __init__(self, shape: MixerShape) -> None:
        super().__init__(shape)
        self.past: Tensor | float = 0.0

    def forward(self, x: Tensor, padding: Tensor | None = None) -> Tensor:
        y = super().forward(x, padding) + self.past
        self.past = y.detach().mean()
        return y


@wrong("state")
class Counts(Plain):
    """Fades with every call."""

    def __init__(self, shape: MixerShape) -> None:
        super().__init__(shape)
        self.calls = 0

    def forward(self, x: Tensor, padding: Tensor | None = None) -> Tensor:
        self.calls += 1
        return super().forward(x, padding) / self.calls


@wrong("finite")
class NothingVisible(Plain):
    """A query does not see itself: the first one sees nothing, and its softmax is 0/0."""

    def visible(self, scores: Tensor) -> Tensor:
        return torch.ones(scores.shape[-2:], dtype=torch.bool).tril(-1)


@wrong("finite")
class Logarithm(Plain):
    """The logarithm of negative numbers."""

    def forward(self, x: Tensor, padding: Tensor | None = None) -> Tensor:
        return super().forward(x.log(), padding)


@wrong("finite")
class ZeroOverZero(Plain):
    """Divides by its gate, which starts at zero and is not trained."""

    def __init__(self, shape: MixerShape) -> None:
        super().__init__(shape)
        self.register_buffer("gate", torch.zeros(()))

    def forward(self, x: Tensor, padding: Tensor | None = None) -> Tensor:
        return super().forward(x, padding) / self.gate * self.gate


# Wrong: batch, padding, parameters, cache, size.


@wrong("batch")
class MixesRows(Causal):
    """Subtracts the mean over the batch."""

    def forward(self, x: Tensor) -> Tensor:
        return self.value(x).cumsum(1) - x.mean(0, keepdim=True)


@wrong("padding")
class IgnoresPadding(Plain):
    """Has no use for padding, even where later tokens are visible."""

    def forward(self, x: Tensor, padding: Tensor | None = None) -> Tensor:
        return super().forward(x, None)


@wrong("gradients")
class Unused(Plain):
    """A layer that is never called."""

    def __init__(self, shape: MixerShape) -> None:
        super().__init__(shape)
        self.spare = nn.Linear(shape.width, shape.width)


@wrong("gradients")
class HalfAVector(Plain):
    """A vector of which half is used."""

    def __init__(self, shape: MixerShape) -> None:
        super().__init__(shape)
        self.scale = nn.Parameter(torch.ones(2 * shape.width))

    def forward(self, x: Tensor, padding: Tensor | None = None) -> Tensor:
        return super().forward(x, padding) * self.scale[: x.shape[-1]]


@wrong("gradients")
class HalfATable(Plain):
    """A table for all pairs of positions, half of which are hidden."""

    bidirectional = False

    def __init__(self, shape: MixerShape) -> None:
        super().__init__(shape)
        self.bias = nn.Parameter(torch.zeros(shape.context, shape.context))

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        return super().scores(q, k) + self.bias[: q.shape[2], : k.shape[2]]


@wrong("gradients")
class Hard(Plain):
    """Takes the best key only: no gradient for queries and keys."""

    def weights(self, scores: Tensor, visible: Tensor) -> Tensor:
        best = scores.masked_fill(~visible, -math.inf).argmax(-1)
        return F.one_hot(best, scores.shape[-1]).to(scores.dtype)


@wrong("gradients")
class DetachedValues(Plain):
    """The values are cut off from the gradient."""

    def attend(self, x: Tensor, padding: Tensor | None = None) -> Tensor:
        q, k, v = (self.split(part) for part in self.qkv(x).chunk(3, -1))
        scores = self.scores(q, k)
        visible = self.visible(scores)
        if padding is not None:
            visible = visible & padding[:, None, None, :]
        return (self.weights(scores, visible) @ v.detach()).transpose(1, 2).flatten(2)


@wrong("cache")
class Forgets(Plain):
    """Accepts a cache and does not use it."""

    bidirectional = False

    def forward(self, x: Tensor, padding: Tensor | None = None, cache: Cache | None = None) -> Tensor:
        if cache is not None:
            cache.advance(x, padding)
        return super().forward(x, padding if cache is None else None)


@wrong("cache")
class RingOf66(OwnCache):
    """Overwrites its oldest keys after 66."""

    def forward(self, x: Tensor, padding: Tensor | None = None, cache: Cache | None = None) -> Tensor:
        if cache is None:
            return super().forward(x, padding)
        q, k, v = (self.split(part) for part in self.qkv(x).chunk(3, -1))
        visible, (k, v) = cache.extend(x, padding, cache.positions(x), keys=k, values=v)
        mask = visible.mask()
        assert mask is not None
        mask[..., : max(0, k.shape[2] - 66)] = False
        return self.output((self.weights(self.scores(q, k), mask) @ v).transpose(1, 2).flatten(2))


@wrong("cache")
class OneMemory(OwnCache):
    """Keeps the keys of a decoding in the module: two decodings mix."""

    def __init__(self, shape: MixerShape) -> None:
        super().__init__(shape)
        self.memory = Cache()

    def forward(self, x: Tensor, padding: Tensor | None = None, cache: Cache | None = None) -> Tensor:
        if cache is None:
            return super().forward(x, padding)
        if cache.lengths is None:
            self.memory = Cache()
        cache.positions(x)
        cache.advance(x, padding)
        return super().forward(x, padding, self.memory)


@wrong("cache")
class IgnoresSelection(OwnCache):
    """Keeps its inputs where `select` does not reach them."""

    def forward(self, x: Tensor, padding: Tensor | None = None, cache: Cache | None = None) -> Tensor:
        if cache is None:
            return super().forward(x, padding)
        hidden = self.__dict__.setdefault("hidden", {})
        own = hidden.setdefault(id(cache), Cache())
        hidden[f"{id(cache)} kept"] = cache  # so that no other cache gets its identity
        if len(x) != len(own.lengths if own.lengths is not None else x):
            own.select(torch.arange(len(x)) % len(own.lengths))
        cache.positions(x)
        cache.advance(x, padding)
        return super().forward(x, padding, own)


@wrong("large inputs")
class Overflows(Causal):
    """exp without a safeguard."""

    def forward(self, x: Tensor) -> Tensor:
        raised = x.exp()
        return (raised * self.value(x)).cumsum(1) / raised.cumsum(1)


STAYS_CAUSAL: dict[str, Kind] = {}
"""Wrong in the bidirectional form only: the check `tokens meet` must fail there."""


class AlwaysMasked(Plain):
    """Hides the future whatever it is asked for."""

    def visible(self, scores: Tensor) -> Tensor:
        return before(scores.shape[-1], scores)


STAYS_CAUSAL["AlwaysMasked"] = AlwaysMasked
