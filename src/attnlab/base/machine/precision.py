"""Which number formats work on this machine and how fast: tried in a child process, cached on disk.

Some machines advertise bf16 and then die of an illegal instruction at the first product. A child process takes that
risk: a format that kills it is reported as not working. The fastest format must be clearly faster than fp32, because
the others round more coarsely.

    python -m attnlab.base.machine.precision cpu bf16     prints {"gflops": ...}
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from attnlab.base.children import MODULE

DTYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
CLEAR_GAIN = 1.2


@dataclass(frozen=True)
class Trial:
    """The result for one format: its speed in matrix products, or the reason why it does not work."""

    precision: str
    gflops: float | None
    reason: str = ""


def measure(device: str, precision: str, size: int = 512, seconds: float = 0.3) -> float:
    """Billions of floating-point operations per second in square matrix products, best of three."""
    import torch

    matrix = torch.randn(size, size, device=device).to(getattr(torch, DTYPES[precision]))

    def products(count: int) -> float:
        start = time.perf_counter()
        for _ in range(count):
            matrix @ matrix
        if device.startswith("cuda"):
            torch.cuda.synchronize()
        return time.perf_counter() - start

    products(1)  # the first one sets up threads and memory
    count = max(1, int(seconds / 3 / products(1)))
    return max(2 * size**3 * count / products(count) / 1e9 for _ in range(3))


def try_in_child(device: str, precision: str, timeout: float = 60) -> Trial:
    """Measure one format in a child process, so a crash is a result and not the end."""
    command = [*MODULE, "attnlab.base.machine.precision", device, precision]
    package_root = str(Path(__file__).resolve().parents[3])
    path = os.pathsep.join(filter(None, [package_root, os.environ.get("PYTHONPATH")]))
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=timeout, env={**os.environ, "PYTHONPATH": path}
        )
    except subprocess.TimeoutExpired:
        return Trial(precision, None, f"took longer than {timeout:.0f} s")
    if done.returncode < 0:
        return Trial(precision, None, f"kills the process ({signal.Signals(-done.returncode).name})")
    if done.returncode > 0:
        lines = done.stderr.strip().splitlines()
        return Trial(precision, None, lines[-1] if lines else f"exit code {done.returncode}")
    return Trial(precision, float(json.loads(done.stdout.splitlines()[-1])["gflops"]))


def trials(device: str, fresh: bool = False) -> list[Trial]:
    """The results of all formats on `device`, from the cache of this machine or measured now."""
    key = _machine_key(device)
    cache = _read_cache()
    if key in cache and not fresh:
        return [Trial(**entry) for entry in cache[key]]
    results = [try_in_child(device, precision) for precision in DTYPES]
    _write_cache({**cache, key: [asdict(trial) for trial in results]})
    return results


def fastest(results: list[Trial]) -> str:
    """The fastest format that works; fp32 unless another is clearly faster."""
    speeds = {trial.precision: trial.gflops for trial in results if trial.gflops}
    best = max(speeds, key=lambda name: speeds[name], default="fp32")
    gain = speeds.get(best, 0.0) / speeds["fp32"] if speeds.get("fp32") else float("inf")
    return best if speeds and gain >= CLEAR_GAIN else "fp32"


def choose(device: str) -> str:
    """The fastest usable format on this device, by matrix products; fp16 on a CPU has no loss scaling, so it is not."""
    usable = [trial for trial in trials(device) if device != "cpu" or trial.precision != "fp16"]
    return fastest(usable)


def _machine_key(device: str) -> str:
    import torch

    from attnlab.base.machine.facts import cores, cpu_name

    name = torch.cuda.get_device_name(device) if device.startswith("cuda") else f"{cpu_name()} x{cores()}"
    return f"{device} | {name} | torch {torch.__version__}"


def _cache_file() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(root) / "attnlab" / "precision.json"


def _read_cache() -> dict[str, list[dict[str, Any]]]:
    try:
        cache = json.loads(_cache_file().read_text())
    except (OSError, ValueError):
        return {}
    return cache if isinstance(cache, dict) else {}


def _write_cache(cache: dict[str, list[dict[str, Any]]]) -> None:
    from attnlab.base.files import write_text

    try:
        _cache_file().parent.mkdir(parents=True, exist_ok=True)
        write_text(_cache_file(), json.dumps(cache, indent=1))
    except OSError:
        pass  # without a cache, the next run measures again


if __name__ == "__main__":
    print(json.dumps({"gflops": measure(sys.argv[1], sys.argv[2])}))
