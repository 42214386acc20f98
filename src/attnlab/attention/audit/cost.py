"""What a mixer costs as sequences grow: time and memory of a forward and backward pass, as powers of T.

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

from attnlab.attention.variant import MixerShape


@dataclass(frozen=True)
class Growth:
    """Measured costs by length, and the exponent they show."""

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
    """Measure with T = context at each length, until a pass goes beyond so many seconds or megabytes.

    At least three lengths are measured. The memory is kept below what a cache and an allocator like,
    beyond which each byte costs more and the exponent is theirs. One thread: a second one that waits
    for a busy core would be measured instead of the mixer.
    """
    found = Growth([], [], [])
    with one_thread():
        for length in lengths:
            mixer = build(replace(shape, context=length))
            x = torch.randn(1, length, shape.width, requires_grad=True)
            memory = peak_bytes(lambda m=mixer, x=x: _train(m, x)) / 1e6  # type: ignore[misc]
            found.lengths.append(length)
            found.megabytes.append(memory)
            found.seconds.append(min(_seconds(mixer, x) for _ in range(repeats)))
            if len(found.lengths) >= 3 and (found.seconds[-1] * 4 > seconds or memory * 4 > megabytes):
                break
    return found


def _train(mixer: nn.Module, x: Tensor) -> None:
    mixer(x).sum().backward()


def _seconds(mixer: nn.Module, x: Tensor) -> float:
    start = time.process_time()  # what other processes do on a busy machine is not the mixer's cost
    _train(mixer, x)
    return time.process_time() - start


@contextmanager
def one_thread() -> Iterator[None]:
    """What is done with tensors this small is done sooner than a second thread is woken."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def peak_bytes(work: Callable[[], Any]) -> int:
    """The most bytes of tensors that were alive at once among those made by `work`.

    Counted where operators return, so the small workspace inside a fused kernel is not seen; the same
    on every device and undisturbed by other processes.
    """
    with _Meter() as meter:
        work()
    return meter.peak


class _Meter(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.alive = self.peak = 0
        self.known: weakref.WeakSet[Any] = weakref.WeakSet()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        given = {id(t.untyped_storage()) for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)}
        for tensor in tree_leaves(result):
            if not isinstance(tensor, Tensor):
                continue
            storage = tensor.untyped_storage()
            if id(storage) in given or storage in self.known:  # a view, or written in place
                continue
            self.known.add(storage)
            self.alive += storage.nbytes()
            self.peak = max(self.peak, self.alive)
            weakref.finalize(storage, self._freed, storage.nbytes())
        return result

    def _freed(self, size: int) -> None:
        self.alive -= size
