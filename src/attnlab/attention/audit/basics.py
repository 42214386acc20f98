"""Is the mixer a function of its input at all? If not, nothing else is judged: every later check compares calls."""

from __future__ import annotations

import torch

from attnlab.attention.audit.mixer import AuditedMixer, Finding, run

MODES = {"evaluation": False, "training": True}


@torch.no_grad()
def check_deterministic(audited: AuditedMixer) -> Finding:
    """The same input gives the same output: always in evaluation, with the same random numbers in training."""
    for mode, training in MODES.items():
        first = run(audited.build(training), audited.tokens())
        seeds = (7,) if training else (7, 8)
        for seed in seeds:
            if not _same(run(audited.build(training), audited.tokens(), seed=seed), first):
                cause = " with other random numbers" if seed != 7 else ""
                evidence = f"in {mode} mode a new call with the same input{cause} gives another output"
                return Finding("deterministic", False, evidence)
    return Finding("deterministic", True, "the same input gives the same output")


@torch.no_grad()
def check_input(audited: AuditedMixer) -> Finding:
    """The input is left as it is: the model adds it to the output afterwards."""
    for mode, training in MODES.items():
        x = audited.tokens()
        run(audited.build(training), x)
        if not _same(x, audited.tokens()):
            return Finding("input", False, f"forward changes its input in place, in {mode} mode")
    return Finding("input", True, "forward leaves its input as it is")


@torch.no_grad()
def check_state(audited: AuditedMixer) -> Finding:
    """One call leaves nothing behind for the next."""
    mixer, x = audited.build(), audited.tokens()
    first = run(mixer, x)
    run(mixer, audited.tokens(batch=2, seed=4, length=max(1, x.shape[1] // 2)))
    if not _same(run(mixer, x), first):
        return Finding("state", False, "the output depends on earlier calls: the module keeps something between them")
    return Finding("state", True, "a call does not depend on those before it")


@torch.no_grad()
def check_finite(audited: AuditedMixer) -> Finding:
    """Outputs are numbers, at every length and in both modes."""
    for length in audited.lengths:
        for mode, training in MODES.items():
            y = run(audited.build(training), audited.tokens(length=length))
            if not y.isfinite().all():
                wrong = (~y.isfinite()).any(-1)[0].nonzero()[:, 0].tolist()
                kind = "nan" if y.isnan().any() else "infinite"
                where = f"{len(wrong)} of {length} positions, the first is {wrong[0]}"
                return Finding("finite", False, f"outputs are {kind} at {where}, in {mode} mode")
    return Finding("finite", True, "outputs are finite at every length, in evaluation and in training")


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Equal to the bit; nan equals nan here, since another check reports it."""
    return a.shape == b.shape and torch.equal(a.nan_to_num(nan=0.1234), b.nan_to_num(nan=0.1234))
