"""Is this answer right, and if not, how does it differ and what is the likely mistake?

A function passes when its numbers agree with the reference for two sets of sizes, float64 stays float64, and
the gradients of its inputs agree too. `self_attention` must also leave its inputs as they were; in a piece
that is only remarked on.
"""

from __future__ import annotations

import inspect
import math
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attnlab.check.catalogue import Function
from attnlab.check.clock import limited
from attnlab.check.compare import MINUS_INFINITY, as_tensors, describe, difference, guess, same_shapes
from attnlab.check.diagnose import Arguments, Outcome, attempt, copies, find_mistake
from attnlab.check.hints import first_line, hint
from attnlab.check.projections import inspect_projections
from attnlab.check.results import Result, Status
from attnlab.check.stages import Bench, Check


@dataclass
class Judge:
    """Puts one function through one check; `filename` tells the person's lines from everybody else's."""

    check: Check
    function: Function
    filename: str
    make_mask: Function
    time_limit: float

    def __post_init__(self) -> None:
        self.call = limited(self.function, self.time_limit)

    def verdict(self) -> Result:
        check = self.check
        result = Result(check.function, check.stage, check.case, optional=check.optional)
        result.line = self._definition_line()
        if check.function == "init_qkv_proj":
            self._projections(result)
            return result
        steps: tuple[Callable[[Result], None], ...] = (
            self._signature,
            self._numbers,
            self._other_sizes,
            self._precision,
            self._gradients,
            self._overflow,
        )
        for step in steps:
            step(result)
            if result.status is Status.FAIL:
                break
        return result

    def _bench(self, **sizes: Any) -> Bench:
        return Bench(make_mask=self.make_mask, **sizes)

    def _signature(self, result: Result) -> None:
        arguments = self.check.arguments(self._bench())
        try:
            inspect.signature(self.function).bind(*arguments)
        except TypeError as error:
            _fail(result, f"it cannot be called with {len(arguments)} arguments ({error})")
            result.advice = f"define it as {self.check.function}({self.check.signature})."
        except ValueError:  # a builtin without a readable signature: calling it will show
            return

    def _numbers(self, result: Result, sizes: dict[str, Any] | None = None) -> None:
        arguments = self.check.arguments(self._bench(**(sizes or {})))
        expected = self.check.expected(*copies(arguments))
        given = copies(arguments)
        outcome = attempt(self.call, given)
        if outcome.error is not None:
            self._raised(result, outcome.error)
        elif not same_shapes(expected, outcome.answer):
            _fail(result, "the shape is wrong" if as_tensors(outcome.answer) else "this is not a tensor")
        elif gap := difference(expected, outcome.answer):
            _fail(result, "the numbers are wrong")
            result.largest_difference = _number(gap.largest)
            result.first_difference = {
                "index": list(gap.index),
                "expected": _number(gap.expected),
                "came": _number(gap.came),
            }
        if result.status is Status.FAIL:
            result.expected = describe(expected)
            result.came = describe(outcome.answer) if outcome.error is None else ""
            self._explain(result, arguments, expected, outcome)
        else:
            self._side_effects(result, arguments, given, outcome.answer)

    def _explain(self, result: Result, arguments: Arguments, expected: Any, outcome: Outcome) -> None:
        if mistake := find_mistake(self.check.function, self.call, arguments, outcome):
            result.mistake, result.advice = mistake.key, mistake.advice
        elif outcome.error is not None:
            result.advice = hint(outcome.error)
        else:
            result.advice = guess(expected, outcome.answer)

    def _side_effects(self, result: Result, before: Arguments, after: Arguments, answer: Any) -> None:
        for name, old, new in zip(self.check.argument_names, before, after, strict=False):
            if isinstance(old, Tensor) and not torch.equal(old, new):
                if self.check.function == "self_attention":
                    _fail(result, f"the input {name} is changed in place")
                    result.advice = f"work on a new tensor: operations like += or masked_fill_ overwrite {name}."
                else:
                    _remark(result, f"the input {name} is changed in place: safe only if nobody else uses it")
        if self.check.function == "apply_causal_mask" and not any(t.isinf().any() for t in as_tensors(answer) or ()):
            _remark(result, "a large negative number stands for −∞: equal here, but not for scores as large")

    def _other_sizes(self, result: Result) -> None:
        self._numbers(result, {"batch": 2, "tokens": 7, "width": 15, "heads": 3})
        if result.status is Status.FAIL:
            result.problem = "right at first, but wrong with 7 tokens, width 15 and 3 heads: " + result.problem
            if result.mistake is None:
                result.advice = "is a size written into the code as a number?"

    def _precision(self, result: Result) -> None:
        arguments = self.check.arguments(self._bench(dtype=torch.float64))
        if not any(isinstance(a, Tensor) and a.is_floating_point() for a in arguments):
            return
        outcome = attempt(self.call, copies(arguments))
        if outcome.error is not None:
            self._raised(result, outcome.error)
            result.problem = "with float64 inputs: " + result.problem
            result.advice = hint(outcome.error)
            return
        for tensor in as_tensors(outcome.answer) or ():
            if tensor.dtype != torch.float64:
                _fail(result, f"float64 goes in, {str(tensor.dtype).removeprefix('torch.')} comes out")
                result.advice = "keep the input's dtype: no .float(), and new tensors with dtype=A.dtype."

    def _gradients(self, result: Result) -> None:
        """∂/∂x Σ w · f(x), for fixed random w, against the same of the reference."""
        arguments = self.check.arguments(self._bench(dtype=torch.float64))
        names = [
            name
            for name, a in zip(self.check.argument_names, arguments, strict=False)
            if isinstance(a, Tensor) and a.is_floating_point() and name != "mask"
        ]
        if not names:
            return
        wanted = self._gradient_of(self.check.expected, arguments)
        outcome = attempt(self._gradient_of, (self.call, arguments))
        if outcome.error is not None:
            _fail(result, f"the backward pass fails: {first_line(outcome.error)}")
            result.advice = "do not change tensors in place after they were used."
            return
        for name, expected, came in zip(names, wanted, outcome.answer, strict=True):
            if came is None or difference(expected, came, tolerance=1e-4):
                _fail(result, f"{'no' if came is None else 'a wrong'} gradient reaches {name}")
                result.advice = "the numbers are right but cut from the graph: no .detach(), .data, numpy or no_grad."
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
        # What is masked gets no gradient through the softmax, so it does not matter what it gets here.
        loss = sum((y * w.masked_fill(y <= MINUS_INFINITY, 0)).sum() for y, w in zip(outputs, weights, strict=True))
        if not isinstance(loss, Tensor) or not loss.requires_grad:
            return (None,) * len(leaves)
        return torch.autograd.grad(loss, leaves, allow_unused=True)

    def _overflow(self, result: Result) -> None:
        """exp(89) is too large for float32: a softmax by hand must subtract the row's maximum first."""
        if self.check.function == "attn_softmax":
            outcome = attempt(self.call, (200 * self._bench().scores(),))
            if any(t.isnan().any() for t in as_tensors(outcome.answer) or ()):
                _remark(result, "large scores overflow to NaN: subtract each row's maximum before exp")

    def _projections(self, result: Result) -> None:
        n_embd = self._bench().width
        outcome = attempt(self.call, (n_embd,))
        result.expected = f"three modules that map {n_embd} features to {n_embd}"
        if outcome.error is not None:
            self._raised(result, outcome.error)
            result.advice = hint(outcome.error)
        elif found := inspect_projections(outcome.answer, n_embd):
            _fail(result, found[0])
            result.came, result.advice = describe(outcome.answer), found[1]

    def _raised(self, result: Result, error: BaseException) -> None:
        _fail(result, first_line(error))
        result.line = line_in(self.filename, error) or result.line

    def _definition_line(self) -> int | None:
        code = getattr(self.function, "__code__", None)
        return code.co_firstlineno if code and code.co_filename == self.filename else None


def line_in(filename: str, error: BaseException) -> int | None:
    """The innermost line of the person's file that the error passed through."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == filename]
    return frames[-1].lineno if frames else None


def _fail(result: Result, problem: str) -> None:
    result.status, result.problem = Status.FAIL, problem


def _remark(result: Result, text: str) -> None:
    if text not in result.remarks:
        result.remarks.append(text)


def _number(value: float) -> float | str:
    """JSON has no infinity and no NaN: these go as words."""
    return round(value, 7) if math.isfinite(value) else str(value)
