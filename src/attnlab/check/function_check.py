"""Run one check of one function: is it right, and if not, how does it differ and what is the likely mistake?

A function passes when its numbers agree with the reference for drawn inputs of several sizes, float64 stays float64,
the gradients of its inputs agree too, and all that once more after other functions were called. `self_attention` must
also leave its inputs unchanged; a piece that changes them only gets a remark.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from attnlab.check import behaviour
from attnlab.check.catalogue import Mistake
from attnlab.check.checks import Check
from attnlab.check.compare_answers import MINUS_INFINITY, as_tensors, describe, difference, guess_cause, same_shapes
from attnlab.check.diagnose import Arguments, Probe, copies, find_mistake, find_mistake_in_whole
from attnlab.check.error_hints import error_hint
from attnlab.check.judge.candidate import Failure, Outcome
from attnlab.check.projections import projection_problem
from attnlab.check.results import CheckResult, Status

if TYPE_CHECKING:
    from attnlab.check.examination import Examination

SEED = 1  # of the random generators in the person's process, the same for every call


class FunctionCheck:
    """One check; all calls in it together may take the seconds of the limits."""

    def __init__(self, check: Check, examination: Examination) -> None:
        self.check, self.examination = check, examination
        self.candidate = examination.candidate
        self.left = examination.limits.seconds

    def run(self) -> CheckResult:
        result = self.check.empty_result()
        result.line = self.candidate.functions[self.check.function].line
        if self.check.function == "init_qkv_proj":
            self._check_projections(result)
            return result
        steps: tuple[Callable[[CheckResult], None], ...] = (
            self._check_numbers,
            self._check_other_sizes,
            self._check_precision,
            self._check_gradients,
            self._check_overflow,
        )
        for step in steps:
            step(result)
            if result.status is Status.FAIL:
                break
        return result

    def repeat(self, result: CheckResult) -> bool:
        """Once more after all other functions, on longer inputs; returns whether it has failed now."""
        if self.check.function == "init_qkv_proj":
            return False
        arguments = self.examination.arguments(self.check, 0, long=True)
        expected = self.check.expected(*copies(arguments))
        outcome = self._call(arguments)
        for probe in (Probe(arguments, expected, outcome), self._again(self._probe(0))):
            if not probe.right:
                self._compare(result, probe)
                result.problem = "right at first, but wrong later in another order: " + result.problem
                self._explain_change(result, probe)
                return True
        return False

    # Calls of the person's function.

    def _call(self, arguments: Arguments, seed: int = SEED, **gradient: Any) -> Outcome:
        if self.left <= 0:
            return Outcome(failure=Failure("late", ""))
        started = time.monotonic()
        try:
            return self.candidate.call(self.check.function, arguments, self.left, seed, **gradient)
        finally:
            self.left -= time.monotonic() - started

    def _probe(self, draw: int) -> Probe:
        return self.examination.probe(self.check, draw, self._call)

    def _again(self, probe: Probe) -> Probe:
        return Probe(probe.arguments, probe.expected, self._call(probe.arguments))

    def _probes(self) -> list[Probe]:
        return [self._probe(draw) for draw in range(len(self.examination.sizes))]

    def _other_probes(self) -> list[Probe]:
        """The same function in its other checks."""
        others = [
            FunctionCheck(check, self.examination)
            for check in self.examination.checks
            if check.function == self.check.function and check is not self.check
        ]
        return [probe for other in others for probe in other._probes()]

    # The steps.

    def _check_numbers(self, result: CheckResult) -> None:
        probe = self._probe(0)
        if not probe.right:
            self._compare(result, probe)
            self._explain(result, probe)
        else:
            self._check_side_effects(result, probe)

    def _check_other_sizes(self, result: CheckResult) -> None:
        probe = self._probe(1)
        if not probe.right:
            self._compare(result, probe)
            sizes = self.examination.sizes_of(1)
            result.problem = f"right at first, but wrong with {sizes}: {result.problem}"
            self._explain_change(result, probe)

    def _check_precision(self, result: CheckResult) -> None:
        arguments = self.examination.arguments(self.check, 0, torch.float64)
        if not any(isinstance(a, Tensor) and a.is_floating_point() for a in arguments):
            return
        outcome = self._call(arguments)
        if outcome.failure:
            self._fail_with(result, outcome.failure)
            result.problem = "with float64 inputs: " + result.problem
            return
        for tensor in as_tensors(outcome.answer) or ():
            if tensor.dtype != torch.float64:
                advice = "keep the input's dtype: no .float(), and new tensors with dtype=A.dtype."
                fail(result, f"float64 inputs give {str(tensor.dtype).removeprefix('torch.')} outputs", advice)
        if result.status is Status.PASS and not Probe(arguments, self.check.expected(*arguments), outcome).right:
            fail(result, "with float64 inputs the numbers are wrong", "new tensors need dtype=A.dtype.")

    def _check_gradients(self, result: CheckResult) -> None:
        """∂/∂x Σ w · f(x), for random w, against the same of the reference."""
        arguments = self.examination.arguments(self.check, 1, torch.float64)
        names = self.check.argument_names
        leaves = [
            i for i, a in enumerate(arguments) if isinstance(a, Tensor) and a.is_floating_point() and names[i] != "mask"
        ]
        if not leaves:
            return
        weights, expected_gradients = self._expected_gradients(arguments, leaves)
        outcome = self._call(arguments, leaves=leaves, output_gradients=weights)
        if outcome.failure:
            self._fail_with(result, outcome.failure)
            if outcome.failure.doing == "backward":
                result.problem = f"the backward pass fails: {result.problem}"
                result.advice = "do not change tensors in place after they were used."
            return
        for i, expected, got in zip(leaves, expected_gradients, outcome.gradients, strict=True):
            if got is None or got.shape != expected.shape or difference(expected, got, tolerance=1e-4):
                fail(result, f"{'no' if got is None else 'a wrong'} gradient reaches {names[i]}")
                result.advice = "the numbers are right but not in the graph: avoid .detach(), .data, numpy and no_grad."
                return

    def _expected_gradients(self, arguments: Arguments, leaves: list[int]) -> tuple[list[Tensor], Sequence[Tensor]]:
        given = list(copies(arguments))
        for i in leaves:
            given[i].requires_grad_()
        outputs = as_tensors(self.check.expected(*given)) or []
        generator = torch.Generator().manual_seed(self.examination.seed % 2**63)
        # Masked entries get no gradient through the softmax, so their gradient here does not matter.
        weights = [
            torch.randn(y.shape, generator=generator, dtype=y.dtype).masked_fill(y <= MINUS_INFINITY, 0)
            for y in outputs
        ]
        # Output gradients are 0 where outputs are −∞, and 0 · −∞ is not a number.
        parts = [(y.masked_fill(w == 0, 0) * w).sum() for y, w in zip(outputs, weights, strict=True)]
        return weights, torch.autograd.grad(torch.stack(parts).sum(), [given[i] for i in leaves])

    def _check_overflow(self, result: CheckResult) -> None:
        """exp(89) is too large for float32: a softmax by hand must subtract the row's maximum first."""
        if self.check.function == "attn_softmax":
            (scores,) = self.examination.arguments(self.check, 0)
            outcome = self._call((200 * scores,))
            if any(t.isnan().any() for t in as_tensors(outcome.answer) or ()):
                _remark(result, "large scores overflow to NaN: subtract each row's maximum before exp")

    def _check_side_effects(self, result: CheckResult, probe: Probe) -> None:
        changed = [
            name
            for name, old, new in zip(self.check.argument_names, probe.arguments, probe.outcome.after, strict=False)
            if isinstance(old, Tensor) and not (new is not None and torch.equal(old, new))
        ]
        for name in changed:
            if self.check.function == "self_attention":
                fail(result, f"the input {name} is changed in place")
                result.advice = f"work on a new tensor: operations like += or masked_fill_ overwrite {name}."
            else:
                _remark(result, f"the input {name} is changed in place: safe only if it is not used elsewhere")
        answer = as_tensors(probe.outcome.answer) or ()
        if self.check.function == "apply_causal_mask" and not any(t.isinf().any() for t in answer):
            _remark(result, "a large negative number replaces −∞: equal here, but not for scores as large")

    def _check_projections(self, result: CheckResult) -> None:
        """W_Q, W_K, W_V are random: they must be three different linear maps of the right shape."""
        width = self.examination.sizes[0].width
        result.expected = f"three modules that map {width} features to {width}"
        inputs = torch.randn(2, 3, width, generator=torch.Generator().manual_seed(self.examination.seed % 2**63))
        claims = self.candidate.project("init_qkv_proj", width, inputs, self.left, SEED)
        if isinstance(claims, Outcome):
            self._fail_with(result, claims.failure or Failure("dead", "it returned nothing"))
        elif problem := projection_problem(claims, inputs):
            fail(result, *problem)

    # What is wrong.

    def _compare(self, result: CheckResult, probe: Probe) -> None:
        """Fill in a failure: how the answer differs."""
        expected, outcome = probe.expected, probe.outcome
        if outcome.failure:
            self._fail_with(result, outcome.failure)
        elif not same_shapes(expected, outcome.answer):
            tensors = as_tensors(outcome.answer)
            is_complex = any(tensor.is_complex() for tensor in tensors or ())
            fail(
                result, f"the {'type' if is_complex else 'shape'} is wrong" if tensors else "the result is not a tensor"
            )
        elif gap := difference(expected, outcome.answer):
            fail(result, "the numbers are wrong")
            result.largest_difference = _number(gap.largest)
            index, first = list(gap.index), {"expected": _number(gap.expected), "came": _number(gap.got)}
            result.first_difference = {"index": index, **first}
        result.expected = describe(expected)
        result.came = "" if outcome.failure else describe(outcome.answer)

    def _explain(self, result: CheckResult, probe: Probe) -> None:
        """The cause, if it is known; else what the error or the numbers suggest."""
        if probe.outcome.failure and probe.outcome.failure.doing != "call":
            return
        mistake = self._unsteady(probe) or self._known_mistake()
        if mistake is None and behaviour.keeps_state(probe.outcome, partial(self._fresh, probe)):
            mistake = behaviour.STATE
        if mistake:
            result.mistake, result.advice = mistake.key, mistake.advice
        elif not probe.outcome.failure:
            result.advice = guess_cause(probe.expected, probe.outcome.answer)

    def _explain_change(self, result: CheckResult, probe: Probe) -> None:
        """Right at first and wrong now: state, chance, or a size."""
        if probe.outcome.failure and probe.outcome.failure.doing in ("late", "dead"):
            return
        mistake = self._unsteady(probe)
        if mistake is None and behaviour.keeps_state(probe.outcome, partial(self._fresh, probe)):
            mistake = behaviour.STATE
        if mistake is None and probe is self._probe(1):
            mistake = find_mistake(self.check.function, [probe], self._other_probes())
        if mistake:
            result.mistake, result.advice = mistake.key, mistake.advice
        else:
            result.mistake, result.advice = None, "is a size written into the code as a number?"

    def _known_mistake(self) -> Mistake | None:
        probes, others = self._probes(), self._other_probes()
        if self.check.function == "self_attention":
            return find_mistake_in_whole(probes, others, self.examination.pieces())
        return find_mistake(self.check.function, probes, others)

    def _unsteady(self, probe: Probe) -> Mistake | None:
        def again(seed: int) -> Outcome:
            return self._call(probe.arguments, seed)

        return behaviour.unsteady(probe.outcome, again, partial(self._fresh, probe), SEED)

    def _fresh(self, probe: Probe) -> Outcome:
        return self.examination.fresh(self.check.function, probe.arguments, max(self.left, 1.0), SEED)

    def _fail_with(self, result: CheckResult, failure: Failure) -> None:
        fail(result, failure.summary, error_hint(failure.summary))
        result.line = failure.line or result.line
        count = len(self.check.argument_names)
        if failure.doing == "signature":
            fail(result, f"it cannot be called with {count} arguments ({failure.summary.removeprefix('TypeError: ')})")
            result.advice = f"define it as {self.check.function}({self.check.signature})."
        elif failure.doing == "late":
            fail(result, f"stopped after {self.examination.limits.seconds:g} s on a sequence of a few tokens")
            result.advice = "look for a loop that does not end."
        elif failure.doing == "dead":
            result.advice = "a function must return its answer and not end the process."


def fail(result: CheckResult, problem: str, advice: str = "") -> None:
    result.status, result.problem, result.advice = Status.FAIL, problem, advice


def _remark(result: CheckResult, text: str) -> None:
    if text not in result.remarks:
        result.remarks.append(text)


def _number(value: float) -> float | str:
    """JSON has no infinity and no NaN: these become strings."""
    return round(value, 7) if math.isfinite(value) else str(value)
