"""The scores at the checkpoints of a run are those of its weights then; the commands of the page run."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from attnlab.base.errors import UserError
from attnlab.data.text.repeats import ALPHABET, repeated_strings
from attnlab.interpret.head_history import score_checkpoints
from attnlab.interpret.heads import score_heads
from attnlab.interpret.subject import open_subject
from attnlab.runs.checkpoints import load_weights, read_checkpoint

Run = Callable[..., subprocess.CompletedProcess[str]]
DOCS = Path(__file__).parents[2] / "docs"
SECTION = (DOCS / "interpret.md").read_text(encoding="utf-8").partition("## Name the heads")[2].partition("\n## ")[0]
TINY = ("--steps", 4, "--save-every", 2, "--evaluate-every", 2, "--device", "cpu", "--batch-size", 4)


@pytest.fixture(scope="module")
def place(attnlab: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the commands of the page have run, the trainings at a tiny size."""
    folder = tmp_path_factory.mktemp("heads")
    (folder / "README.md").write_text((DOCS.parent / "README.md").read_text(encoding="utf-8"), encoding="utf-8")
    for block in re.findall(r"```\n(.*?)```", SECTION, re.DOTALL):
        for line in block.splitlines():
            words: list[object] = [*shlex.split(line, comments=True)][1:]
            if words[0] == "language":
                words += TINY
            if words[:2] == ["data", "repeats"]:
                words += ["--characters", 4000]
            done = attnlab(*words, cwd=folder)
            assert done.returncode == 0, (line, done.stderr)
            (folder / f"{' '.join(map(str, words[:2])).replace('/', '-')}.out").write_text(done.stdout)
    return folder


def test_the_commands_leave_figures_and_tables(place: Path) -> None:
    for figure in ("heads.png", "induction.png"):
        assert (place / figure).read_bytes().startswith(b"\x89PNG")
    table = (place / "heads minilm.out").read_text()
    assert "separator" in table and "induction" not in table and "chance" in table
    by_step = (place / "heads runs-one-layer.out").read_text()
    assert "dev loss" in by_step and "induction" in by_step


def test_the_python_of_the_page_runs(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    (code,) = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)
    names: dict[str, object] = {}
    exec(code, names)
    assert names["head"] in range(4)


def test_every_checkpoint_is_scored_with_its_own_weights(place: Path) -> None:
    run = place / "runs" / "two-layers"
    history = score_checkpoints(run, draws=3)
    assert history.steps == [2, 4] and history.loss[0] == [2, 4]
    for step, report in zip(history.steps, history.reports, strict=True):
        subject = open_subject(run)
        load_weights(subject.model, read_checkpoint(run / "checkpoints" / f"step-{step:08d}").tensors["model"])
        assert report.rows() == score_heads(subject, draws=3).rows()
    assert history.reports[0].rows() != history.reports[1].rows()
    rows = history.rows()
    assert {row["step"] for row in rows} == {2, 4} and len(rows) == 2 * 5 * 8
    best = max(row["score"] for row in rows if row["step"] == 4 and row["kind"] == "induction")
    assert history.strongest("induction")[1] == best


def test_json_is_that_of_the_function(attnlab: Run, place: Path) -> None:
    run = place / "runs" / "two-layers"
    done = attnlab("heads", run, "--draws", 3, "--json")
    assert json.loads(done.stdout) == json.loads(json.dumps(score_heads(open_subject(run), draws=3).rows()))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("heads", "runs/two-layers", "--length", 99), "--length 99 is not possible here: give 4 to 16"),
        (("heads", "runs/two-layers", "--text", "missing.txt"), "missing.txt does not exist"),
        (("heads", "runs/two-layers", "--figure", "heads.xyz"), "unknown figure format 'xyz'"),
        (("heads", "minilm", "--checkpoints"), "minilm is no run: only a run has checkpoints"),
        (("data", "repeats", "repeats.txt"), "repeats.txt exists"),
        (("data", "repeats", "nowhere/repeats.txt"), "the folder nowhere does not exist"),
    ],
)
def test_mistakes_are_one_sentence(attnlab: Run, place: Path, words: tuple[object, ...], sentence: str) -> None:
    done = attnlab(*words, cwd=place)
    assert done.returncode == 2 and sentence in done.stderr and "Traceback" not in done.stderr


def test_a_run_without_checkpoints_is_one_sentence(place: Path, tmp_path: Path) -> None:
    run = shutil.copytree(place / "runs" / "one-layer", tmp_path / "bare")
    for checkpoint in (run / "checkpoints").glob("step-*"):
        shutil.rmtree(checkpoint)
    with pytest.raises(UserError, match="has kept no checkpoints: train it with --save-every and a large --keep"):
        score_checkpoints(run)


def test_the_text_is_random_strings_written_twice() -> None:
    text = repeated_strings(20_000, seed=1)
    assert text == repeated_strings(20_000, seed=1) != repeated_strings(20_000, seed=2)
    assert set(text) == set(ALPHABET) and len(text) >= 20_000
    position, lengths = 0, set()
    while position < len(text):
        fits = [k for k in range(4, 13) if text[position : position + k] == text[position + k : position + 2 * k]]
        assert fits, position
        lengths.add(fits[0])
        position += 2 * fits[0]
    assert lengths == set(range(4, 13))
    counts = torch.tensor([float(text.count(letter)) for letter in ALPHABET])
    assert counts.max() / counts.min() < 1.6
