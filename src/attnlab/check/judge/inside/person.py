"""The person's process: the only place where a person's code runs. It is told inputs and returns raw arrays.

Whatever this process says is a claim: its end of the channel belongs to the person's code as much as to this file.

    LOAD     text, filename, seconds, number of lines to skip, these lines, names of functions
             LOADING line, seconds; REMARK text, line; then LOADED name, callable, line, defined here, ...
    CALL     function, seconds, seed, number of arguments, arguments, number of gradients, of which, output gradients
             ANSWER form, type, number of tensors, tensors, arguments afterwards, gradients
    PROJECT  function, seconds, seed, width, input
             ANSWER type, number of parts, (module, linear without bias, output or what is wrong)...
             each may be answered by ERROR what it was doing, summary, line
"""

from __future__ import annotations

import contextlib
import os
import random
import socket
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from . import guard
from .errors import error_summary, line_in
from .frames import DTYPES, Channel, Closed, Kind, Malformed, Value
from .loading import load_module
from .time_limit import TimeLimitExceeded, time_limit

MAX_TENSORS = 16


class Stopped(Exception):
    """A question cannot be answered: what was being done, and the error."""

    def __init__(self, doing: str, error: BaseException) -> None:
        super().__init__(doing)
        self.doing, self.error = doing, error


def serve(descriptor: int, visible: list[str], hidden: list[str]) -> None:
    """Answer the judge's questions until it closes the channel."""
    channel = Channel(socket.socket(fileno=descriptor))
    _set_up(visible)
    guard.install(hidden)
    person = Person(channel)
    channel.send(Kind.READY, 0, [])
    with contextlib.suppress(Closed):
        while True:
            kind, ticket, values = channel.receive()
            person.answer(kind, ticket, values)


def _set_up(visible: list[str]) -> None:
    folder = os.getcwd()
    os.environ.clear()
    os.environ.update(HOME=folder, TMPDIR=folder, PATH="/usr/bin:/bin", MPLBACKEND="Agg", CUDA_VISIBLE_DEVICES="")
    sys.path[:] = [
        entry for entry in sys.path if any(entry == top or entry.startswith(top.rstrip("/") + "/") for top in visible)
    ]
    sys.dont_write_bytecode = True


class Person:
    """One loaded file and the channel to the judge."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.filename = ""
        self.module = ModuleType("nothing")

    def answer(self, kind: Kind, ticket: int, values: list[Any]) -> None:
        if kind is Kind.LOAD:
            self.channel.send(Kind.LOADED, ticket, self._load(ticket, values))
            return
        try:
            answer = self._call(values) if kind is Kind.CALL else self._project(values)
            self.channel.send(Kind.ANSWER, ticket, answer)
        except Stopped as stopped:
            late = isinstance(stopped.error, TimeLimitExceeded)
            line = line_in(self.filename, stopped.error)
            error: list[Value] = ["late" if late else stopped.doing, error_summary(stopped.error), line]
            self.channel.send(Kind.ERROR, ticket, error)
        except Malformed as malformed:  # too large to be sent
            self.channel.send(Kind.ERROR, ticket, ["size", str(malformed), None])

    def _load(self, ticket: int, values: list[Any]) -> list[Value]:
        text, self.filename, seconds, count, *rest = values
        sys.argv = [self.filename]
        self.module = load_module(
            text,
            self.filename,
            seconds,
            skip_lines=rest[:count],
            before=lambda line, limit: self.channel.send(Kind.LOADING, ticket, [line, limit]),
            remark=lambda remark, line: self.channel.send(Kind.REMARK, ticket, [remark, line]),
        )
        found: list[Value] = []
        for name in rest[count:]:
            function = getattr(self.module, name, None)
            code = getattr(function, "__code__", None)
            line = code.co_firstlineno if code and code.co_filename == self.filename else None
            found += [name, callable(function), line, code is None or line is not None]
        return found

    def _call(self, values: list[Any]) -> list[Value]:
        name, seconds, seed, count, *rest = values
        arguments, (gradients, *rest) = [_argument(value) for value in rest[:count]], rest[count:]
        leaves: dict[int, Tensor] = {}
        output_gradients = [_argument(value) for value in rest[gradients:]]
        for position in rest[:gradients]:
            leaves[position] = arguments[position].requires_grad_()
            arguments[position] = arguments[position].clone()  # not a leaf: in-place work on it is allowed
        answer = self._run(name, seconds, seed, arguments)
        tensors = _tensors(answer)
        values = [_form(answer, tensors), type(answer).__name__[:100], len(tensors)]
        values += [_array(tensor) for tensor in tensors]
        values += [_array(a) if isinstance(a, Tensor) and not leaves else None for a in arguments]
        if leaves:
            values += _gradients(tensors, list(leaves.values()), output_gradients)
        return values

    def _project(self, values: list[Any]) -> list[Value]:
        name, seconds, seed, width, inputs = values
        answer = self._run(name, seconds, seed, [width])
        parts = list(answer) if isinstance(answer, tuple | list) else []
        values = [type(answer).__name__[:100], len(parts)]
        for part in parts[:MAX_TENSORS]:
            values += [isinstance(part, nn.Module), isinstance(part, nn.Linear) and part.bias is None]
            try:
                with time_limit(seconds):
                    values.append(_array(part(_argument(inputs))))
            except (Exception, TimeLimitExceeded) as error:
                values.append(error_summary(error))
        return values

    def _run(self, name: str, seconds: float, seed: int, arguments: list[Any]) -> Any:
        """Call the function as every other time: default settings, generators seeded."""
        function = getattr(self.module, name)
        _reset(seed)
        with _doing("signature"):
            _bind(function, arguments)
        with _doing("call"), time_limit(seconds):
            return function(*arguments)


@contextlib.contextmanager
def _doing(what: str) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        raise Stopped(what, error) from None


def _bind(function: Callable[..., Any], arguments: list[Any]) -> None:
    import inspect

    try:
        signature = inspect.signature(function)
    except ValueError:  # a builtin without a readable signature: the call itself will show
        return
    signature.bind(*arguments)


def _reset(seed: int) -> None:
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    torch.set_grad_enabled(True)


def _argument(value: Value) -> Any:
    return torch.from_numpy(value) if isinstance(value, np.ndarray) else value


def _tensors(answer: Any) -> list[Tensor]:
    """A tensor, or a tuple or list of tensors, as a list; empty for anything else."""
    parts = list(answer) if isinstance(answer, tuple | list) else [answer]
    return parts if len(parts) <= MAX_TENSORS and all(isinstance(part, Tensor) for part in parts) else []


def _form(answer: Any, tensors: list[Tensor]) -> str:
    return "other" if not tensors else "tensor" if isinstance(answer, Tensor) else "sequence"


def _array(tensor: Tensor) -> np.ndarray:
    with _doing("returning"):
        with torch._C.DisableTorchFunctionSubclass():
            array = tensor.detach().cpu().resolve_conj().resolve_neg()
            if array.dtype == torch.bfloat16:
                array = array.float()
            raw = array.contiguous().numpy()
        if raw.dtype not in DTYPES:
            raise TypeError(f"numbers of type {raw.dtype} are not accepted")
        return raw


def _gradients(outputs: list[Tensor], leaves: list[Tensor], given: list[Tensor]) -> list[Value]:
    """∂/∂x Σ g · f(x) for the given g; None where no gradient arrives."""
    with _doing("backward"):
        # As a sum: with output gradients torch imports its symbolic shapes, which takes longer than all else.
        parts = [(y.masked_fill(g == 0, 0) * g).sum() for y, g in zip(outputs, given, strict=True) if y.requires_grad]
        if not parts:
            return [None] * len(leaves)
        gradients = torch.autograd.grad(torch.stack(parts).sum(), leaves, allow_unused=True)
    return [None if gradient is None else _array(gradient) for gradient in gradients]
