"""Facts about the machine: cores and memory available to this process, devices, versions, the hub.

A container's limits (cgroups) apply, not the host's size.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import psutil

from attnlab.base.errors import UserError
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


def memory() -> tuple[int, int]:
    """Bytes of memory, total and free, within the limits of a container."""
    seen = psutil.virtual_memory()
    total, free = int(seen.total), int(seen.available)
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
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found[1] if found else platform.processor() or platform.machine()


def versions() -> dict[str, str]:
    """Versions of Python and of the packages a result depends on, if installed."""
    found = {"python": platform.python_version(), "attnlab": __version__}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def devices() -> list[str]:
    """The names of the accelerators torch can use."""
    import torch

    found = [f"cuda:{n} {torch.cuda.get_device_name(n)}" for n in range(torch.cuda.device_count())]
    if torch.backends.mps.is_available():
        found.append("mps")
    return found


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


def git_commit(folder: Path) -> dict[str, Any] | None:
    """The commit checked out around `folder` and whether files differ from it, or None."""
    if shutil.which("git") is None:
        return None
    commit = _git(folder, "rev-parse", "HEAD")
    if commit is None:
        return None
    return {"commit": commit, "changed": bool(_git(folder, "status", "--porcelain", "--untracked-files=no"))}


def _git(folder: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=10)
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
