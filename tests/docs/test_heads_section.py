"""The commands and the Python of docs/interpret.md, "Name the heads", run; and so does the script of the experiment."""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # a dozen commands, one after the other
ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "interpret.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("## Name the heads\n")[2].partition("\n## ")[0]
TINY = ("--steps", 4, "--save-every", 2, "--evaluate-every", 2, "--device", "cpu", "--batch-size", 4)


def test_the_section(
    attnlab: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "README.md").write_bytes((ROOT / "README.md").read_bytes())
    lines = [line for block in re.findall(r"```\n(.*?)```", SECTION, re.DOTALL) for line in block.splitlines()]
    assert len(lines) == 9
    for line in lines:
        words: list[object] = [*shlex.split(line, comments=True)][1:]
        smaller = {"language": TINY, "data": ("--characters", 4000)}.get(str(words[0]), ())
        done = attnlab(*words, *smaller, cwd=tmp_path)
        assert done.returncode == 0, (line, done.stderr)
        if "minilm" in words:
            assert "separator" in done.stdout and "induction" not in done.stdout
    assert all((tmp_path / figure).stat().st_size > 1000 for figure in ("heads.png", "induction.png"))
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)
    names: dict[str, object] = {}
    exec(code, names)
    assert names["head"] in range(4)


def test_the_script_trains_resumes_scores_and_renews_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.spec_from_file_location("induction_heads", ROOT / "docs" / "notebook" / "induction_heads.py")
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = script
    spec.loader.exec_module(script)
    monkeypatch.setattr(script, "SEEDS", (0, 1))
    monkeypatch.setattr(script, "FIGURE", tmp_path / "figure.png")
    started: list[tuple[object, ...]] = []
    run_command = script._attnlab
    monkeypatch.setattr(script, "_attnlab", lambda *words: (started.append(words), run_command(*words)))
    script.train(tmp_path / "runs", threads=1, steps=2)
    assert [words[0] for words in started] == ["data", *["language"] * 6]
    script.train(tmp_path / "runs", threads=1, steps=2)
    assert len(started) == 7  # all have finished
    results = script.gather(tmp_path / "runs")
    assert [len(runs) for runs in results.values()] == [2, 2, 2]
    script.draw(results)
    assert script.FIGURE.stat().st_size > 1000
    page = script.renewed(script.PAGE.read_text(encoding="utf-8"), results)
    assert "| two layers |" in page and "| one layer |" in page and "figures/figure.png" in page
    assert "Not measured yet" not in page
