"""A file that ends or hangs the process is reported in one sentence."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from attnlab.attention.audit.child import _result, audit_file
from attnlab.attention.registry import MixerShape
from attnlab.base.errors import UserError
from attnlab.base.trust import allow

SMALL = MixerShape(width=8, heads=2, context=12)
FILE = """
import os, sys, time
from torch import nn

class Mine(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.value = nn.Linear(shape.width, shape.width)

    def forward(self, x):
        {body}
        return self.value(x).cumsum(1)
"""

LEAVES_A_PROCESS = """
        if not os.path.exists({left!r}):
            if os.fork() == 0:
                with open({left!r} + ".part", "w") as file:
                    file.write(str(os.getpid()))
                os.rename({left!r} + ".part", {left!r})
                time.sleep(3600)
            while not os.path.exists({left!r}):
                time.sleep(0.01)
"""


@pytest.fixture
def mine(tmp_path: Path) -> Callable[[str], str]:
    """A file with this line in its forward, named by the user."""

    def write(line: str) -> str:
        file = tmp_path / "mine.py"
        file.write_text(FILE.format(body=line.strip()), encoding="utf-8")
        allow(file)
        return str(file)

    return write


def test_what_the_file_prints_does_not_matter(mine: Callable[[str], str]) -> None:
    file = mine("print('{\"findings\": []}')")
    report = audit_file(file, SMALL, cost=False, half=False)
    assert report.passed and len(report.findings) > 8


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("sys.exit(0)", r"mine\.py, line 11: forward fails: it calls sys\.exit"),
        ("os._exit(0)", r"mine\.py ended the process in the middle of its audit \(exit code 0\)"),
        ("os.kill(os.getpid(), 9)", r"mine\.py ended the process in the middle of its audit \(signal 9\)"),
        ("raise KeyboardInterrupt", r"mine\.py raises KeyboardInterrupt: it must return"),
        ("1 / 0", r"mine\.py, line 11: forward fails: ZeroDivisionError"),
    ],
)
def test_a_file_that_ends_the_process(
    mine: Callable[[str], str], body: str, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    file = mine(body)
    with pytest.raises(UserError, match=message):
        audit_file(file, SMALL, cost=False, half=False)
    assert "Traceback" not in capfd.readouterr().err


def test_a_process_that_the_file_leaves_behind_holds_up_nobody_and_is_ended(
    mine: Callable[[str], str], tmp_path: Path
) -> None:
    left = tmp_path / "left"
    file = mine(LEAVES_A_PROCESS.format(left=str(left)))
    assert len(audit_file(file, SMALL, cost=False, half=False).findings) > 8
    deadline = time.monotonic() + 300  # of a machine that is very busy
    while alive(int(left.read_text())):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_what_two_processes_wrote_is_no_result() -> None:
    once = b'{"findings": []}'
    assert _result("mine.py", once, 0).passed
    for written in (once + once, b"", b"[]", b'{"findings": [{"check": 1}]}'):
        with pytest.raises(UserError, match="in the middle of its audit"):
            _result("mine.py", written, 0)


def alive(pid: int) -> bool:
    """Not one that has ended and waits for its parent to notice."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_file_that_never_ends(mine: Callable[[str], str]) -> None:
    file = mine("time.sleep(3600)")
    with pytest.raises(UserError, match="did not finish its audit within 3 seconds"):
        audit_file(file, SMALL, cost=False, half=False, seconds=3)
