"""How much memory a piece of work needs at its peak, on a GPU or on a CPU.

On Linux the kernel keeps the largest resident size of a process and can be asked to start anew
(/proc/self/clear_refs); elsewhere a thread looks every few milliseconds.
"""

from __future__ import annotations

import gc
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import torch


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
    before = psutil.Process().memory_info().rss
    try:
        Path("/proc/self/clear_refs").write_text("5")  # forget the highest size seen so far
    except OSError:
        with _watched(peak):
            yield peak
        peak.bytes = max(0, peak.bytes - before)
        return
    try:
        yield peak
    finally:
        peak.bytes = max(0, _high_water() - before)


def _high_water() -> int:
    found = re.search(r"^VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


@contextmanager
def _watched(peak: Peak) -> Iterator[None]:
    done = threading.Event()

    def watch() -> None:
        process = psutil.Process()
        while not done.wait(0.002):
            peak.bytes = max(peak.bytes, process.memory_info().rss)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
