"""docs/attention.md: the table is the registry's, the examples pass their audit, the audit shown is a real one."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from attnlab.attention import MixerShape, find_variant
from attnlab.attention.audit.run import audit
from attnlab.base.trust import allow

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "attention.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def table() -> ModuleType:
    spec = importlib.util.spec_from_file_location("attention_table", DOCS / "attention_table.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_is_that_of_the_registry(table: ModuleType) -> None:
    assert table.renewed(PAGE) == PAGE, "run: python docs/attention_table.py"
    assert "| `vanilla` | softmax(QKᵀ/√D) V |" in PAGE


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_is_what_it_says_it_is(number: int, tmp_path: Path) -> None:
    file = tmp_path / "my_idea.py"
    file.write_text(EXAMPLES[number], encoding="utf-8")
    allow(file)
    for positions in ("none", *find_variant(str(file)).positions):
        report = audit(str(file), MixerShape(16, 4, context=40, positions=positions), half=False, cost=False)
        assert report.passed, [finding for finding in report.findings if finding.passed is False]


@pytest.mark.slow
def test_a_model_takes_a_file_for_a_name(
    attnlab: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    attnlab("new", "attention", "my_idea", cwd=tmp_path)
    done = attnlab(
        "pretrain",
        "--attention",
        "my_idea.py",
        "--steps",
        2,
        "--people",
        8,
        "--layers",
        1,
        "--heads",
        2,
        "--width",
        16,
        "--device",
        "cpu",
        "--precision",
        "fp32",
        "--run",
        "run",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "my_idea.py\n" in (tmp_path / "run" / "config.yaml").read_text(encoding="utf-8")


def without_numbers(text: str) -> str:
    """Words only: the last digits differ from machine to machine, and so do line breaks."""
    return " ".join(re.sub(r"\d[\d.,e-]*", "#", text).split())


def test_the_audit_shown_is_what_the_command_prints(attnlab: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    found = re.search(r"\$ attnlab audit naive-mask\n(.*?)```", PAGE, re.DOTALL)
    assert found, "the page has lost its audit"
    done = attnlab("audit", "naive-mask", "--no-cost", "--no-half")
    assert done.returncode == 1
    shown = without_numbers(found[1].partition("half precision")[0])
    assert without_numbers(done.stdout) == shown


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", PAGE):
        assert (DOCS / target).exists(), target
