"""A person's file in a process of its own: ask for a call, get numbers back.

Nothing that comes back is believed to be more than numbers. A process that dies is replaced at the next call, and the
statement that ended it is skipped from then on.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attnlab.check.judge.inside.frames import Channel, Closed, Kind, Late, Malformed, Value
from attnlab.check.judge.shelter import PersonProcess, Refused, Shelter

MAX_STARTS = 40
MAX_REMARKS = 100
MAX_TEXT = 300
IMPORT_SECONDS = 60.0
UNREADABLE = (Malformed, ValueError, TypeError, IndexError, RuntimeError)  # what a forged answer can lead to


class Died(Exception):
    """The process is no more, or cannot be understood; the message is the rest of a sentence."""


class Hopeless(Exception):
    """The file ends every process that loads it, or has used up its time."""


@dataclass(frozen=True)
class Other:
    """An answer that is no tensor and no sequence of tensors: only the name of its type is known."""

    kind: str


@dataclass(frozen=True)
class Failure:
    """An error in the person's code, or the death of its process."""

    doing: str
    """signature, call, returning, backward, size, late, dead"""
    summary: str
    line: int | None = None


@dataclass
class Outcome:
    """What one call came to: an answer or a failure."""

    answer: Any = None
    """A tensor, a list of tensors or `Other`."""
    after: list[Tensor | None] = field(default_factory=list)
    """The arguments after the call."""
    gradients: list[Tensor | None] = field(default_factory=list)
    failure: Failure | None = None


@dataclass(frozen=True)
class Found:
    """What a loaded file has under the name of a function."""

    callable: bool
    line: int | None
    own: bool
    """Defined in the file, not imported."""


@dataclass(frozen=True)
class Source:
    text: str
    filename: str
    functions: tuple[str, ...]


class Candidate:
    """One file; its process starts at the first use."""

    def __init__(self, source: Source, shelter: Shelter) -> None:
        self.source, self.shelter, self.limits = source, shelter, shelter.limits
        self.process: PersonProcess | None = None
        self.functions: dict[str, Found] = {}
        self.remarks: dict[
            tuple[str, int | None], None
        ] = {}  # in order and without repeats: every process reports them
        self.skipped: list[int] = []
        self.starts = 0
        self.ticket = 0
        self.until = time.monotonic() + self.limits.total_seconds

    def load(self) -> None:
        """Load the file, again without the statement that ended the last process."""
        while self.process is None:
            if self.starts >= MAX_STARTS:
                raise Hopeless(f"it has ended {MAX_STARTS} processes")
            self.starts += 1
            self.process = self.shelter.start()
            try:
                self._load(self.process.channel)
            except Died as death:
                if self.last_line is None:
                    raise Hopeless(str(death)) from None
                self.skipped.append(self.last_line)
                self._remark(f"this statement was skipped ({death})", self.last_line)

    def call(
        self,
        name: str,
        arguments: Sequence[Any],
        seconds: float,
        seed: int = 0,
        leaves: Sequence[int] = (),
        output_gradients: Sequence[Tensor] = (),
    ) -> Outcome:
        """Call a function of the file; with `leaves`, also the gradients of these arguments."""
        given = [_sent(argument) for argument in arguments]
        wanted: list[Value] = [*leaves, *(gradient.numpy() for gradient in output_gradients)]
        values: list[Value] = [name, float(seconds), seed, len(given), *given, len(leaves), *wanted]
        return self._ask(Kind.CALL, values, seconds, len(arguments), len(leaves))

    def project(self, name: str, width: int, inputs: Tensor, seconds: float, seed: int = 0) -> Outcome | list[Value]:
        """Call a function that returns modules, and each of them on these inputs: the raw claims, or a failure."""
        values: list[Value] = [name, float(seconds), seed, width, inputs.numpy()]
        return self._ask(Kind.PROJECT, values, 4 * seconds, 0, 0)

    def end(self) -> None:
        if self.process:
            self.process.end()
            self.process = None

    def _ask(self, kind: Kind, values: list[Value], seconds: float, arguments: int, leaves: int) -> Any:
        self.load()
        assert self.process
        channel = self.process.channel
        try:
            self._send(channel, kind, values)
            answer, parts = self._receive(channel, seconds)
            if answer is Kind.ERROR:
                return Outcome(failure=_failure(parts))
            if answer is not Kind.ANSWER:
                raise Malformed("it is not an answer")
            if kind is Kind.PROJECT:
                return [_text(part) if isinstance(part, str) else part for part in parts]
            return _outcome(parts, arguments, leaves)
        except (*UNREADABLE, Died) as error:
            death = error if isinstance(error, Died) else self._dead(f"what it sent is not an answer: {error}")
            return Outcome(failure=Failure("dead", str(death)))

    def _load(self, channel: Channel) -> None:
        self.last_line: int | None = None
        seconds = self.limits.seconds
        values: list[Value] = [self.source.text, self.source.filename, seconds, len(self.skipped)]
        try:
            self._send(channel, Kind.LOAD, [*values, *self.skipped, *self.source.functions])
            while True:
                kind, parts = self._receive(channel, max(seconds, IMPORT_SECONDS))
                if kind is Kind.LOADED:
                    self.functions = _functions(parts, self.source.functions)
                    return
                if kind is Kind.LOADING:
                    self.last_line = _whole(parts[0])
                elif kind is Kind.REMARK:
                    self._remark(_text(parts[0]), _whole(parts[1]))
                else:
                    raise Malformed("it is not a step of loading")
        except UNREADABLE as error:
            raise self._dead(f"what it sent is not an answer: {error}") from None

    def _send(self, channel: Channel, kind: Kind, values: list[Value]) -> None:
        self.ticket += 1
        try:
            channel.send(kind, self.ticket, values, self.limits.grace_seconds)
        except Late:
            raise self._dead("it does not read what it is asked") from None
        except Closed:
            raise self._dead("") from None

    def _receive(self, channel: Channel, seconds: float) -> tuple[Kind, list[Value]]:
        left = self.until - time.monotonic()
        limit = min(seconds + self.limits.grace_seconds, max(left, 0.0))
        try:
            kind, ticket, values = channel.receive(limit)
        except Late:
            if left < seconds + self.limits.grace_seconds:
                self.end()
                raise Hopeless(f"it has used up the {self.limits.total_seconds:g} s of a whole file") from None
            raise self._dead(f"did not return, killed after {limit:g} s") from None
        except Closed:
            raise self._dead("") from None
        if ticket != self.ticket:
            raise Malformed("it answers a question that was not asked")
        return kind, values

    def _dead(self, reason: str) -> Died:
        """End what is left of the process, and say how it died."""
        assert self.process
        status = None if reason else self.process.status()
        self.end()
        return Died(reason or _cause_of_death(status))

    def _remark(self, text: str, line: int | None) -> None:
        if len(self.remarks) < MAX_REMARKS:
            self.remarks[text, line] = None


def _cause_of_death(status: int | None) -> str:
    if status is None:
        return "the process closed its connection"
    if status < 0:
        return f"the process died of {signal.Signals(-status).name}"
    return f"the process exited with code {status}"


def _sent(argument: Any) -> Value:
    return argument.detach().contiguous().numpy() if isinstance(argument, Tensor) else argument


def _text(value: Value) -> str:
    """A text of the person's process, harmless to print: no control characters, not too long."""
    if not isinstance(value, str):
        raise Malformed("a text is missing")
    return "".join(character if character.isprintable() else "?" for character in value[:MAX_TEXT])


def _whole(value: Value) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**6 else None


def _tensor(value: Value) -> Tensor:
    if not isinstance(value, np.ndarray):
        raise Malformed("a tensor is missing")
    return torch.from_numpy(value)


def _failure(parts: list[Value]) -> Failure:
    if len(parts) != 3:
        raise Malformed("it is not an error")
    return Failure(_text(parts[0]), _text(parts[1]), _whole(parts[2]))


def _outcome(parts: list[Value], arguments: int, leaves: int) -> Outcome:
    form, kind, count, *rest = parts
    if not isinstance(count, int) or not 0 <= count <= len(rest) or len(rest) != count + arguments + leaves:
        raise Malformed("it is not the answer of a call")
    tensors, after = [_tensor(value) for value in rest[:count]], rest[count:]
    answer: Any = Other(_text(kind))
    if tensors:
        answer = tensors[0] if form == "tensor" else tensors
    changed = [None if value is None else _tensor(value) for value in after]
    return Outcome(answer, changed[:arguments], changed[arguments:])


def _functions(parts: list[Value], names: Sequence[str]) -> dict[str, Found]:
    if len(parts) != 4 * len(names) or [_text(part) for part in parts[::4]] != list(names):
        raise Malformed("it is not a list of functions")
    return {
        name: Found(parts[4 * i + 1] is True, _whole(parts[4 * i + 2]), parts[4 * i + 3] is True)
        for i, name in enumerate(names)
    }


__all__ = ["Candidate", "Died", "Failure", "Found", "Hopeless", "Other", "Outcome", "Refused", "Source"]
