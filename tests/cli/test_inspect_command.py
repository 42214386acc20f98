"""`attnlab inspect` as a user types it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

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


def test_figures(runs: Path, attnlab: Run, tmp_path: Path) -> None:
    for run, *words in (["aft", "--layer", "0"], ["plain"], ["plain", "--head", "1.1"], ["plain", "--layer", "0"]):
        done = attnlab("inspect", runs / run, "--text", "$a_ the\n", "--figure", tmp_path / "grid.png", *words)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "grid.png").read_bytes().startswith(b"\x89PNG")
        (tmp_path / "grid.png").unlink()
    assert "of 8 tokens are not in the model's vocabulary" in done.stderr


def test_mistakes_are_one_sentence_and_exit_2(runs: Path, attnlab: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.html").write_text("mine")
    unfinished = tmp_path / "unfinished"
    shutil.copytree(runs / "plain", unfinished, ignore=shutil.ignore_patterns("checkpoints"))
    plain, aft = runs / "plain", runs / "aft"
    for words, sentence in (
        ([plain, "--text", ""], "the text is empty: give at least one word."),
        ([plain, "--text", "the cat " * 9], "the text has 72 tokens, more than the model's context of 24: shorten it."),
        ([plain, "--text", TEXT, "--head", "1.2"], "head 1.2 is not there: layer 1 has heads 0 to 1."),
        ([plain, "--text", TEXT, "--head", "7"], "--head: expected LAYER.HEAD, for example 1.3, got '7'."),
        ([plain, "--text", TEXT, "--layer", "0", "--head", "1.0"], "layer 1 is not there: expected one of 0"),
        ([plain, "--text", TEXT, "--layer", "2"], "layer 2 is not there: the model has layers 0 to 1."),
        ([plain, "--text", TEXT, "--second", "x"], "a GPT reads one text: leave the second out."),
        ([plain, "--text", TEXT, "--out", tmp_path / "mine.html"], "was not written by attnlab inspect"),
        ([plain, "--text", TEXT, "--figure", tmp_path / "x.xyz"], "unknown figure format 'xyz'"),
        ([aft, "--text", TEXT, "--head", "0.0"], "blocks.0.attention computes no weights, so it has no heads to show"),
        ([aft, "--text", TEXT, "--no-influence"], "computes no weights: influence is all there is to see"),
        ([unfinished, "--text", TEXT], "has no checkpoint yet"),
        (["no-such-model", "--text", TEXT], "no-such-model"),
        ([runs, "--text", TEXT], str(runs)),
    ):
        done = attnlab("inspect", *words, cwd=tmp_path)
        assert done.returncode == 2, (words, done.stdout, done.stderr)
        (line,) = done.stderr.splitlines()
        assert line.startswith("error: ") and sentence in line, line
    assert (tmp_path / "mine.html").read_text() == "mine" and not (tmp_path / "inspect.html").exists()
