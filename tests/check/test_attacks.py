"""Files that try to pass without being right: each fails, in a sentence, and the next file is checked as ever.

The file defines every function, most of them wrong, so that a pass could only be forged. Each attack runs under the
protection that is in force on this machine, and under the weakest, which is all that an ordinary user has.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.check.attacks import ATTACKS, ONLY_WITH_A_WALL, WRONG
from tests.check.conftest import LIMITS

from attnlab.attention import pieces
from attnlab.base.errors import RunFailed
from attnlab.check.judge.inside.limits import Limits
from attnlab.check.results import CheckReport, ExerciseStage, Status
from attnlab.check.runner import Judge

SHORT = Limits(seconds=1.0, grace_seconds=4.0, total_seconds=60.0)  # for what must fail, however slow the machine is


@pytest.fixture(scope="module")
def weak_judge() -> Iterator[Judge]:
    with Judge(protections=["limits"]) as judge:
        yield judge


def check(judge: Judge, folder: Path, source: str, limits: Limits = SHORT) -> CheckReport:
    path = folder / "mine.py"
    text = source.replace("SOLUTION", str(Path(pieces.__file__))).replace("SECRET", str(folder / "secret.txt"))
    path.write_text(text.replace("PARENT", str(os.getpid())), encoding="utf-8")
    (folder / "secret.txt").write_text("torch.softmax", encoding="utf-8")
    (folder / "secret.txt").chmod(0o600)
    return judge.check(path, ExerciseStage.PLAIN, limits=limits)


def assert_fails(report: CheckReport) -> None:
    assert not report.passed
    for result in report.results:
        assert result.status is not Status.PASS or result.function in {"init_qkv_proj"}, result.name
        if result.status is Status.FAIL:
            assert result.problem and "\n" not in result.problem and "Traceback" not in result.problem


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_fails(name: str, judge: Judge, tmp_path: Path) -> None:
    assert_fails(check(judge, tmp_path, WRONG + ATTACKS[name]))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in ATTACKS if name not in ONLY_WITH_A_WALL])
def test_an_attack_fails_without_a_wall(name: str, weak_judge: Judge, tmp_path: Path) -> None:
    try:
        assert_fails(check(weak_judge, tmp_path, WRONG + ATTACKS[name]))
    except RunFailed as failed:  # it ended its judge: no result is a pass
        assert "\n" not in str(failed)


def test_the_file_of_another_is_checked_as_ever(judge: Judge, tmp_path: Path) -> None:
    """After all those attacks, by the same judge."""
    softmax = "import torch\ndef attn_softmax(A):\n    return torch.softmax(A, -1)\n"
    report = check(judge, tmp_path, softmax, LIMITS)
    assert [r.status for r in report.results if r.function == "attn_softmax"] == [Status.PASS]
    report = check(judge, tmp_path, WRONG)
    assert_fails(report)


def test_the_protection_is_reported(judge: Judge, weak_judge: Judge, tmp_path: Path) -> None:
    assert check(weak_judge, tmp_path, WRONG).protection == "limits"
    expected = {"bubblewrap", "user"} if os.getuid() == 0 else {"bubblewrap", "limits"}
    assert check(judge, tmp_path, WRONG).protection in expected


def test_results_are_told_as_they_are_known(judge: Judge, tmp_path: Path) -> None:
    told: list[str] = []
    (tmp_path / "mine.py").write_text(WRONG, encoding="utf-8")
    report = judge.check(tmp_path / "mine.py", ExerciseStage.PLAIN, told=lambda result: told.append(result.name))
    assert told == [result.name for result in report.results]


def test_sizes_and_inputs_are_drawn_anew(judge: Judge, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def attn_scaled(A, n_embd, n_heads):\n    return A\n", encoding="utf-8")
    reports = [judge.check(tmp_path / "mine.py", ExerciseStage.PLAIN) for _ in range(3)]
    assert len({report.seed for report in reports}) == 3
    assert len({str(report.results[2].first_difference) for report in reports}) == 3
