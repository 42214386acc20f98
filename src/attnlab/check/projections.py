"""What `init_qkv_proj` returned, judged by what its three modules do: their numbers are random."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from attnlab.check.judge.inside.frames import Value

NAMES = ("W_Q", "W_K", "W_V")
NEW_LINEAR = "use nn.Linear(n_embd, n_embd)."


def projection_problem(claims: list[Value], inputs: Tensor) -> tuple[str, str] | None:
    """(problem, advice), or None when the three are right. The claims: type, number, then three values for each."""
    rest = claims[2:]
    if len(rest) != 3 * len(NAMES):
        return "the result is not a tuple of three", "return W_Q, W_K, W_V."
    if not all(is_module is True for is_module in rest[::3]):
        return "the results are not torch modules", "return three nn.Linear(n_embd, n_embd)."
    outputs = []
    for name, without_bias, output in zip(NAMES, rest[1::3], rest[2::3], strict=True):
        if not isinstance(output, np.ndarray):
            return f"{name} does not accept (B, n_tok, n_embd): {output}", NEW_LINEAR
        if output.shape != tuple(inputs.shape):
            return f"{name} maps {tuple(inputs.shape)} to {output.shape}", NEW_LINEAR
        if without_bias is True:
            return f"{name} has no bias", "leave the bias on."
        outputs.append(torch.from_numpy(output))
    if not all(output.isfinite().all() for output in outputs):
        return "the outputs are not finite numbers", NEW_LINEAR
    if any(torch.equal(one, other) for one, other in zip(outputs, (*outputs[1:], outputs[0]), strict=True)):
        return "the same module is returned more than once", "create a new nn.Linear for each of Q, K and V."
    return None
