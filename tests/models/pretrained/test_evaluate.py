"""`attnlab evaluate RUN FILE` of a classifier: scores as scikit-learn computes them, from the predictions it writes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from attnlab.api.evaluate import evaluate as measure
from attnlab.base.errors import UserError
from attnlab.cli import app
from attnlab.jobs.classify.export import export

metrics = pytest.importorskip("sklearn.metrics")
Make = Callable[..., Path]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, tiny_model: Make, fit: Make, reviews: Path) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    return fit(folder, tiny_model("bert"), reviews, data={"max_tokens": 10}, training={"steps": 6})


def evaluate(*words: object) -> Result:
    return CliRunner().invoke(app, ["evaluate", *map(str, words), "--device", "cpu"])


def test_the_scores_are_those_of_the_predictions(run: Path, reviews: Path, tmp_path: Path) -> None:
    done = evaluate(run, reviews, "--json", "--out", tmp_path / "out")
    assert done.exit_code == 0, done.exception
    found = json.loads(done.stdout)
    rows = [json.loads(line) for line in (tmp_path / "out" / "predictions.jsonl").read_text().splitlines()]
    labels, predicted = [row["label"] for row in rows], [row["predicted"] for row in rows]
    assert found["accuracy"] == pytest.approx(metrics.accuracy_score(labels, predicted))
    assert found["macro_f1"] == pytest.approx(metrics.f1_score(labels, predicted, average="macro"))
    assert found["confusion"] == metrics.confusion_matrix(labels, predicted, labels=found["classes"]).tolist()
    positive = [row["probability"] if row["predicted"] == "positive" else 1 - row["probability"] for row in rows]
    assert found["loss"] == pytest.approx(metrics.log_loss(labels, positive, labels=["negative", "positive"]), abs=1e-4)
    assert found["accuracy_interval"][0] < found["accuracy"] < found["accuracy_interval"][1]
    assert found["examples"] == 100


def test_on_the_terminal_and_from_an_export(run: Path, reviews: Path, tmp_path: Path) -> None:
    shown = evaluate(run, reviews, "--outputs", tmp_path / "all.jsonl", "--out", tmp_path / "out").stdout
    for part in ("accuracy: ", "of 100 texts", "most common class: 50.0%", "macro F1: ", "negative", "(100 lines)"):
        assert part in shown
    assert len((tmp_path / "all.jsonl").read_text().splitlines()) == 100
    export(run, tmp_path / "export")
    again = evaluate(tmp_path / "export", reviews, "--out", tmp_path / "again").stdout
    assert again.splitlines()[0] == shown.splitlines()[0]


def test_mistakes_are_one_sentence(run: Path, tmp_path: Path) -> None:
    (tmp_path / "bare.txt").write_text("a good film\n")
    (tmp_path / "wrong.csv").write_text("remark,label\nthe film is good,splendid\n")
    for words, sentence in (
        ([run], "the file is missing: give labelled texts"),
        ([run, tmp_path / "bare.txt"], "have no labels to compare with"),
        ([run, tmp_path / "wrong.csv"], "'splendid'"),
        ([run, tmp_path / "bare.txt", "--stride", 3], "--stride is for a text"),
        ([run, tmp_path / "nowhere.csv"], "nowhere.csv does not exist"),
    ):
        done = evaluate(*words)
        assert isinstance(done.exception, UserError) and sentence in str(done.exception), done.output
    assert not (run / "evaluations").exists()


def test_a_threshold_of_the_confidence_gives_accuracy_against_the_share_answered(
    tmp_path: Path, run: Path, reviews: Path
) -> None:
    shown = evaluate(run, reviews, "--abstain-below", 0.5, "--out", tmp_path / "shown")
    assert "--abstain-below: threshold 0.500: 100 of 100 answers given" in shown.output
    found = measure(run, reviews, abstain_below=0.6, device="cpu", out=tmp_path / "measured")
    lines = [json.loads(line) for line in Path(str(found.predictions)).read_text().splitlines()]
    kept = [line for line in lines if line["probability"] >= 0.6]
    assert found["abstention"]["answered"] == len(kept)
    assert found["abstention"]["right"] == sum(line["label"] == line["predicted"] for line in kept)
    assert found["coverage"]["answered"][-1] == 1.0
    assert found["coverage"]["accuracy"][-1] == pytest.approx(found["accuracy"])


def test_there_is_a_report_and_rows_without_a_label_are_left_out(run: Path, tmp_path: Path) -> None:
    rows = [f"the film is {'good' if n % 2 else 'bad'} {n}\t{('positive', 'negative', '')[n % 3]}" for n in range(30)]
    (tmp_path / "part.tsv").write_text("\n".join(["remark\tlabel", *rows]) + "\n")
    done = evaluate(run, tmp_path / "part.tsv", "--out", tmp_path / "out")
    assert done.exit_code == 0, done.exception
    assert "of 20 texts" in done.stdout and "10 of 30 rows have no label" in done.stderr.replace("\n", " ")
    page = (tmp_path / "out" / "report.html").read_text()
    for part in ("macro-F1 (95%)", "class on part.tsv", "Most confident mistakes on part.tsv", "calibration error"):
        assert part in page
