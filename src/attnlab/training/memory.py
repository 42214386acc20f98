"""How much memory a piece of work needs at its peak, on a GPU or on a CPU.

A GPU's allocator keeps count itself. On a CPU torch's profiler lists every tensor that comes and goes; what
the process has resident would not do, since freed memory often stays with it.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.profiler import ProfilerActivity, profile


class Peak:
    """Bytes at the highest point, beyond what was in use before."""

    def __init__(self) -> None:
        self.bytes = 0


@contextmanager
def measured(device: str) -> Iterator[Peak]:
    """Measure the peak of what happens inside."""
    gc.collect()
    with _on_gpu() if device.startswith("cuda") else _on_cpu() as peak:
        yield peak


@contextmanager
def _on_gpu() -> Iterator[Peak]:
    peak = Peak()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    try:
        yield peak
    finally:
        peak.bytes = torch.cuda.max_memory_allocated() - before


@contextmanager
def _on_cpu() -> Iterator[Peak]:
    peak = Peak()
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # the profiler talks on standard error otherwise
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True, acc_events=False) as profiler:
        yield peak
    changes = [e for e in profiler.profiler.kineto_results.events() if e.name() == "[memory]"]
    in_use = 0
    for change in sorted(changes, key=lambda event: event.start_ns()):
        in_use += change.nbytes()
        peak.bytes = max(peak.bytes, in_use)
