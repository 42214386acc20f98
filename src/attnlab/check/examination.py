"""The examination of one file: every check, in the order of the exercise, then once more in another order.

Everything random comes from one seed that the person's process never sees. A result is handed on as soon as it is
known; if the second round shows that it was luck, it is handed on again.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from attnlab.attention import pieces
from attnlab.base.errors import nearest
from attnlab.check.catalogue import Function
from attnlab.check.checks import CHECKS, Check, CheckInputs
from attnlab.check.diagnose import Arguments, Pieces, Probe, copies
from attnlab.check.function_check import FunctionCheck, fail
from attnlab.check.judge.candidate import Candidate, Hopeless, Outcome, Source
from attnlab.check.judge.shelter import Shelter
from attnlab.check.results import CheckResult, ExerciseStage, Status
from attnlab.check.sizes import LONG, SHORT, Sizes, draw_sizes

FUNCTIONS = tuple(dict.fromkeys(check.function for check in CHECKS))
DRAWS = 2  # inputs of different sizes per check, before the longer ones of the second round


@dataclass(frozen=True)
class FileFacts:
    """What the text of the file alone shows; found out by the parent, not by the person's process."""

    calls: frozenset[str]
    """Functions that `self_attention` reaches."""
    names: frozenset[str]
    """Everything that is defined at the top level."""
    from_lab: frozenset[str]
    """Names imported from attnlab; "*" for all."""


class Examination:
    """One file, one seed."""

    def __init__(self, source: Source, facts: FileFacts, stage: ExerciseStage, shelter: Shelter, seed: int) -> None:
        self.source, self.facts, self.stage, self.shelter, self.seed = source, facts, stage, shelter, seed
        self.limits = shelter.limits
        self.candidate = Candidate(source, shelter)
        chance = random.Random(seed)
        self.sizes = [draw_sizes(chance, SHORT)]
        while len(self.sizes) < DRAWS:
            sizes = draw_sizes(chance, SHORT)
            if sizes.tokens != self.sizes[0].tokens and sizes.heads != self.sizes[0].heads:
                self.sizes.append(sizes)
        self.long_sizes = draw_sizes(chance, LONG)
        self.order = chance.sample(CHECKS, len(CHECKS))
        self.results: dict[str, CheckResult] = {}
        self._probes: dict[tuple[str, int], Probe] = {}

    def run(self, tell: Callable[[str, CheckResult], None]) -> None:
        """All checks up to the stage; `tell` is given each result with the id of its check."""
        try:
            self.candidate.load()
            self._first_round(tell)
            self._second_round(tell)
        except Hopeless as end:
            self._give_up(str(end), tell)
        finally:
            self.candidate.end()

    @property
    def checks(self) -> list[Check]:
        return [check for check in CHECKS if check.stage in self.stage.up_to()]

    def _first_round(self, tell: Callable[[str, CheckResult], None]) -> None:
        for check in self.checks:
            found = self.candidate.functions[check.function]
            self.results[check.id] = FunctionCheck(check, self).run() if found.callable else self._missing(check)
            tell(check.id, self.results[check.id])

    def _second_round(self, tell: Callable[[str, CheckResult], None]) -> None:
        for check in self.order:
            result = self.results.get(check.id)
            if result and result.status is Status.PASS and FunctionCheck(check, self).repeat(result):
                tell(check.id, result)

    def _give_up(self, reason: str, tell: Callable[[str, CheckResult], None]) -> None:
        for check in self.checks:
            if check.id not in self.results:
                result = check.empty_result()
                fail(result, f"not checked: {reason}", "remove the code that ends the program or never returns.")
                tell(check.id, result)

    def _missing(self, check: Check) -> CheckResult:
        result = check.empty_result()
        result.status, result.problem = Status.MISSING, "the file has no function with this name"
        result.advice = f"define {check.function}({check.signature})."
        if self.facts.from_lab & {check.function, "*"} and check.function not in self.facts.names:
            fail(result, "it is imported from attnlab", f"write {check.function}({check.signature}) yourself.")
        elif close := nearest(check.function, self.facts.names - set(FUNCTIONS)):
            result.advice = f"did you mean {close}? The function must be named {check.function}."
        return result

    # What a check asks for.

    def arguments(self, check: Check, draw: int, dtype: torch.dtype = torch.float32, long: bool = False) -> Arguments:
        """The inputs of a check: for the same draw always the same."""
        sizes = self.long_sizes if long else self.sizes[draw]
        number = random.Random(f"{self.seed} {check.id} {draw} {long}").getrandbits(63)
        generator = torch.Generator().manual_seed(number)
        return check.arguments(CheckInputs(sizes, generator, dtype, self._make_mask()))

    def sizes_of(self, draw: int, long: bool = False) -> Sizes:
        return self.long_sizes if long else self.sizes[draw]

    def probe(self, check: Check, draw: int, call: Callable[[Arguments], Outcome]) -> Probe:
        """The call of a check with the inputs of a draw; made once."""
        key = check.id, draw
        if key not in self._probes:
            arguments = self.arguments(check, draw)
            self._probes[key] = Probe(arguments, check.expected(*copies(arguments)), call(arguments))
        return self._probes[key]

    def fresh(self, name: str, arguments: Arguments, seconds: float, seed: int) -> Outcome:
        """The same call in a process in which nothing was called before."""
        other = Candidate(self.source, self.shelter)
        other.skipped = list(self.candidate.skipped)
        try:
            return other.call(name, arguments, seconds, seed)
        finally:
            other.end()

    def pieces(self) -> Pieces:
        """What is known so far of the functions that `self_attention` is made of."""
        known = Pieces(set(self.facts.calls))
        for result in self.results.values():
            if result.function == "self_attention" or result.status is Status.MISSING:
                continue
            if result.status is Status.PASS:
                known.right.add(result.function)
            else:
                known.wrong.setdefault(result.function, set()).update({result.mistake} if result.mistake else ())
        known.right -= known.wrong.keys()
        return known

    def _make_mask(self) -> Function:
        """The person's own if it is right; it answers like the reference, but may be of another type."""
        own = next((r for r in self.results.values() if r.function == "make_causal_mask"), None)
        if own is None or own.status is not Status.PASS:
            return pieces.make_causal_mask

        def make(tokens: int) -> Any:
            outcome = self.candidate.call("make_causal_mask", (tokens,), self.limits.seconds)
            right = pieces.make_causal_mask(tokens)
            usable = isinstance(outcome.answer, torch.Tensor) and torch.equal(outcome.answer != 0, right)
            return outcome.answer if usable else right

        return make
