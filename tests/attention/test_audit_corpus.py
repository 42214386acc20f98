"""The audit on a corpus of right and wrong mixers: no false alarm, no miss, and the first verdict is the true one."""

from __future__ import annotations

import pytest
from tests.attention.corpus import FUTURE, RIGHT, STAYS_CAUSAL, WRONG

from attnlab.attention import MixerShape
from attnlab.attention.audit import sees_future
from attnlab.attention.audit.run import audit
from attnlab.attention.registry import hand_in

SHAPE = MixerShape(width=8, heads=2, context=136)
QUICK = {"Plain", "ZeroOutput", "OwnDropout", "MaskAfterSoftmax", "HiddenByAGate", "NothingVisible", "RingOf66"}


def failures(name: str, shape: MixerShape = SHAPE) -> dict[str, str]:
    """The checks that fail, in their order."""
    findings = audit(name, shape, cost=False, half=False).findings
    return {finding.check: finding.evidence for finding in findings if finding.passed is False}


def cases(names: list[str]) -> list[object]:
    return [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in names]


def test_the_corpus_is_large_enough() -> None:
    assert len(RIGHT) >= 30 and len(WRONG) >= 30


@pytest.mark.parametrize("name", cases(list(RIGHT)))
def test_no_false_alarm(name: str) -> None:
    assert failures(hand_in(RIGHT[name])) == {}


@pytest.mark.parametrize("name", cases(list(WRONG)))
def test_no_miss(name: str) -> None:
    kind, checks = WRONG[name]
    failed = failures(hand_in(kind))
    assert checks <= set(failed)
    assert next(iter(failed)) in checks


@pytest.mark.parametrize("name", cases([name for name, (_, checks) in WRONG.items() if not checks & set(FUTURE)]))
def test_another_mistake_is_never_called_a_leak(name: str) -> None:
    assert sees_future(hand_in(WRONG[name][0]), SHAPE) is None


@pytest.mark.parametrize("name", STAYS_CAUSAL)
def test_a_bidirectional_mixer_that_stays_causal(name: str) -> None:
    both_ways = MixerShape(width=8, heads=2, context=20, causal=False)
    assert failures(hand_in(STAYS_CAUSAL[name]), both_ways)["tokens meet"].startswith("it stays causal")


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("NoMask", "it reads the content of later tokens"),
        ("OnePair", "it reads the content of later tokens"),
        ("MaskAfterSoftmax", "they are in the sum that normalises the weights"),
        ("Centred", "their mean or variance reaches it"),
        ("DividedBySpread", "their mean or variance reaches it"),
        ("BatchNorm", "in training mode only; a sum over the sequence includes later tokens"),
        ("MaskInEvaluationOnly", "in training mode only; it reads the content of later tokens"),
    ],
)
def test_how_it_leaks(name: str, how: str) -> None:
    assert how in failures(hand_in(WRONG[name][0]), MixerShape(width=8, heads=2, context=20))[FUTURE[0]]
