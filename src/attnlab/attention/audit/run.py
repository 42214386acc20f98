"""Does a mixer keep its promises? Each check states a property and shows the evidence.

deterministic              the same input gives the same output
input                      forward does not change its input in place
state                      a call does not depend on those before it
finite                     outputs are numbers
future, by gradient        no output has a derivative by a later token
future, by perturbation    no output changes when later tokens are replaced or cut off
tokens meet                outputs depend on the tokens they may see
batch                      a sequence gives the same alone and among others
padding                    the content of padding does not change real positions
gradients                  every number of every parameter has a gradient
cache                      decoding step by step gives what the full pass gives
large inputs               outputs and gradients stay finite
half precision             finite in 16 bits, and how close to 32
time, memory               grow with T no faster than promised
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from attnlab.attention.audit.basics import check_deterministic, check_finite, check_input, check_state
from attnlab.attention.audit.behaviour import (
    check_batch,
    check_cache,
    check_gradients,
    check_large_inputs,
    check_meeting,
    check_padding,
)
from attnlab.attention.audit.cost import growth, one_thread
from attnlab.attention.audit.future import check_future_gradient, check_future_perturbation
from attnlab.attention.audit.half_precision import try_half
from attnlab.attention.audit.mixer import DEFAULT, AuditedMixer, Finding, audited_mixer, one_head
from attnlab.attention.registry import MixerShape, build_mixer, find_variant
from attnlab.base import html
from attnlab.base.errors import UserError

SLACK = 0.5
"""How far a measured exponent may exceed the promised one: caches and clocks add to it, and the next whole
power is 1 away."""

LARGEST = 2048


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


def audit(name: str, shape: MixerShape = DEFAULT, cost: bool = True, half: bool = True) -> Audit:
    """All checks on the mixer of that name or file."""
    if max(shape.width, shape.context) > LARGEST:
        raise UserError(f"an audit has at most {LARGEST:,} tokens and {LARGEST:,} features per token: give fewer.")
    with torch.random.fork_rng(devices=[]), one_thread():
        audited = audited_mixer(name, shape)
        findings = behaviour(audited)
        if half:
            findings += check_half(audited)
        if cost:
            findings += check_cost(audited)
    return Audit(name, findings)


def behaviour(audited: AuditedMixer) -> list[Finding]:
    """The checks in their order. After a mixer that is no function of its input, nothing can be compared."""
    findings: list[Finding] = []
    broken: str | None = None
    for check, name in NAMES.items():
        if check in CAUSAL_ONLY and not audited.shape.causal:
            continue
        if broken is not None:
            findings.append(Finding(name, None, f"not judged, because the check '{broken}' fails"))
            continue
        try:
            findings.append(check(audited))
        except UserError as error:
            findings.append(Finding(name, False, str(error)))
        if check in BASICS and findings[-1].passed is False:
            broken = name
    return findings


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


NAMES: dict[Callable[[AuditedMixer], Finding], str] = {
    check_deterministic: "deterministic",
    check_input: "input",
    check_state: "state",
    check_finite: "finite",
    check_future_gradient: "future, by gradient",
    check_future_perturbation: "future, by perturbation",
    check_meeting: "tokens meet",
    check_batch: "batch",
    check_padding: "padding",
    check_gradients: "gradients",
    check_cache: "cache",
    check_large_inputs: "large inputs",
}
BASICS = {check_deterministic, check_input, check_state, check_finite}
CAUSAL_ONLY = {check_future_gradient, check_future_perturbation, check_cache}
