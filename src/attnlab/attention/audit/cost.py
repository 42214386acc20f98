"""Cost of a mixer as sequences grow: time and memory of a forward and backward pass, as powers of T.

cost ≈ a·T^p,   p the slope of log cost over log T at the longest sequences that fit the budget
"""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from attnlab.attention.registry import MixerShape


@dataclass(frozen=True)
class Growth:
    """Measured costs by length, and the exponents of their growth."""

    lengths: list[int]
    seconds: list[float]
    megabytes: list[float]

    @property
    def time(self) -> float:
        return exponent(self.lengths, self.seconds)

    @property
    def memory(self) -> float:
        return exponent(self.lengths, self.megabytes)


def exponent(lengths: Sequence[int], costs: Sequence[float], last: int = 3) -> float:
    """The slope of log cost over log length, by least squares over the last few points."""
    xs, ys = ([math.log(value) for value in values[-last:]] for values in (lengths, costs))
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / sum((a - x) ** 2 for a in xs)


def growth(
    build: Callable[[MixerShape], nn.Module],
    shape: MixerShape,
    lengths: Sequence[int] = (64, 128, 256, 512, 1024, 2048, 4096, 8192),
    seconds: float = 1.0,
    megabytes: float = 120.0,
    repeats: int = 5,
) -> Growth:
    """Measure with T = context at each length, until the next pass would exceed `seconds` or `megabytes`.

    At least three lengths are measured. The memory stays below the sizes from which caches and
    allocator make each byte more expensive and change the exponent. One thread: a second one that waits
    for a busy core would be measured instead of the mixer.
    """
    costs = Growth([], [], [])
    with one_thread():
        for length in lengths:
            mixer = build(replace(shape, context=length))
            x = torch.randn(1, length, shape.width, requires_grad=True)
            memory = peak_bytes(lambda m=mixer, x=x: _train(m, x)) / 1e6  # type: ignore[misc]
            costs.lengths.append(length)
            costs.megabytes.append(memory)
            costs.seconds.append(min(_seconds(mixer, x) for _ in range(repeats)))
            if len(costs.lengths) >= 3 and (costs.seconds[-1] * 4 > seconds or memory * 4 > megabytes):
                break
    return costs


def _train(mixer: nn.Module, x: Tensor) -> None:
    mixer(x).sum().backward()


def _seconds(mixer: nn.Module, x: Tensor) -> float:
    start = time.process_time()  # other processes on a busy machine are not the mixer's cost
    _train(mixer, x)
    return time.process_time() - start


@contextmanager
def one_thread() -> Iterator[None]:
    """Tensors this small are computed faster than a second thread is woken."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def peak_bytes(work: Callable[[], Any]) -> int:
    """The peak size in bytes of the tensors that `work` creates.

    Counted where operators return, so the small workspace inside a fused kernel is not counted; the same
    on every device, whatever other processes do.
    """
    with _Meter() as meter:
        work()
    return meter.peak


class _Meter(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.alive = self.peak = 0
        self.seen: weakref.WeakSet[Any] = weakref.WeakSet()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        inputs = {id(t.untyped_storage()) for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)}
        for tensor in tree_leaves(result):
            if not isinstance(tensor, Tensor):
                continue
            storage = tensor.untyped_storage()
            if id(storage) in inputs or storage in self.seen:  # a view, or written in place
                continue
            self.seen.add(storage)
            self.alive += storage.nbytes()
            self.peak = max(self.peak, self.alive)
            weakref.finalize(storage, self._freed, storage.nbytes())
        return result

    def _freed(self, size: int) -> None:
        self.alive -= size
