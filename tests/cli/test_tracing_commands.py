"""`attnlab ablate`, `trace` and `lens` as a user types them, and the section of docs/interpret.md about them."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
from tests.tiny_models import tiny_model
from typer.testing import CliRunner

from attnlab.base.errors import UserError
from attnlab.cli import app
from attnlab.data.questions import read_pairs
from attnlab.interpret.measured import open_measured
from attnlab.models.asking import answer, score
from attnlab.models.loading import load_gpt

Run = Callable[..., subprocess.CompletedProcess[str]]
SECTION = (Path(__file__).parents[2] / "docs" / "interpret.md").read_text(encoding="utf-8").split("\n## Change it\n")[1]
SECTION = SECTION.split("\n## ")[0]
TINY = ["--layers", 2, "--heads", 2, "--width", 32, "--device", "cpu", "--precision", "fp32", "--threads", 1]


def lab(root: Path, *words: object) -> str:
    """What `attnlab WORDS...` prints, in this process; a mistake is raised."""
    with contextlib.chdir(root):
        done = CliRunner().invoke(app, [*map(str, words)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


LONG = ["--epochs", 60, "--lr", 0.01, "--save-every", 0]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the runs and files that the page names; the model of `asked` knows its training questions."""
    root = tmp_path_factory.mktemp("page")
    world = ["--people", 16, "--places", 4, "--seed", 1]
    lab(root, "world", "--out", "world", *world, "--documents", 2, "--paraphrases", 2)
    files = {split: root / "world" / f"{split}.tsv" for split in ("train", "test")}
    (root / "questions.tsv").write_bytes(files["train"].read_bytes())
    poem = "The sea, the sea, the open sea, the blue, the fresh, the ever free. " * 20
    (root / "poems.txt").write_text(poem, encoding="utf-8")
    words = [" ".join(text) for text in product(("a", "the", "this"), ("film", "plot"), ("is", "was"), ("good", "bad"))]
    reviews = [f"{text}\t{int(text.endswith('good'))}" for text in words]
    (root / "reviews.tsv").write_text("text\tlabel\n" + "\n".join(reviews) + "\n", encoding="utf-8")
    tiny_model(root / "bert")
    corpus = ["--corpus", root / "world" / "corpus.txt", "--vocabulary-from", files["train"], "--tokens", "words"]
    questions = [word for split, file in files.items() for word in (f"--{split}", file)]
    for words in (
        ["pretrain", *corpus, "--context", 48, *TINY, "--steps", 4, "--run", "runs/read"],
        ["finetune", "--from", "runs/read", *questions, *LONG, *TINY[6:], "--run", "runs/asked"],
        ["language", "--corpus", "poems.txt", "--context", 16, *TINY, "--steps", 6, "--run", "runs/poems"],
        ["classify", "--task", "reviews.tsv", "--model", "bert", "--epochs", 1, *TINY[6:], "--run", "runs/reviews"],
    ):
        lab(root, *words)
    return root


def commands() -> list[list[str]]:
    blocks = "\n".join(re.findall(r"```sh\n(.*?)```", SECTION, re.DOTALL))
    return [shlex.split(line, comments=True)[1:] for line in blocks.splitlines() if line.startswith("attnlab")]


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_every_command_of_the_page_works(words: list[str], runs: Path) -> None:
    assert "±" in (printed := lab(runs, *words)) or "lens" in words, printed
    for figure in re.findall(r"\S+\.png", " ".join(words)):
        assert (runs / figure).stat().st_size > 5000


@pytest.mark.slow
def test_the_snippet_of_the_page_works(runs: Path, cli_environment: dict[str, str]) -> None:
    (snippet,) = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", snippet], cwd=runs, env=cli_environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "TracedCell(site='stream'" in done.stdout


def test_accuracy_before_is_that_of_asking(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One pass with the right answer as input finds the questions that decoding, token by token, answers right."""
    monkeypatch.chdir(runs)
    trained = load_gpt(Path("runs/asked"))
    for file in ("questions.tsv", "world/test.tsv"):
        pairs = read_pairs(Path(file))
        given = answer(trained.model, trained.vocabulary, [pair.question for pair in pairs])
        accuracy = score([each.text for each in given], pairs)
        scores = open_measured(Path("runs/asked"), Path(file)).scores()
        assert float(scores["accuracy"].mean()) == pytest.approx(accuracy)
        right = [n for n, (each, pair) in enumerate(zip(given, pairs, strict=True)) if each.text == pair.answer]
        for n in right:
            assert float(scores["probability"][n]) == pytest.approx(given[n].confidence, abs=1e-5)
        if file == "questions.tsv":
            assert accuracy == 1.0


def test_json_has_everything(runs: Path) -> None:
    result = json.loads(lab(runs, "ablate", "runs/asked", "questions.tsv", "--curve", "--json"))
    assert result["before"]["accuracy"]["mean"] == 1.0 and len(result["effects"]) == 4
    assert [point["removed"] for point in result["curve"]["points"]] == [0, 1, 2, 3, 4]
    traced = json.loads(lab(runs, "trace", "runs/asked", "questions.tsv", "--json"))
    assert traced["right"] == traced["people"] == 8 and traced["clean"]["mean"] > 0.5
    last = next(c for c in traced["cells"] if (c["site"], c["layer"], c["part"]) == ("stream", "1", "MASK"))
    assert last["mean"] == pytest.approx(traced["clean"]["mean"] - traced["corrupted"]["mean"], abs=1e-5)
    seen = json.loads(lab(runs, "lens", "runs/asked", "questions.tsv", "--json"))
    final = next(c for c in seen["cells"] if (c["layer"], c["part"]) == ("1", "MASK"))
    assert final["first"]["share"] == 1.0 and final["probability"]["mean"] == pytest.approx(traced["clean"]["mean"])


def test_mistakes_are_one_sentence(runs: Path, attnlab: Run, tmp_path: Path) -> None:
    (tmp_path / "other.tsv").write_text("Who painted this?\tAda\n", encoding="utf-8")
    (tmp_path / "bare.tsv").write_text("Where was Ada Low born?\n", encoding="utf-8")
    (tmp_path / "empty.tsv").write_text("\n", encoding="utf-8")
    (tmp_path / "bare.txt").write_text("a good film\n", encoding="utf-8")
    for words, sentence in (
        (["trace", "runs/poems"], "runs/poems was not trained on questions"),
        (["trace", "runs/reviews"], "runs/reviews is a classify run: it has no language model."),
        (["trace", "t5-small"], "t5-small does not exist"),
        (["trace", "runs/asked", tmp_path / "other.tsv"], "names no one: 'Who painted this?' does not have the form"),
        (["trace", "runs/asked", tmp_path / "bare.tsv"], "has no answers"),
        (["trace", "runs/asked", tmp_path / "empty.tsv"], "empty.tsv"),
        (["trace", "runs/asked", "--corruption", "blur"], "unknown corruption 'blur'"),
        (["trace", "runs/asked", "--noise", -1], "the noise must be a number above 0"),
        (["trace", "runs/asked", "--noise", "nan"], "the noise must be a number above 0"),
        (["lens", "runs/poems", "--text", "the sea", "--answer", ""], "--answer is empty"),
        (["trace", "runs/asked", "--figure", "x.doc"], "unknown figure format 'doc'"),
        (["lens", "runs/poems"], "runs/poems was not trained on questions: give a text with --text"),
        (["lens", "runs/poems", "--text", " "], "the text is empty"),
        (["lens", "runs/poems", "--text", "the sea " * 9], "more than the model's context of 16"),
        (["lens", "runs/reviews", "--text", "a film"], "it has no language model"),
        (["lens", "runs/asked", "--answer", "Rome"], "an answer needs a text"),
        (["ablate", "runs/asked", "--part", "7.mlp"], "layer 7 is not there: the model has layers 0 to 1."),
        (["ablate", "runs/asked", "--part", "1.5"], "head 1.5 is not there: layer 1 has heads 0 to 1."),
        (["ablate", "runs/asked", "--part", "all"], "'all' is not a part of a model"),
        (["ablate", "runs/asked", "--what", "norm"], "unknown part 'norm'"),
        (["ablate", "runs/asked", "--how", "none"], "unknown way of removing 'none'"),
        (["ablate", "runs/asked", "--curve", "--what", "mlp"], "--curve removes heads"),
        (["ablate", "runs/poems"], "runs/poems is a language model: give a text file"),
        (["ablate", "runs/poems", "poems.txt", "--text", "x"], "give one of them"),
        (["ablate", "runs/reviews"], "runs/reviews is a classifier: give a file of labelled texts."),
        (["ablate", "runs/reviews", tmp_path / "bare.txt"], "has no labels"),
    ):
        with pytest.raises(UserError, match=re.escape(sentence)):
            lab(runs, *words)
    done = attnlab("trace", "runs/poems", cwd=runs)
    assert (
        done.returncode == 2 and "error: runs/poems was not trained" in done.stderr and "Traceback" not in done.stderr
    )


def test_a_run_without_weights_is_named(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "runs" / "asked", tmp_path / "bare", ignore=shutil.ignore_patterns("checkpoints"))
    for command in ("trace", "lens", "ablate"):
        with pytest.raises(UserError, match="has no checkpoint yet"):
            lab(runs, command, tmp_path / "bare")
