"""`attnlab predict`: the same from texts, lines and files of every kind; mistakes are one sentence."""

import csv
import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from attnlab.base.errors import UserError
from attnlab.cli import app
from attnlab.jobs.classify.export import export

Make = Callable[..., Path]
TEXTS = ["the films is good", "a very dull tale", "the room is cold and grim", "bright song"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, tiny_model: Make, fit: Make, reviews: Path) -> Path:
    return fit(
        tmp_path_factory.mktemp("runs") / "run",
        tiny_model("bert"),
        reviews,
        optimizer={"lr": 0.01},
        model={"pooling": "pooler"},
        data={"max_tokens": 10},
        training={"epochs": 4},
    )


@pytest.fixture(scope="module")
def paired(tmp_path_factory: pytest.TempPathFactory, tiny_model: Make, fit: Make, pairs: Path) -> Path:
    return fit(tmp_path_factory.mktemp("runs") / "run", tiny_model("bert"), pairs, training={"epochs": 1})


def predict(*words: object, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, ["predict", *map(str, words), "--device", "cpu"], input=stdin)


def refused(*words: object, stdin: str | None = None) -> str:
    done = predict(*words, stdin=stdin)
    assert isinstance(done.exception, UserError), done.output
    assert "\n" not in str(done.exception)
    return str(done.exception)


def rows(done: Result) -> list[dict[str, Any]]:
    assert done.exit_code == 0, done.exception
    return [json.loads(line) for line in done.stdout.split("\n")[:-1]]


def test_predictions_are_those_the_run_has_written(run: Path) -> None:
    before = [json.loads(line) for line in (run / "predictions-dev.jsonl").read_text().splitlines()]
    found = rows(predict(run, "--json", stdin="".join(f"{row['text']}\n" for row in before)))
    assert [row["text"] for row in found] == [row["text"] for row in before]
    for row, expected in zip(found, before, strict=True):
        assert row["predicted"] == expected["predicted"] and row["probability"] == pytest.approx(
            expected["probability"], abs=2e-6
        )
        assert sum(row["probabilities"].values()) == pytest.approx(1, abs=1e-5)
        assert row["probabilities"][row["predicted"]] == row["probability"] == max(row["probabilities"].values())


def test_texts_lines_and_files_give_the_same(tmp_path: Path, run: Path) -> None:
    expected = predict(run, *(word for text in TEXTS for word in ("--text", text)))
    assert expected.exit_code == 0 and len(expected.stdout.splitlines()) == 4
    said, probability, text = expected.stdout.splitlines()[0].split("\t")
    assert said in ("negative", "positive") and 0.5 <= float(probability) <= 1 and text == TEXTS[0]
    files = {
        "a.txt": "\n".join(TEXTS),
        "own.tsv": "id\tremark\n" + "".join(f"{n}\t{text}\n" for n, text in enumerate(TEXTS)),  # the run's own column
        "named.csv": "id,text\n" + "".join(f'{n},"{text}"\n' for n, text in enumerate(TEXTS)),
        "bare.tsv": "\n".join(TEXTS) + "\n",
        "rows.jsonl": "".join(json.dumps({"sentence": text}) + "\n" for text in TEXTS),
    }
    for name, content in files.items():
        (tmp_path / name).write_text(content)
        assert predict(run, "--file", tmp_path / name).stdout == expected.stdout, name
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"remark": TEXTS}), tmp_path / "rows.parquet")
    assert predict(run, "--file", tmp_path / "rows.parquet").stdout == expected.stdout
    assert predict(run, "--file", "-", stdin=files["a.txt"]).stdout == expected.stdout


def test_labels_are_scored_and_a_file_is_written_whole(tmp_path: Path, run: Path, reviews: Path) -> None:
    out = tmp_path / "out.jsonl"
    done = predict(run, "--file", reviews, "--out", out, "--json")
    found = [json.loads(line) for line in out.read_text().splitlines()]
    right = sum(row["label"] == row["predicted"] for row in found)
    assert len(found) == 100 and f"accuracy: {right / 100:.1%} (" in done.stdout and "n = 100" in done.stdout
    assert os.listdir(tmp_path) == ["out.jsonl"]
    shown = predict(run, "--file", reviews)
    assert len(shown.stdout.splitlines()) == 100  # nothing but predictions; the score is a remark
    assert f"accuracy: {right / 100:.1%}" in shown.stderr


def test_an_exported_folder_predicts_the_same(tmp_path: Path, run: Path) -> None:
    expected = rows(predict(run, "--text", TEXTS[0], "--json"))
    for weights_only in (False, True):
        export(run, tmp_path / str(weights_only), weights_only)
        found = rows(predict(tmp_path / str(weights_only), "--text", TEXTS[0], "--json"))
        assert found[0]["predicted"] == expected[0]["predicted"]
        assert found[0]["probabilities"] == pytest.approx(expected[0]["probabilities"], abs=1e-5)


def test_cut_texts_are_reported_once(run: Path, paired: Path) -> None:
    done = predict(run, "--text", " ".join(["good"] * 30), "--text", "bad")
    assert done.stderr.count("cut") == 1
    assert "note: the classifier reads 10 tokens: 1 of 2 texts are longer and were cut." in done.stderr
    done = predict(paired, "--text", "good film", "--pair", " ".join(["good"] * 60))
    assert "1 of 1 pairs are longer, and their second text was cut" in done.stderr


def test_pairs(tmp_path: Path, paired: Path) -> None:
    expected = rows(predict(paired, "--json", "--text", "a good film", "--pair", "the film is bad"))
    assert expected[0]["pair"] == "the film is bad"
    assert rows(predict(paired, "--json", stdin="a good film\tthe film is bad\n")) == expected
    (tmp_path / "a.csv").write_text("passage,question,answer\nthe film is bad,a good film,no\n")
    found = rows(predict(paired, "--json", "--file", tmp_path / "a.csv"))
    assert found == [expected[0] | {"label": "no"}]
    assert "reads pairs of texts: give the second" in refused(paired, "--text", "one")
    assert "line 2 is not a pair of texts" in refused(paired, stdin="a\tb\nc\n")
    (tmp_path / "b.csv").write_text("passage,other\nx,y\n")
    assert "has no columns 'question' and 'passage'" in refused(paired, "--file", tmp_path / "b.csv")


def test_mistakes_are_reported_with_file_and_line(tmp_path: Path, run: Path, attnlab: Any) -> None:
    def file(name: str, content: str) -> Path:
        (tmp_path / name).write_text(content)
        return tmp_path / name

    assert refused(run, "--text", "  ") == "--text is empty: give a text."
    assert "single texts: leave out --pair" in refused(run, "--text", "a", "--pair", "b")
    assert "exclude each other" in refused(run, "--text", "a", "--file", "b.txt")
    assert "nothing to predict" in refused(run, stdin="")
    assert "standard input, line 2 is empty" in refused(run, stdin="good\n\nbad\n")
    assert "gone.txt does not exist" in refused(run, "--file", tmp_path / "gone.txt")
    assert "a.docx is a document: save its rows as" in refused(run, "--file", file("a.docx", "x"))
    assert "b.jsonl, line 2 is broken JSON" in refused(run, "--file", file("b.jsonl", '{"text": "a"}\n{"text"\n'))
    assert "c.jsonl, line 2 has no column 'text'" in refused(
        run, "--file", file("c.jsonl", '{"text": "a"}\n{"b": 1}\n')
    )
    assert "d.csv, line 3: the text in 'text' is empty" in refused(run, "--file", file("d.csv", "id,text\n1,a\n2,\n"))
    assert "no column is clearly the text among 1, 2: name it 'remark'" in refused(
        run, "--file", file("e.csv", "who,what\nx,y\n")
    )
    labels = file("f.tsv", "remark\tlabel\ngood\tpositive\nbad\tfine\n")
    assert "f.tsv, line 3: the label 'fine' in 'label' is not among negative, positive" in refused(
        run, "--file", labels
    )
    assert "does not exist" in refused(tmp_path / "nowhere", "--text", "a")
    assert "does not exist: create it first" in refused(run, "--text", "a", "--out", tmp_path / "no" / "out.txt")
    done: subprocess.CompletedProcess[str] = attnlab("predict", run, "--text", "good", "--device", "tpu")
    assert done.returncode == 2 and done.stderr.startswith("error: --device") and not done.stdout


def test_the_ending_of_the_file_decides_its_format(tmp_path: Path, run: Path) -> None:
    texts = ["good film", '=1+1 good, "really"', "'-1 bad", "[/] $x_$ a\u2028b", "\x1b[31mred"]
    words = [word for text in texts for word in ("--text", text)]
    for name in ("a.csv", "a.tsv", "a.jsonl"):
        assert predict(run, *words, "--out", tmp_path / name).exit_code == 0
    with (tmp_path / "a.csv").open(encoding="utf-8", newline="") as file:
        cells = list(csv.DictReader(file))
    assert [row["text"] for row in cells] == ["good film", '\'=1+1 good, "really"', "''-1 bad", *texts[3:]]
    lines = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text(encoding="utf-8").split("\n")[:-1]]
    assert [row["text"] for row in lines] == texts
    assert [row["predicted"] for row in cells] == [row["predicted"] for row in lines]
    for name in ("a.csv", "a.tsv"):
        again = rows(predict(run, "--file", tmp_path / name, "--json"))
        assert [row["text"] for row in again] == texts
    assert "is a folder" in refused(run, "--text", "a", "--out", "")
    assert "contradict each other" in refused(run, "--text", "a", "--json", "--out", tmp_path / "b.csv")


def test_a_terminal_obeys_no_text(run: Path) -> None:
    for form in ((), ("--json",)):
        done = predict(run, "--text", "\x1b[31mred \x9b2J good", *form)
        assert done.exit_code == 0 and not re.search("[\x1b\x9b]", done.stdout)
    assert rows(done)[0]["text"] == "\x1b[31mred \x9b2J good"


def many(folder: Path, count: int, ending: str = "csv") -> Path:
    """Rows with an id, a text and a label, of which every third is empty."""
    path = folder / f"many.{ending}"
    rows = [
        (str(n), f"the film is {('good', 'bad')[n % 2]}", ("positive", "negative", "")[n % 3]) for n in range(count)
    ]
    if ending == "csv":
        path.write_text("key,text,label\n" + "".join(f"{','.join(row)}\n" for row in rows))
    elif ending == "jsonl":
        path.write_text("".join(json.dumps({"key": k, "text": t, "label": y or None}) + "\n" for k, t, y in rows))
    else:
        pyarrow = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        parquet.write_table(pyarrow.table({"key": [r[0] for r in rows], "text": [r[1] for r in rows]}), path)
    return path


def test_partly_empty_labels_are_scored_where_they_are(tmp_path: Path, run: Path) -> None:
    done = predict(run, "--file", many(tmp_path, 30), "--out", tmp_path / "out.csv")
    assert done.exit_code == 0, done.exception
    assert "n = 20" in done.stdout
    with (tmp_path / "out.csv").open(newline="") as file:
        cells = list(csv.DictReader(file))
    assert [row["label"] for row in cells[:3]] == ["positive", "negative", ""] and len(cells) == 30


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_columns_and_ids_are_kept_in_every_format(tmp_path: Path, run: Path, ending: str) -> None:
    out = tmp_path / f"out.{ending}"
    done = predict(run, "--file", many(tmp_path, 12), "--out", out, "--keep")
    assert done.exit_code == 0, done.exception
    if ending == "parquet":
        from pyarrow import parquet

        found = parquet.read_table(out).to_pylist()
    elif ending == "jsonl":
        found = [json.loads(line) for line in out.read_text().splitlines()]
    else:
        with out.open(newline="") as file:
            found = list(csv.DictReader(file, delimiter="," if ending == "csv" else "\t"))
    assert [row["key"] for row in found] == [str(n) for n in range(12)]
    assert {"key", "text", "label", "predicted", "probability"} <= found[0].keys()


def test_an_existing_file_is_replaced_only_when_asked(tmp_path: Path, run: Path) -> None:
    out = tmp_path / "out.csv"
    out.write_text("mine")
    assert "exists: give another name, or replace it with --overwrite" in refused(run, "--text", "a", "--out", out)
    assert out.read_text() == "mine"
    assert predict(run, "--text", "good", "--out", out, "--overwrite").exit_code == 0
    assert "predicted" in out.read_text()
    assert "expected a file that ends in .csv" in refused(run, "--text", "a", "--out", tmp_path / "out.xlsx")
    assert sorted(os.listdir(tmp_path)) == ["out.csv"]


def test_what_was_stopped_is_continued(tmp_path: Path, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from attnlab.evaluation import predicting
    from attnlab.models.pretrained.tuned import TunedClassifier

    monkeypatch.setattr(predicting, "PART", 10)
    file, out = many(tmp_path, 45), tmp_path / "out.jsonl"
    assert predict(run, "--file", file, "--out", tmp_path / "whole.jsonl").exit_code == 0
    encode, read = TunedClassifier.encode, list[int]()

    def stopping(self: TunedClassifier, examples: Any, where: str = "") -> Any:
        read.append(len(examples))
        if sum(read) > 30:
            raise KeyboardInterrupt
        return encode(self, examples, where)

    with monkeypatch.context() as patched:
        patched.setattr(TunedClassifier, "encode", stopping)
        predict(run, "--file", file, "--out", out)
    assert not out.exists() and (tmp_path / ".out.jsonl.partial").is_dir()
    done = predict(run, "--file", file, "--out", out)
    assert "continued after the 30 rows" in done.stderr.replace("\n", " ")
    assert out.read_text() == (tmp_path / "whole.jsonl").read_text()
    assert not (tmp_path / ".out.jsonl.partial").exists()


def test_parts_of_other_predictions_are_not_continued(tmp_path: Path, run: Path) -> None:
    (tmp_path / ".out.jsonl.partial").mkdir()
    (tmp_path / ".out.jsonl.partial" / "about.json").write_text('{"file": "another"}')
    (tmp_path / ".out.jsonl.partial" / "00000.jsonl").write_text('{"rows": 5}\n')
    done = predict(run, "--file", many(tmp_path, 6), "--out", tmp_path / "out.jsonl")
    assert "a part of other predictions: it is begun anew" in done.stderr.replace("\n", " ")
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 6
