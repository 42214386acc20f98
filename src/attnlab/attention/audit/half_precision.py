"""Does a mixer work in half precision? Tried in a child process.

On some machines the first bf16 matrix product kills the process with an illegal instruction, so it is
never tried in the parent process. The child reports every step that succeeded as one line of JSON on what was
its standard output, whatever the file prints; the first step without a line is where it died.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

import torch

from attnlab.attention.audit.mixer import open_paths
from attnlab.attention.class_source import NotStorable, class_source
from attnlab.attention.registry import MixerShape, handed_in
from attnlab.base.children import MODULE
from attnlab.base.trust import allow

DTYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16}
LENGTH = 64


@dataclass(frozen=True)
class HalfResult:
    """`error` is the largest difference from 32 bits, in units of the largest output; None: not finite."""

    dtype: str
    able: bool
    """The machine can multiply matrices of this type."""
    ran: bool = False
    """The mixer's forward and backward passes were completed."""
    error: float | None = None
    message: str = ""


def try_half(name: str, shape: MixerShape, seconds: float = 120.0) -> list[HalfResult]:
    """The mixer of that name or file, tried in each half-precision type; none for a class that no file can hold."""
    build = handed_in(name)
    if build is None:
        return _tried(name, shape, seconds)
    with tempfile.TemporaryDirectory(prefix="attnlab-") as folder:
        file = Path(folder) / "mixer.py"
        try:
            file.write_text(class_source(build, shape), encoding="utf-8")
        except NotStorable:
            return []
        allow(file)
        return _tried(str(file), shape, seconds)


def _tried(name: str, shape: MixerShape, seconds: float) -> list[HalfResult]:
    command = [*MODULE, "attnlab.attention.audit.half_precision", name, json.dumps(asdict(shape))]
    try:
        out = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False).stdout
    except subprocess.TimeoutExpired as error:
        out = error.stdout.decode() if isinstance(error.stdout, bytes) else error.stdout or ""
    steps: dict[str, dict[str, Any]] = {dtype: {"dtype": dtype, "able": False} for dtype in DTYPES}
    for line in out.splitlines():
        step = json.loads(line)
        steps[step["dtype"]].update(step)
    return [HalfResult(**values) for values in steps.values()]


def _child(name: str, shape: MixerShape, results: TextIO) -> None:
    from attnlab.attention.registry import build_mixer

    torch.manual_seed(0)
    mixer = build_mixer(name, shape)
    x = torch.randn(2, min(LENGTH, shape.context), shape.width)
    open_paths(mixer, x)
    expected = mixer.eval()(x).detach()
    for dtype, kind in DTYPES.items():
        square = torch.ones(64, 64, dtype=kind)
        (square @ square).sum().item()
        _report(results, dtype=dtype, able=True)
        try:
            half = mixer.to(kind)
            inputs = x.to(kind).requires_grad_()
            got = half(inputs)
            got.sum().backward()
            assert inputs.grad is not None
            finite = bool(got.isfinite().all() and inputs.grad.isfinite().all())
            error = float((got.float() - expected).abs().max() / expected.abs().max())
            _report(results, dtype=dtype, ran=True, error=error if finite else None)
        except Exception as problem:  # any failure of a user's code is the finding
            _report(results, dtype=dtype, message=f"{type(problem).__name__}: {problem}".splitlines()[0])
        mixer = mixer.float()


def _report(results: TextIO, **step: Any) -> None:
    print(json.dumps(step), file=results, flush=True)


if __name__ == "__main__":
    import attnlab.attention  # registers all variants  # noqa: F401

    with os.fdopen(os.dup(1), "w", encoding="utf-8") as results:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for what the file prints
        _child(sys.argv[1], MixerShape(**json.loads(sys.argv[2])), results)
