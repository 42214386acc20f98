"""A file that ends or hangs the process is reported in one sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from attnlab.attention.audit.child import audit_file
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


@pytest.fixture
def mine(tmp_path: Path) -> Callable[[str], str]:
    """A file with this line in its forward, named by the user."""

    def write(line: str) -> str:
        file = tmp_path / "mine.py"
        file.write_text(FILE.format(body=line), encoding="utf-8")
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
        ("sys.exit(0)", r"mine\.py calls sys\.exit"),
        ("os._exit(0)", r"mine\.py ended the process in the middle of its audit \(exit code 0\)"),
        ("os.kill(os.getpid(), 9)", r"mine\.py ended the process in the middle of its audit \(signal 9\)"),
        ("1 / 0", r"mine\.py, line 11: forward fails: ZeroDivisionError"),
    ],
)
def test_a_file_that_ends_the_process(mine: Callable[[str], str], body: str, message: str) -> None:
    file = mine(body)
    with pytest.raises(UserError, match=message):
        audit_file(file, SMALL, cost=False, half=False)


def test_a_file_that_never_ends(mine: Callable[[str], str]) -> None:
    file = mine("time.sleep(3600)")
    with pytest.raises(UserError, match="did not finish its audit within 3 seconds"):
        audit_file(file, SMALL, cost=False, half=False, seconds=3)
