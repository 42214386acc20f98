"""Does any output of a mixer depend on a later token, and if so, how?"""

from __future__ import annotations

import torch
from torch import Tensor

from attnlab.attention.audit.audited_mixer import AuditedMixer, Finding, one_head


def check_future_gradient(audited: AuditedMixer) -> Finding:
    mixer, x = audited.build(), audited.tokens().requires_grad_()
    y = mixer(x)
    weights = torch.randn_like(y[0, 0])
    reach = torch.stack(  # (T, T): how much output t changes with token j
        [torch.autograd.grad(y[0, t] @ weights, x, retain_graph=True)[0][0].norm(dim=-1) for t in range(x.shape[1])]
    )
    return _future("future, by gradient", audited, reach.triu(1), "changes with", f"|∂y/∂x| up to {reach.max():.2g}")


def check_future_perturbation(audited: AuditedMixer) -> Finding:
    """Replace each token in turn, a little and a lot, and cut the sequence after each."""
    mixer, x = audited.build(), audited.tokens()
    T = x.shape[1]
    worst = torch.zeros(T, T, dtype=audited.dtype)
    with torch.no_grad():
        y = mixer(x)
        for size in (1.0, 30.0):
            changed = x.repeat(T, 1, 1)  # row j has token j replaced
            changed[torch.arange(T), torch.arange(T)] = size * audited.tokens(seed=2)[0]
            difference = (mixer(changed) - y).abs().amax(-1).nan_to_num(nan=float("inf")).T  # (t, j)
            worst = torch.maximum(worst, difference)
        for t in range(1, T, 7):
            shorter = (mixer(x[:, :t]) - y[:, :t]).abs().amax(-1)[0].nan_to_num(nan=float("inf"))
            worst[:t, t] = torch.maximum(worst[:t, t], shorter)
    worst = worst / y.abs().max()
    return _future("future, by perturbation", audited, worst.triu(1), "changes with", "by replacing and by cutting")


def _future(check: str, audited: AuditedMixer, leaks: Tensor, verb: str, method: str) -> Finding:
    worst = float(leaks.max())
    if worst <= audited.tolerance:
        return Finding(check, True, f"at most {worst:.1g} above the diagonal ({method})")
    t, j = divmod(int(leaks.argmax()), leaks.shape[1])
    evidence = f"output {t} {verb} token {j}, by {worst:.2g}"
    return Finding(check, False, evidence + ("; " + how if (how := _how_it_leaks(audited)) else ""))


@torch.no_grad()
def _how_it_leaks(audited: AuditedMixer) -> str:
    """With one head, a leak through the normaliser only rescales what the output would be.

    So the changes that many different futures cause at one position are all on one line.
    """
    if one_head(audited) is None:
        return ""
    mixer, x = audited.build(heads=1), audited.tokens()
    futures = x.repeat(12, 1, 1)
    half = x.shape[1] // 2
    futures[:, half:] = 3 * audited.tokens(batch=12, seed=3)[:, half:]
    changes = (mixer(futures) - mixer(x))[:, half - 1]  # (12, C)
    sizes = torch.linalg.svdvals(changes)
    if not sizes.isfinite().all() or sizes[1] > 1e-6 * sizes[0]:
        return "it reads the content of later tokens"
    return "later tokens only rescale it: they are in the sum that normalises the weights"
