"""The peak memory of a run, and a limit that turns too much memory into an error instead of a killed process.

On a GPU the allocator counts. On a CPU the system counts for the whole process, libraries included; Linux lets a
process reset its peak, so each run in it has its own. On other systems the peak is not known.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from attnlab.base.machine import facts

RESET_PEAK = "5"  # proc(5): sets the peak resident set size to what is resident now


def start_peak() -> None:
    """Start counting; memory that earlier runs released is returned to the system first."""
    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text(RESET_PEAK)


def peak(device: str) -> int | None:
    """Bytes at the peak since `start_peak`, or None where the system does not report it."""
    if device.startswith("cuda"):
        import torch

        return int(torch.cuda.max_memory_allocated(device))
    return _status("VmHWM")


def _status(name: str) -> int | None:
    """A line of /proc/self/status, in bytes."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    found = next((line for line in lines if line.startswith(f"{name}:")), None)
    return int(found.split()[1]) * 1024 if found else None


def is_out_of_memory(error: BaseException) -> bool:
    text = str(error).lower()  # the CPU allocator raises a plain RuntimeError
    return isinstance(error, MemoryError) or "out of memory" in text or "allocate memory" in text


@contextmanager
def within_free_memory() -> Iterator[None]:
    """Inside, allocating more than the free memory raises; without the limit the system would kill the process."""
    in_use = _status("VmData")
    if sys.platform != "linux" or in_use is None:
        yield
        return
    process = psutil.Process()
    soft, hard = process.rlimit(psutil.RLIMIT_DATA)
    in_use_and_free = in_use + facts.memory()[1]
    allowed = [limit for limit in (in_use_and_free, soft, hard) if limit >= 0]  # -1: no limit
    process.rlimit(psutil.RLIMIT_DATA, (min(allowed), hard))
    try:
        yield
    finally:
        process.rlimit(psutil.RLIMIT_DATA, (soft, hard))
