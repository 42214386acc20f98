"""A file that ends or hangs the process is reported in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnlab.attention.audit.child import audit_file
from attnlab.attention.registry import MixerShape
from attnlab.base.errors import UserError

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
def mine(tmp_path: Path) -> Path:
    return tmp_path / "mine.py"


def test_what_the_file_prints_does_not_matter(mine: Path) -> None:
    mine.write_text(FILE.format(body="print('{\"findings\": []}')"), encoding="utf-8")
    report = audit_file(str(mine), SMALL, cost=False, half=False)
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
def test_a_file_that_ends_the_process(mine: Path, body: str, message: str) -> None:
    mine.write_text(FILE.format(body=body), encoding="utf-8")
    with pytest.raises(UserError, match=message):
        audit_file(str(mine), SMALL, cost=False, half=False)


def test_a_file_that_never_ends(mine: Path) -> None:
    mine.write_text(FILE.format(body="time.sleep(3600)"), encoding="utf-8")
    with pytest.raises(UserError, match="did not finish its audit within 3 seconds"):
        audit_file(str(mine), SMALL, cost=False, half=False, seconds=3)
