"""`attnlab sample` and `attnlab evaluate RUN FILE` as a user types them."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from attnlab.api.run import Run
from attnlab.base.console import visible
from attnlab.base.errors import UserError
from attnlab.cli import app
from attnlab.config import check
from attnlab.config.finetune import FinetuneConfig
from attnlab.config.language import LanguageConfig
from attnlab.config.pretrain import PretrainConfig
from attnlab.data.text.stream import read_stream
from attnlab.evaluation.text import evaluate_text
from attnlab.jobs.engine import train_run
from attnlab.jobs.finetune import FinetuneJob
from attnlab.jobs.job import RunOptions
from attnlab.jobs.language import LanguageJob
from attnlab.jobs.pretrain import PretrainJob
from attnlab.models.loading import load_gpt
from attnlab.runs import read_record

SHAPE = {"layers": 1, "heads": 2, "width": 16, "context": 16, "dropout": 0.0}
PLAIN: dict[str, Any] = {
    "machine": {"device": "cpu", "precision": "fp32", "threads": 1},
    "optimizer": {"lr": 0.01},
    "batch": {"size": 8},
    "training": {"steps": 12},
}


def call(*words: object) -> Result:
    return CliRunner().invoke(app, [*map(str, words)])


def printed(*words: object) -> str:
    done = call(*words)
    assert done.exit_code == 0, done.exception
    return done.stdout


def refused(*words: object) -> str:
    done = call(*words)
    assert isinstance(done.exception, UserError), done.output
    assert "\n" not in str(done.exception)
    return str(done.exception)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lines of a few words, among them what a terminal and rich would obey."""
    draw, path = random.Random(0), tmp_path_factory.mktemp("text") / "text.txt"
    words = ["the", "cat", "sat", "[red]", "\x1b[31m", "\x9b2J", "dog"]
    path.write_text("\n".join(" ".join(draw.choices(words, k=4)) for _ in range(200)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def language(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    values = {"data": {"corpus": str(text)}, "model": SHAPE, "measures": {"prefix_blocks": 0, "sample_length": 20}}
    run = tmp_path_factory.mktemp("runs") / "language"
    train_run(LanguageJob(check(LanguageConfig, PLAIN | values)), RunOptions(run))
    return run


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    world = {"people": 12, "places": 4}
    values = {"world": world, "data": {"tokens": "words"}, "objective": {"name": "causal"}, "model": SHAPE}
    run = tmp_path_factory.mktemp("runs") / "pretrained"
    train_run(PretrainJob(check(PretrainConfig, PLAIN | values | {"model": SHAPE | {"context": 64}})), RunOptions(run))
    return run


@pytest.fixture(scope="module")
def tuned(pretrained: Path) -> Path:
    run = pretrained.parent / "tuned"
    config = check(FinetuneConfig, PLAIN | {"start": {"run": str(pretrained)}, "training": {"steps": 2}})
    train_run(FinetuneJob(config), RunOptions(run))
    return run


def test_a_sample_is_streamed_after_its_prompt_and_longer_than_the_context(language: Path) -> None:
    shown = printed("sample", language, "--prompt", "the cat", "--length", 60, "--seed", 3)
    row = json.loads(printed("sample", language, "--prompt", "the cat", "--length", 60, "--seed", 3, "--json"))
    assert row["prompt"] == "the cat" and len(row["tokens"]) == len(row["log_probabilities"]) == 60
    assert shown == visible(row["prompt"] + row["text"]) + "\n"
    assert row["log_probability"] == pytest.approx(sum(row["log_probabilities"]))
    assert "continues from the last 8" in call("sample", language, "--prompt", "the cat").stderr


def test_a_sample_that_is_stopped_ends_with_a_new_line(language: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object, **__: object) -> Iterator[str]:
        yield "the c"
        raise KeyboardInterrupt

    monkeypatch.setattr(Run, "stream", stopped)
    done = call("sample", language)
    assert done.stdout == "the c\n" and done.exit_code != 0


def test_nothing_a_terminal_obeys_is_printed_and_no_markup_is_interpreted(language: Path) -> None:
    for words in ([], ["--json"], ["--number", 2]):
        shown = printed("sample", language, "--prompt", "\x1b[31m[red]\x9b2J", "--length", 200, *words)
        assert not set(shown) & {"\x1b", "\x9b", "\r"} and "[red]" in shown
    assert json.loads(shown := printed("sample", language, "--prompt", "\x9b2J", "--json"))["prompt"] == "\x9b2J", shown


def test_several_samples_and_a_file(language: Path, tmp_path: Path) -> None:
    words = ["sample", language, "--prompt", "the", "--length", 20, "--number", 3]
    shown = printed(*words)
    assert [line for line in shown.splitlines() if line.startswith("--- ")] == [f"--- {n} of 3 ---" for n in (1, 2, 3)]
    assert printed(*words) == shown
    assert "samples: " in printed(*words, "--out", tmp_path / "out.txt")
    assert (tmp_path / "out.txt").read_text(encoding="utf-8") == shown
    rows = [json.loads(line) for line in printed(*words, "--json").splitlines()]
    assert json.loads(printed(*words[:-1], 1, "--json"))["text"] == rows[0]["text"]


def test_without_a_prompt_samples_begin_as_lines_of_the_training_text_do(
    language: Path, pretrained: Path, text: Path
) -> None:
    rows = [
        json.loads(line) for line in printed("sample", language, "--number", 20, "--json", "--length", 2).splitlines()
    ]
    firsts = {line[0] for line in text.read_text(encoding="utf-8").splitlines()}
    assert {row["prompt"] for row in rows} <= firsts and len({row["prompt"] for row in rows}) > 1
    row = json.loads(printed("sample", pretrained, "--json"))
    assert row["prompt"] and "⁇" not in row["text"]  # a document ends at its mark


def test_what_the_prompt_has_and_the_vocabulary_has_not_is_said_once(language: Path) -> None:
    done = call("sample", language, "--prompt", "the ßß", "--number", 3, "--length", 5)
    assert done.stderr.count("'ß'") == 1 and "the ��" in done.stdout


def test_a_finetuned_model_samples_answers_to_a_question_with_its_mark(tuned: Path) -> None:
    row = json.loads(printed("sample", tuned, "--prompt", "Where was it born?⁇", "--json", "--length", 30))
    assert "⁇" in row["prompt"] and "⁇" not in row["text"]
    assert len(json.loads(printed("sample", tuned, "--prompt", "x", "--stop", "", "--json"))["tokens"]) == 200


def test_mistakes_of_sample_are_one_sentence(language: Path, tmp_path: Path) -> None:
    assert "does not exist" in refused("sample", tmp_path / "nowhere")
    assert "is a classify run" in refused("sample", record(tmp_path / "classify", "classify"))
    bert = record(tmp_path / "bert", "pretrain")
    (bert / "config.yaml").write_text("objective: {name: mlm}\n", encoding="utf-8")
    assert "is a BERT" in refused("sample", bert)
    assert "top_p is 2" in refused("sample", language, "--top-p", 2)
    assert "stop 'xyz'" in refused("sample", language, "--stop", "xyz")
    assert "does not exist: create it first" in refused("sample", language, "--out", tmp_path / "no" / "where.txt")


def record(run: Path, kind: str) -> Path:
    run.mkdir()
    (run / "run.json").write_text(json.dumps({"kind": kind}), encoding="utf-8")
    return run


def test_evaluate_a_text_in_disjoint_blocks_is_the_loss_of_the_run(language: Path, text: Path, tmp_path: Path) -> None:
    stream = read_stream(text, "characters", 0.1, 2)
    blocks = (len(stream.dev) - 1) // 16 * 16
    held_out = tmp_path / "held-out.txt"
    held_out.write_text(stream.vocabulary.decode(stream.dev[: blocks + 1].tolist()), encoding="utf-8")
    found = json.loads(printed("evaluate", language, held_out, "--stride", 16, "--json", "--out", tmp_path / "out"))
    assert found["loss"] == pytest.approx(read_record(language)["results"]["dev_loss"], abs=1e-5)
    assert found["tokens"] == blocks and found["unit"] == "blocks of 16 tokens" and found["units"] == blocks // 16
    assert json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))["loss"] == found["loss"]
    shown = printed("evaluate", language, held_out, "--per-token", "--out", tmp_path / "again")
    for part in ("loss: ", "perplexity: ", "bits per character: ", "context: at most 16", "results: "):
        assert part in shown
    rows = [json.loads(line) for line in (tmp_path / "again" / "tokens.jsonl").read_text().splitlines()]
    assert len(rows) == blocks and f"({blocks:,} lines)" in shown


def test_evaluate_reads_documents_where_the_run_did(pretrained: Path, tmp_path: Path) -> None:
    file = tmp_path / "documents.txt"
    file.write_text("a person was born here\n\nborn\nwas born a zebra\n", encoding="utf-8")
    done = call("evaluate", pretrained, file, "--json", "--outputs", tmp_path / "tokens.jsonl")
    found, trained = json.loads(done.stdout), load_gpt(pretrained)
    lines = ["a person was born here", "was born a zebra"]
    assert found["loss"] == pytest.approx(evaluate_text(trained.model, trained.vocabulary, lines).loss)
    assert found["documents"] == 2 and found["tokens"] == 7
    assert "1 of 3 documents have a single token" in done.stderr and "unknown to the model" in done.stderr
    assert len((tmp_path / "tokens.jsonl").read_text().splitlines()) == 7


def test_the_kind_of_the_run_decides_what_a_file_is(
    language: Path, pretrained: Path, tuned: Path, text: Path, tmp_path: Path
) -> None:
    assert f"is the text that {language} was trained on" in call("evaluate", language, text).stderr
    assert "file is missing: give a text" in refused("evaluate", language)
    assert "--abstain is for questions" in refused("evaluate", language, text, "--abstain")
    assert "--stride is for a text" in refused("evaluate", tuned, "--stride", 2)
    assert "stride is 99" in refused("evaluate", language, text, "--stride", 99)
    questions = tmp_path / "questions.tsv"
    questions.write_text("Where was it born?\n", encoding="utf-8")
    for run, words in (
        (pretrained, ["--questions", questions]),
        (tuned, ["--questions", questions]),
        (tuned, [questions]),
    ):
        assert "predictions.txt (1 lines)" in printed("evaluate", run, *words)
    words = ["--unseen-names", 0, "--out", tmp_path / "out"]
    assert "accuracy: " in printed("evaluate", pretrained, *words)  # as before: the world's own questions
    assert "give one of them" in refused("evaluate", tuned, questions, "--questions", questions)


def test_the_page_of_a_language_run_shows_what_it_writes(language: Path) -> None:
    found = json.loads((language / "samples.json").read_text(encoding="utf-8"))
    assert len(found["samples"]) == 2 and all(len(each["text"]) == 20 for each in found["samples"])
    page = (language / "report.html").read_text(encoding="utf-8")
    assert "What it writes" in page and "\x1b" not in page
