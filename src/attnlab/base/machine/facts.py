"""Facts about the machine: cores and memory this process may use, devices, versions, the hub.

A container's limits (cgroups) count, not what the host has.
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
    """How many CPU cores this process may use."""
    try:
        allowed = len(os.sched_getaffinity(0))
    except AttributeError:  # not every system can say
        allowed = os.cpu_count() or 1
    quota = _cgroup("cpu.max").split()
    if len(quota) == 2 and quota[0].isdigit():
        allowed = min(allowed, max(1, int(quota[0]) // int(quota[1])))
    granted = os.environ.get("SLURM_CPUS_ON_NODE", "")  # not every cluster binds a job to its cores
    return min(allowed, int(granted)) if granted.isdigit() else allowed


def memory() -> tuple[int, int]:
    """Bytes of memory in all and free, within the limits of a container."""
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
    """The processor's own name."""
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found[1] if found else platform.processor() or platform.machine()


def versions() -> dict[str, str]:
    """Versions of Python and of the packages a result depends on, as far as they are installed."""
    found = {"python": platform.python_version(), "attnlab": __version__}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def devices() -> list[str]:
    """The accelerators torch can use, by name; empty on a machine with none."""
    import torch

    found = [f"cuda:{n} {torch.cuda.get_device_name(n)}" for n in range(torch.cuda.device_count())]
    if torch.backends.mps.is_available():
        found.append("mps")
    return found


def resolve_device(asked: str) -> str:
    """'auto' takes an accelerator if there is one; a device that is not there is an error, not a fallback."""
    import torch

    if asked == "auto":
        if torch.cuda.is_available():
            return "cuda"
        return "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        kind = torch.device(asked)
    except RuntimeError:
        raise UserError(f"--device: {asked!r} is no device: use auto, cpu, cuda, cuda:1 or mps.") from None
    there = {
        "cpu": True,
        "cuda": (kind.index or 0) < torch.cuda.device_count(),
        "mps": torch.backends.mps.is_available(),
    }
    if not there.get(kind.type, False):
        raise UserError(f"--device: {asked!r} is not on this machine: use --device auto or --device cpu.")
    return asked


def describe() -> dict[str, Any]:
    """The machine as a run records it."""
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


def hub() -> str:
    """Whether the model hub answers: 'reachable', or why not."""
    import urllib.error
    import urllib.request

    if os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "true", "yes", "on"):
        return "switched off (HF_HUB_OFFLINE)"
    try:
        from huggingface_hub import constants
    except ImportError:
        return "not checked: huggingface_hub is not installed"
    try:
        with urllib.request.urlopen(urllib.request.Request(constants.ENDPOINT, method="HEAD"), timeout=4):
            return "reachable"
    except urllib.error.HTTPError:
        return "reachable"  # it answered, if only to say that it does not like the question
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        return f"not reachable ({reason})"
