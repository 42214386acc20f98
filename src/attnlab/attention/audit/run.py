"""Does a mixer keep its promises? Each check states a property and shows the evidence.

future, by gradient        no output has a derivative by a later token
future, by perturbation    no output changes when later tokens are replaced or cut off
batch                      a sequence gives the same alone and among others
padding                    the content of padding does not change real positions
gradients                  every parameter has a gradient
cache                      decoding step by step gives what the full pass gives
large inputs               outputs and gradients stay finite
half precision             finite in 16 bits, and how close to 32
time, memory               grow with T no faster than promised
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from attnlab.attention.audit.cost import growth, one_thread
from attnlab.attention.audit.future import (
    DEFAULT,
    AuditedMixer,
    Finding,
    audited_mixer,
    check_future_gradient,
    check_future_perturbation,
    one_head,
)
from attnlab.attention.audit.half_precision import try_half
from attnlab.attention.parts.cache import Cache
from attnlab.attention.registry import MixerShape, build_mixer, find_variant
from attnlab.base import html
from attnlab.base.errors import UserError

SLACK = 0.5
"""How far a measured exponent may exceed the promised one: caches and clocks add to it, and the next whole
power is 1 away."""


@dataclass(frozen=True, repr=False)
class Audit:
    name: str
    findings: list[Finding]

    @property
    def passed(self) -> bool:
        return all(finding.passed is not False for finding in self.findings)

    def __repr__(self) -> str:
        return f"Audit({self.name!r}, {'passed' if self.passed else 'failed'})"

    def _repr_html_(self) -> str:
        words = {True: "pass", False: "FAIL", None: "–"}
        rows = [[finding.check, words[finding.passed], finding.evidence] for finding in self.findings]
        return html.heading(repr(self)) + html.table(["check", "", "evidence"], rows)

    @property
    def sees_future(self) -> bool:
        return any(f.passed is False for f in self.findings if f.check.startswith("future"))


"""Longer than the chunks and windows of the variants, small enough for a second."""
SHORTEST = 12


def audit(name: str, shape: MixerShape = DEFAULT, cost: bool = True, half: bool = True) -> Audit:
    """All checks on the mixer of that name or file."""
    if shape.context < SHORTEST:
        raise UserError(f"a context of {shape.context} is too short for an audit: give at least {SHORTEST}.")
    with torch.random.fork_rng(devices=[]), one_thread():
        audited = audited_mixer(name, shape)
        findings = [check(audited) for check in BEHAVIOUR if shape.causal or check not in CAUSAL_ONLY]
        if half:
            findings += check_half(audited)
        if cost:
            findings += check_cost(audited)
    return Audit(name, findings)


@torch.no_grad()
def check_batch(audited: AuditedMixer) -> Finding:
    mixer, x = audited.build(), audited.tokens(batch=3)
    worst = max(audited.differs(mixer(x)[row : row + 1], mixer(x[row : row + 1])) for row in range(3))
    return Finding("batch", worst <= audited.tolerance, f"a sequence alone and among others differ by {worst:.1g}")


@torch.no_grad()
def check_padding(audited: AuditedMixer) -> Finding:
    """With the real tokens first, in both directions the mixer supports."""
    variant = find_variant(audited.name)
    differences, passed = [], True
    directions = {"causal": (True, variant.causal), "bidirectional": (False, variant.bidirectional)}
    for word, (causal, able) in directions.items():
        if not able:
            continue
        mixer, x = audited.build(causal=causal), audited.tokens(batch=2)
        real = x.shape[1] // 2
        padding = torch.arange(x.shape[1]) < torch.tensor([[real], [x.shape[1]]])
        noise = torch.where(padding[..., None], x, 30.0)
        worst = audited.differs(mixer(noise, padding)[:1, :real], mixer(x[:1, :real]))
        passed = passed and worst <= audited.tolerance
        differences.append(f"{word}: {worst:.1g}")
    return Finding("padding", passed, "padding changes real positions by " + ", ".join(differences))


def check_gradients(audited: AuditedMixer) -> Finding:
    mixer = audited.build()
    y = mixer(audited.tokens(batch=4))
    if y.requires_grad:  # a mixer without parameters, or with frozen ones, has no graph
        (y * torch.randn_like(y)).sum().backward()
    largest = max((float(p.grad.abs().max()) for p in mixer.parameters() if p.grad is not None), default=0.0)
    dead = []
    for path, module in mixer.named_modules():
        for name, parameter in module.named_parameters(recurse=False):
            label = f"{path}.{name}".removeprefix("inner.").removeprefix(".")
            if parameter.grad is None or not parameter.grad.any():
                dead.append(f"all of {label}")
            elif isinstance(module, nn.Linear) and name == "weight":
                # A row computes one number of the output; several projections may share a matrix.
                silent = parameter.grad.abs().amax(1) <= 1e-12 * largest
                if silent.any():
                    dead.append(f"{int(silent.sum())} of {len(silent)} rows of {label}{_parts(mixer, path, silent)}")
    count = sum(p.numel() for p in mixer.parameters())
    if dead:
        return Finding("gradients", False, "no gradient for " + ", ".join(dead))
    return Finding("gradients", True, f"all {count:,} parameters have one")


def _parts(mixer: nn.Module, path: str, silent: Tensor) -> str:
    """Which outputs of a shared matrix have no gradient, if its module has their `sizes`."""
    owner = mixer.get_submodule(path.rpartition(".")[0])
    sizes = getattr(owner, "sizes", None)
    if not isinstance(sizes, list) or sum(sizes) != len(silent):
        return ""
    pieces = zip(("queries", "keys", "values"), silent.split(sizes), strict=True)
    names = [name for name, piece in pieces if piece.all()]
    return f" ({' and '.join(names)})" if names else ""


@torch.no_grad()
def check_cache(audited: AuditedMixer) -> Finding:
    """Two rows of different length, read at once, then by one and by three tokens."""
    mixer, x = audited.build(), audited.tokens(batch=2)
    full, cache, worst = mixer(x), Cache(), 0.0
    starts, piece = [x.shape[1] // 4, x.shape[1] // 3], x.shape[1] // 3
    y = mixer(x[:, :piece], torch.arange(piece) < torch.tensor(starts)[:, None], cache)
    for row, length in enumerate(starts):
        worst = max(worst, audited.differs(y[row, :length], full[row, :length]))
    step = 0
    for size in [1, 1, 3] * 8:
        if max(starts) + step + size > x.shape[1]:
            break
        new = [slice(length + step, length + step + size) for length in starts]
        y = mixer(torch.stack([x[row, part] for row, part in enumerate(new)]), None, cache)
        for row, part in enumerate(new):
            worst = max(worst, audited.differs(y[row], full[row, part]))
        step += size
    return Finding("cache", worst <= audited.tolerance, f"{step} tokens decoded, {worst:.1g} off the full pass")


def check_large_inputs(audited: AuditedMixer) -> Finding:
    mixer = audited.build().float()
    bad = []
    for label, size in (("inputs of 10⁴", 1e4), ("a single token of 10⁴", None), ("all zeros", 0.0)):
        x = audited.tokens().float()
        if size is None:
            x[:, x.shape[1] // 2] *= 1e4
        else:
            x = x * size
        x.requires_grad_()
        y = mixer(x)
        (gradient,) = torch.autograd.grad(y.sum(), x)
        if not y.isfinite().all():
            bad.append(f"outputs are not finite for {label}")
        elif not gradient.isfinite().all():
            bad.append(f"gradients are not finite for {label}")
    return Finding("large inputs", not bad, "; ".join(bad) or "finite for inputs of 10⁴, one such token, and zeros")


def check_half(audited: AuditedMixer) -> list[Finding]:
    findings = []
    tried = try_half(audited.name, audited.shape)
    if not tried:
        return [Finding("half precision", None, "not tried: a process of its own cannot build this class")]
    for result in tried:
        if not result.able:
            verdict, evidence = None, "this machine cannot multiply matrices of this type"
        elif not result.ran:
            verdict, evidence = False, result.message or "the process died"
        elif result.error is None:
            verdict, evidence = False, "outputs or gradients are not finite"
        else:
            verdict, evidence = True, f"finite, {result.error:.1%} of the largest output off 32 bits"
        findings.append(Finding(f"half precision, {result.dtype}", verdict, evidence))
    return findings


def check_cost(audited: AuditedMixer) -> list[Finding]:
    variant = find_variant(audited.name)
    shape = one_head(audited) or audited.shape  # more heads cost the same powers of T
    measured = growth(lambda shape: build_mixer(audited.name, shape), shape)
    span = f"T = {measured.lengths[-3]} to {measured.lengths[-1]}"
    findings = []
    for check, exponent, promised in (
        ("time", measured.time, variant.time),
        ("memory", measured.memory, variant.memory),
    ):
        verdict = None if promised is None else exponent <= promised + SLACK
        word = "nothing promised" if promised is None else f"T^{promised:g} promised"
        findings.append(Finding(check, verdict, f"T^{exponent:.2f} measured over {span}, {word}"))
    return findings


BEHAVIOUR: list[Callable[[AuditedMixer], Finding]] = [
    check_future_gradient,
    check_future_perturbation,
    check_batch,
    check_padding,
    check_gradients,
    check_cache,
    check_large_inputs,
]
CAUSAL_ONLY = {check_future_gradient, check_future_perturbation, check_cache}
