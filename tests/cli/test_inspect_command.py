"""`attnlab inspect` as a user types it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from attnlab.base.errors import UserError
from attnlab.cli.inspect import inspect
from attnlab.interpret.maps import weight_maps
from attnlab.interpret.subject import open_subject

Run = Callable[..., subprocess.CompletedProcess[str]]
MACHINE = ["--device", "cpu", "--precision", "fp32"]
SHAPE = ["--layers", 2, "--heads", 2, "--width", 16, "--context", 24, "--steps", 2, "--batch-size", 4]
TEXT = "the cat sat"


@pytest.fixture(scope="module")
def runs(attnlab: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    (root / "text.txt").write_text("the cat sat on the mat. " * 60)
    for name, attention in (("plain", "vanilla"), ("aft", "aft-full")):
        words = ["--attention", attention, *SHAPE, *MACHINE, "--run", root / name]
        done = attnlab("language", "--corpus", root / "text.txt", *words)
        assert done.returncode == 0, done.stderr
    return root


def test_it_writes_a_page_into_the_run(runs: Path, attnlab: Run) -> None:
    for _ in range(2):  # our own page is replaced
        done = attnlab("inspect", runs / "plain", "--text", TEXT)
        assert done.returncode == 0, done.stderr
    first, remark, page = done.stdout.splitlines()
    assert first.endswith("plain: 11 tokens, 2 attentions, weights of 4 heads, influence of 2.")
    assert "weights and influence order the tokens" in remark
    assert page == f"page: {runs / 'plain' / 'inspect.html'}"
    assert "<attention-view>" in (runs / "plain" / "inspect.html").read_text(encoding="utf-8")


def test_json_has_the_weights_and_writes_no_page(runs: Path, attnlab: Run, tmp_path: Path) -> None:
    done = attnlab("inspect", runs / "aft", "--text", TEXT, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["attentions"][1]["weights"] is None
    done = attnlab("inspect", runs / "plain", "--text", TEXT, "--layer", 1, "--json", cwd=tmp_path)
    (layer,) = json.loads(done.stdout)["attentions"]
    expected = weight_maps(open_subject(runs / "plain"), TEXT).attentions[1]
    assert layer["name"] == expected.name and layer["keys"] == list(TEXT)
    torch.testing.assert_close(torch.tensor(layer["weights"]), expected.weights)
    assert not (runs / "aft" / "inspect.html").exists()


@pytest.mark.parametrize(
    ("run", "options"), [("aft", {"layer": "0"}), ("plain", {}), ("plain", {"head": "1.1"}), ("plain", {"layer": "0"})]
)
def test_figures(runs: Path, tmp_path: Path, run: str, options: dict[str, str]) -> None:
    inspect(str(runs / run), "$a_ the\n", figure=tmp_path / "grid.png", **options)  # type: ignore[arg-type]
    assert (tmp_path / "grid.png").read_bytes().startswith(b"\x89PNG")


def test_tokens_that_the_model_does_not_know_are_noted(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inspect(str(runs / "plain"), "$a_ the", as_json=True)
    assert "2 of 7 tokens are not in the model's vocabulary" in capsys.readouterr().err


def test_a_mistake_is_one_sentence_and_exit_2(runs: Path, attnlab: Run, tmp_path: Path) -> None:
    done = attnlab("inspect", runs / "aft", "--text", TEXT, "--head", "0.0", cwd=tmp_path)
    assert done.returncode == 2 and not list(tmp_path.iterdir())
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: blocks.0.attention computes no weights, so it has no heads to show")


@pytest.mark.parametrize(
    ("run", "text", "options", "sentence"),
    [
        ("plain", "", {}, "the text is empty: give at least one word."),
        ("plain", "the cat " * 9, {}, "the text has 72 tokens, more than the model's context of 24: shorten it."),
        ("plain", TEXT, {"head": "1.2"}, "head 1.2 is not there: layer 1 has heads 0 to 1."),
        ("plain", TEXT, {"head": "7"}, "--head: expected LAYER.HEAD, for example 1.3, got '7'."),
        ("plain", TEXT, {"layer": "0", "head": "1.0"}, "layer 1 is not there: expected one of 0"),
        ("plain", TEXT, {"layer": "2"}, "layer 2 is not there: the model has layers 0 to 1."),
        ("plain", TEXT, {"second": "x"}, "a GPT reads one text: leave the second out."),
        ("plain", TEXT, {"out": Path("mine.html")}, "was not written by attnlab inspect"),
        ("plain", TEXT, {"figure": Path("x.xyz")}, "unknown figure format 'xyz'"),
        ("aft", TEXT, {"influence": False}, "computes no weights: influence is all there is to see"),
        ("unfinished", TEXT, {}, "has no checkpoint yet"),
        ("no-such-model", TEXT, {}, "no-such-model"),
        (".", TEXT, {}, "."),
    ],
)
def test_mistakes(
    runs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    run: str,
    text: str,
    options: dict[str, object],
    sentence: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.html").write_text("mine")
    if run == "unfinished":
        shutil.copytree(runs / "plain", run, ignore=shutil.ignore_patterns("checkpoints", "inspect.html"))
    source = str(runs / run) if (runs / run / "run.json").is_file() else run
    with pytest.raises(UserError, match=re.escape(sentence)):
        inspect(source, text, **options)  # type: ignore[arg-type]
    assert Path("mine.html").read_text() == "mine" and not list(tmp_path.rglob("inspect.html"))
