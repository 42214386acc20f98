"""Facts about the machine: cores and memory available to this process, devices, versions, the hub.

A container's limits (cgroups) apply, not the host's size.
"""

from __future__ import annotations

import ctypes
import gc
import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from attnlab.base.errors import UserError
from attnlab.base.machine import facts
from attnlab.version import __version__

GIB = 1024**3
PACKAGES = (
    "torch",
    "numpy",
    "accelerate",
    "safetensors",
    "transformers",
    "tokenizers",
    "pydantic",
    "typer",
    "rich",
    "matplotlib",
    "tensorboard",
)


def cores() -> int:
    """The number of CPU cores available to this process."""
    try:
        allowed = len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        allowed = os.cpu_count() or 1
    quota = _cgroup("cpu.max").split()
    if len(quota) == 2 and quota[0].isdigit():
        allowed = min(allowed, max(1, int(quota[0]) // int(quota[1])))
    granted = os.environ.get("SLURM_CPUS_ON_NODE", "")  # some clusters do not bind a job to its cores
    return min(allowed, int(granted)) if granted.isdigit() else allowed


def threads() -> int:
    """The number of threads to compute with: what OMP_NUM_THREADS says, else one per core."""
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(asked) if asked.isdigit() and int(asked) > 0 else cores()


def memory() -> tuple[int, int]:
    """Bytes of memory, total and free, within the limits of a container."""
    host = psutil.virtual_memory()
    total, free = int(host.total), int(host.available)
    limit, used = _cgroup("memory.max"), _cgroup("memory.current")
    if limit.isdigit() and used.isdigit() and int(limit) < total:
        total, free = int(limit), min(free, int(limit) - int(used))
    return total, free


def _cgroup(name: str) -> str:
    try:
        return Path("/sys/fs/cgroup", name).read_text().strip()
    except OSError:
        return ""


def cpu_name() -> str:
    """The name of the processor."""
    try:
        match = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        match = None
    return match[1] if match else platform.processor() or platform.machine()


def versions() -> dict[str, str]:
    """Versions of Python and of the packages a result depends on, if installed."""
    installed = {"python": platform.python_version(), "attnlab": __version__}
    for package in PACKAGES:
        try:
            installed[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return installed


def devices() -> list[str]:
    """The names of the accelerators torch can use."""
    import torch

    names = [f"cuda:{n} {torch.cuda.get_device_name(n)}" for n in range(torch.cuda.device_count())]
    if torch.backends.mps.is_available():
        names.append("mps")
    return names


def resolve_device(requested: str) -> str:
    """The device for a setting: 'auto' is an accelerator if there is one; a missing device is an error."""
    import torch

    if requested == "auto":
        if torch.cuda.is_available():
            return "cuda"
        return "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        kind = torch.device(requested)
    except RuntimeError:
        raise UserError(f"--device: {requested!r} is not a device: use auto, cpu, cuda, cuda:1 or mps.") from None
    available = {
        "cpu": True,
        "cuda": (kind.index or 0) < torch.cuda.device_count(),
        "mps": torch.backends.mps.is_available(),
    }
    if not available.get(kind.type, False):
        raise UserError(f"--device: {requested!r} does not exist on this machine: use --device auto or --device cpu.")
    return requested


def describe() -> dict[str, Any]:
    """The description of the machine that a run records."""
    total, _ = memory()
    return {
        "host": platform.node(),
        "system": platform.platform(),
        "cpu": cpu_name(),
        "cores": cores(),
        "memory_gib": round(total / GIB, 1),
        "devices": devices(),
    }


GIT = (
    *("git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}"),
    *("-c", "protocol.allow=never"),
)
"""Without the programs that a repository can name in its own files: it may be somebody else's."""


def git_commit(folder: Path) -> dict[str, Any] | None:
    """The commit checked out around `folder` and whether files differ from it, or None."""
    if shutil.which("git") is None:
        return None
    commit = _git(folder, "rev-parse", "HEAD")
    if commit is None:
        return None
    return {"commit": commit, "changed": _changed(folder)}


def _changed(folder: Path) -> bool | None:
    """Whether files differ; None where git would run a program that the repository's own configuration names."""
    configured = _git(folder, "config", "--show-scope", "--get-regexp", r"^filter\.") or ""
    if any(line.startswith(("local", "worktree")) for line in configured.splitlines()):
        return None
    return bool(_git(folder, "status", "--porcelain", "--untracked-files=no", "--ignore-submodules=all"))


def _git(folder: Path, *words: str) -> str | None:
    try:
        done = subprocess.run([*GIT, "-C", str(folder), *words], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def hub_status() -> str:
    """Whether the model hub answers: 'reachable', or the reason why not."""
    import urllib.error
    import urllib.request

    if os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "true", "yes", "on"):
        return "disabled (HF_HUB_OFFLINE)"
    try:
        from huggingface_hub import constants
    except ImportError:
        return "not checked: huggingface_hub is not installed"
    try:
        with urllib.request.urlopen(urllib.request.Request(constants.ENDPOINT, method="HEAD"), timeout=4):
            return "reachable"
    except urllib.error.HTTPError:
        return "reachable"  # any answer counts
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        return f"not reachable ({reason})"


RESET_PEAK = "5"  # proc(5): sets the peak resident set size to what is resident now


def start_peak() -> None:
    """Start measuring the peak memory; memory that earlier runs released is returned to the system first."""
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
    line = next((line for line in lines if line.startswith(f"{name}:")), None)
    return int(line.split()[1]) * 1024 if line else None


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
