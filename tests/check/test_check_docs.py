"""The page shows what the command really prints."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import attnlab

ROOT = Path(__file__).parents[2]


def test_the_example_of_the_page_is_real_output(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "check.md").read_text(encoding="utf-8")
    blocks = re.search(r"```python\n(.*?)```\n\n```text\n\$ attnlab check mine\.py\n(.*?)```", page, re.DOTALL)
    assert blocks, "docs/check.md has lost its example"
    (tmp_path / "mine.py").write_text(blocks[1], encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "attnlab", "check", "mine.py"],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        timeout=240,
        env={
            **os.environ,
            "PYTHONPATH": str(Path(attnlab.__file__).parent.parent),
            "COLUMNS": "100",
            "PYTHONIOENCODING": "utf-8",
        },
    )
    printed = [line.rstrip() for line in done.stdout.rstrip().splitlines()]
    assert printed == blocks[2].rstrip().splitlines()
