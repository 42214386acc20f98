"""Does a mixer work in half precision? Tried in a child process.

On some machines the first bf16 matrix product kills the process with an illegal instruction, so nothing
of the kind happens in the process that asks. The child says after each step how far it came, one line of
JSON each; what it has not said when it dies is where it died.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import Any

import torch

from attnlab.attention.variant import MixerShape

DTYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16}
LENGTH = 64


@dataclass(frozen=True)
class HalfResult:
    """`error` is the largest difference from 32 bits, in units of the largest output; None: not finite."""

    dtype: str
    able: bool
    """The machine can multiply matrices of this type."""
    ran: bool = False
    """The mixer's forward and backward passes came to an end."""
    error: float | None = None
    message: str = ""


def try_half(name: str, shape: MixerShape, seconds: float = 120.0) -> list[HalfResult]:
    """What became of the mixer of that name or file in each half-precision type."""
    command = [sys.executable, "-m", "attnlab.attention.audit.half_precision", name, json.dumps(asdict(shape))]
    try:
        out = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False).stdout
    except subprocess.TimeoutExpired as error:
        out = error.stdout.decode() if isinstance(error.stdout, bytes) else error.stdout or ""
    said: dict[str, dict[str, Any]] = {dtype: {"dtype": dtype, "able": False} for dtype in DTYPES}
    for line in out.splitlines():
        if line.startswith("{"):
            step = json.loads(line)
            said[step["dtype"]].update(step)
    return [HalfResult(**steps) for steps in said.values()]


def _child(name: str, shape: MixerShape) -> None:
    from attnlab.attention.registry import build_mixer

    torch.manual_seed(0)
    mixer = build_mixer(name, shape)
    x = torch.randn(2, min(LENGTH, shape.context), shape.width)
    expected = mixer.eval()(x).detach()
    for dtype, kind in DTYPES.items():
        square = torch.ones(64, 64, dtype=kind)
        (square @ square).sum().item()
        _say(dtype=dtype, able=True)
        try:
            half = mixer.to(kind)
            given = x.to(kind).requires_grad_()
            got = half(given)
            got.sum().backward()
            assert given.grad is not None
            finite = bool(got.isfinite().all() and given.grad.isfinite().all())
            error = float((got.float() - expected).abs().max() / expected.abs().max())
            _say(dtype=dtype, ran=True, error=error if finite else None)
        except Exception as problem:  # whatever a user's own code does here is the finding
            _say(dtype=dtype, message=f"{type(problem).__name__}: {problem}".splitlines()[0])
        mixer = mixer.float()


def _say(**step: Any) -> None:
    print(json.dumps(step), flush=True)


if __name__ == "__main__":
    import attnlab.attention  # enters all variants  # noqa: F401

    _child(sys.argv[1], MixerShape(**json.loads(sys.argv[2])))
