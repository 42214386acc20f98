"""Run one check of one function: is it right, and if not, how does it differ and what is the likely mistake?

A function passes when its numbers agree with the reference for two sets of sizes, float64 stays float64, and
the gradients of its inputs agree too. `self_attention` must also leave its inputs unchanged; a piece that
changes them only gets a remark.
"""

from __future__ import annotations

import inspect
import math
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.check.catalogue import Function
from attnlab.check.checks import Check, CheckInputs
from attnlab.check.compare_answers import MINUS_INFINITY, as_tensors, describe, difference, guess_cause, same_shapes
from attnlab.check.diagnose import Arguments, Outcome, attempt, copies, find_mistake
from attnlab.check.error_hints import error_hint, error_summary
from attnlab.check.results import CheckResult, Status
from attnlab.check.time_limit import limited


@dataclass
class FunctionCheck:
    """One check of one function; `filename` identifies the lines of the student's file in tracebacks."""

    check: Check
    function: Function
    filename: str
    make_mask: Function
    time_limit: float

    def __post_init__(self) -> None:
        self.call = limited(self.function, self.time_limit)

    def run(self) -> CheckResult:
        result = self.check.empty_result()
        result.line = self._definition_line()
        if self.check.function == "init_qkv_proj":
            self._check_projections(result)
            return result
        steps: tuple[Callable[[CheckResult], None], ...] = (
            self._check_signature,
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

    def _inputs(self, **sizes: Any) -> CheckInputs:
        return CheckInputs(make_mask=self.make_mask, **sizes)

    def _check_signature(self, result: CheckResult) -> None:
        arguments = self.check.arguments(self._inputs())
        try:
            inspect.signature(self.function).bind(*arguments)
        except TypeError as error:
            _fail(result, f"it cannot be called with {len(arguments)} arguments ({error})")
            result.advice = f"define it as {self.check.function}({self.check.signature})."
        except ValueError:  # a builtin without a readable signature: the call itself will show
            return

    def _check_numbers(self, result: CheckResult, sizes: dict[str, Any] | None = None) -> None:
        arguments = self.check.arguments(self._inputs(**(sizes or {})))
        expected = self.check.expected(*copies(arguments))
        given = copies(arguments)
        outcome = attempt(self.call, given)
        if outcome.error is not None:
            self._fail_with(result, outcome.error)
        elif not same_shapes(expected, outcome.answer):
            _fail(result, "the shape is wrong" if as_tensors(outcome.answer) else "the result is not a tensor")
        elif gap := difference(expected, outcome.answer):
            _fail(result, "the numbers are wrong")
            result.largest_difference = _number(gap.largest)
            result.first_difference = {
                "index": list(gap.index),
                "expected": _number(gap.expected),
                "came": _number(gap.got),
            }
        if result.status is Status.FAIL:
            result.expected = describe(expected)
            result.came = describe(outcome.answer) if outcome.error is None else ""
            self._explain(result, arguments, expected, outcome)
        else:
            self._check_side_effects(result, arguments, given, outcome.answer)

    def _explain(self, result: CheckResult, arguments: Arguments, expected: Any, outcome: Outcome) -> None:
        if mistake := find_mistake(self.check.function, self.call, arguments, outcome):
            result.mistake, result.advice = mistake.key, mistake.advice
        elif outcome.error is not None:
            result.advice = error_hint(outcome.error)
        else:
            result.advice = guess_cause(expected, outcome.answer)

    def _check_side_effects(self, result: CheckResult, before: Arguments, after: Arguments, answer: Any) -> None:
        for name, old, new in zip(self.check.argument_names, before, after, strict=False):
            if isinstance(old, Tensor) and not torch.equal(old, new):
                if self.check.function == "self_attention":
                    _fail(result, f"the input {name} is changed in place")
                    result.advice = f"work on a new tensor: operations like += or masked_fill_ overwrite {name}."
                else:
                    _remark(result, f"the input {name} is changed in place: safe only if it is not used elsewhere")
        if self.check.function == "apply_causal_mask" and not any(t.isinf().any() for t in as_tensors(answer) or ()):
            _remark(result, "a large negative number replaces −∞: equal here, but not for scores as large")

    def _check_other_sizes(self, result: CheckResult) -> None:
        self._check_numbers(result, {"batch": 2, "tokens": 7, "width": 15, "heads": 3})
        if result.status is Status.FAIL:
            result.problem = "right at first, but wrong with 7 tokens, width 15 and 3 heads: " + result.problem
            if result.mistake is None:
                result.advice = "is a size written into the code as a number?"

    def _check_precision(self, result: CheckResult) -> None:
        arguments = self.check.arguments(self._inputs(dtype=torch.float64))
        if not any(isinstance(a, Tensor) and a.is_floating_point() for a in arguments):
            return
        outcome = attempt(self.call, copies(arguments))
        if outcome.error is not None:
            self._fail_with(result, outcome.error)
            result.problem = "with float64 inputs: " + result.problem
            result.advice = error_hint(outcome.error)
            return
        for tensor in as_tensors(outcome.answer) or ():
            if tensor.dtype != torch.float64:
                _fail(result, f"float64 inputs give {str(tensor.dtype).removeprefix('torch.')} outputs")
                result.advice = "keep the input's dtype: no .float(), and new tensors with dtype=A.dtype."

    def _check_gradients(self, result: CheckResult) -> None:
        """∂/∂x Σ w · f(x), for fixed random w, against the same of the reference."""
        arguments = self.check.arguments(self._inputs(dtype=torch.float64))
        names = [
            name
            for name, a in zip(self.check.argument_names, arguments, strict=False)
            if isinstance(a, Tensor) and a.is_floating_point() and name != "mask"
        ]
        if not names:
            return
        expected_gradients = self._gradient_of(self.check.expected, arguments)
        outcome = attempt(self._gradient_of, (self.call, arguments))
        if outcome.error is not None:
            _fail(result, f"the backward pass fails: {error_summary(outcome.error)}")
            result.advice = "do not change tensors in place after they were used."
            return
        for name, expected, got in zip(names, expected_gradients, outcome.answer, strict=True):
            if got is None or difference(expected, got, tolerance=1e-4):
                _fail(result, f"{'no' if got is None else 'a wrong'} gradient reaches {name}")
                result.advice = "the numbers are right but not in the graph: avoid .detach(), .data, numpy and no_grad."
                return

    def _gradient_of(self, function: Function, arguments: Arguments) -> tuple[Tensor | None, ...]:
        leaves, inputs = [], []
        for name, a in zip(self.check.argument_names, arguments, strict=False):
            if isinstance(a, Tensor) and a.is_floating_point() and name != "mask":
                leaves.append(a.clone().requires_grad_())
                a = leaves[-1].clone()  # not a leaf: in-place work on it is allowed
            inputs.append(a)
        outputs = as_tensors(function(*inputs)) or []
        generator = torch.Generator().manual_seed(1)
        weights = [torch.randn(y.shape, generator=generator, dtype=y.dtype) for y in outputs]
        # Masked entries get no gradient through the softmax, so their gradient here does not matter.
        loss = sum((y * w.masked_fill(y <= MINUS_INFINITY, 0)).sum() for y, w in zip(outputs, weights, strict=True))
        if not isinstance(loss, Tensor) or not loss.requires_grad:
            return (None,) * len(leaves)
        return torch.autograd.grad(loss, leaves, allow_unused=True)

    def _check_overflow(self, result: CheckResult) -> None:
        """exp(89) is too large for float32: a softmax by hand must subtract the row's maximum first."""
        if self.check.function == "attn_softmax":
            outcome = attempt(self.call, (200 * self._inputs().scores(),))
            if any(t.isnan().any() for t in as_tensors(outcome.answer) or ()):
                _remark(result, "large scores overflow to NaN: subtract each row's maximum before exp")

    def _check_projections(self, result: CheckResult) -> None:
        n_embd = self._inputs().width
        outcome = attempt(self.call, (n_embd,))
        result.expected = f"three modules that map {n_embd} features to {n_embd}"
        if outcome.error is not None:
            self._fail_with(result, outcome.error)
            result.advice = error_hint(outcome.error)
        elif problem_and_advice := _projection_problem(outcome.answer, n_embd):
            _fail(result, problem_and_advice[0])
            result.came, result.advice = describe(outcome.answer), problem_and_advice[1]

    def _fail_with(self, result: CheckResult, error: BaseException) -> None:
        _fail(result, error_summary(error))
        result.line = line_in(self.filename, error) or result.line

    def _definition_line(self) -> int | None:
        code = getattr(self.function, "__code__", None)
        return code.co_firstlineno if code and code.co_filename == self.filename else None


def line_in(filename: str, error: BaseException) -> int | None:
    """The innermost line of the student's file in the error's traceback."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == filename]
    return frames[-1].lineno if frames else None


def _fail(result: CheckResult, problem: str) -> None:
    result.status, result.problem = Status.FAIL, problem


def _remark(result: CheckResult, text: str) -> None:
    if text not in result.remarks:
        result.remarks.append(text)


def _number(value: float) -> float | str:
    """JSON has no infinity and no NaN: these become strings."""
    return round(value, 7) if math.isfinite(value) else str(value)


def _projection_problem(answer: Any, n_embd: int) -> tuple[str, str] | None:
    """(problem, advice) for the answer of `init_qkv_proj`, or None when it is right.

    The answer is not a tensor: W_Q, W_K, W_V are random, so only their type and shape are checked.
    """
    if not isinstance(answer, tuple | list) or len(answer) != 3:
        return "the result is not a tuple of three", "return W_Q, W_K, W_V."
    if not all(isinstance(part, nn.Module) for part in answer):
        return "the results are not torch modules", "return three nn.Linear(n_embd, n_embd)."
    if len({id(part) for part in answer}) < 3:
        return "the same module is returned more than once", "create a new nn.Linear for each of Q, K and V."
    for name, part in zip(("W_Q", "W_K", "W_V"), answer, strict=True):
        try:
            shape = tuple(part(torch.zeros(2, 3, n_embd)).shape)
        except Exception as error:
            return f"{name} does not accept (B, n_tok, n_embd): {error}", "use nn.Linear(n_embd, n_embd)."
        if shape != (2, 3, n_embd):
            return f"{name} maps (2, 3, {n_embd}) to {shape}", "use nn.Linear(n_embd, n_embd)."
        if isinstance(part, nn.Linear) and part.bias is None:
            return f"{name} has no bias", "leave the bias on."
    return None
