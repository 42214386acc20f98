"""Data sets of the hub: which files are read, what their labels mean, what is left out; against a stand-in."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from attnlab.base.errors import UserError
from attnlab.cli import app
from attnlab.data.tasks.catalog import load_labelled
from attnlab.data.tasks.tables import ColumnRequest

NAMES = ["negative", "positive"]


def rows(split: str, count: int = 12, hidden: bool = False) -> list[dict[str, object]]:
    return [{"sentence": f"{split} {n}", "label": -1 if hidden else n % 2, "idx": n} for n in range(count)]


def parquet(rows: list[dict[str, object]], names: list[str] | None = None) -> bytes:
    """As the `datasets` library writes it: names of classes in the schema."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    table = pyarrow.Table.from_pylist(rows)
    if names:
        features = {"label": {"names": names, "_type": "ClassLabel"}, "sentence": {"_type": "Value", "dtype": "string"}}
        table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    file = io.BytesIO()
    write_table(table, file)
    return file.getvalue()


def jsonl(rows: list[dict[str, object]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


@pytest.fixture
def glue(hub):
    """Two configurations told by the card, one in parts; test labels hidden."""
    card = """---
configs:
- config_name: sst2
  data_files:
  - {split: train, path: sst2/train-*}
  - {split: validation, path: sst2/validation-*}
  - {split: test, path: sst2/test-*}
- config_name: mnli
  data_files:
  - {split: train, path: mnli/train-*}
  - {split: validation_matched, path: mnli/validation_matched-*}
  - {split: validation_mismatched, path: mnli/validation_mismatched-*}
---
"""
    train = rows("train", 30)
    pair = [{"premise": f"p {n}", "hypothesis": f"h {n}", "label": n % 3} for n in range(30)]
    three = ["entailment", "neutral", "contradiction"]
    hub.add(
        "nyu-mll/glue",
        {
            "README.md": card.encode(),
            "glue.py": b"raise SystemExit('this must never run')",
            "sst2/train-00000-of-00002.parquet": parquet(train[:20], NAMES),
            "sst2/train-00001-of-00002.parquet": parquet(train[20:], NAMES),
            "sst2/validation-00000-of-00001.parquet": parquet(rows("dev"), NAMES),
            "sst2/test-00000-of-00001.parquet": parquet(rows("test", hidden=True), NAMES),
            "mnli/train-00000-of-00001.parquet": parquet([*pair[1:], pair[0] | {"label": -1}], three),
            "mnli/validation_matched-00000-of-00001.parquet": parquet(pair[:12], three),
            "mnli/validation_mismatched-00000-of-00001.parquet": parquet(pair[12:], three),
        },
        "dataset",
    )
    return hub


def test_a_configuration_is_read_from_its_files_and_hidden_labels_are_left_out(glue) -> None:
    data = load_labelled("hub:nyu-mll/glue/sst2")
    assert data.classes == ("negative", "positive")
    assert [example.text for example in data.splits["dev"]] == [f"dev {n}" for n in range(12)]
    assert data.splits["dev"][1].label == 1
    both = {example.text for split in ("train", "test") for example in data.splits[split]}
    assert both == {f"train {n}" for n in range(30)}  # both parts; test is made from the training rows
    assert any("labels of test are not published" in note for note in data.notes)
    assert set(data.facts()["files"]) == {"train 1", "train 2", "dev"}
    assert "glue.py" not in glue.asked and not any("mnli" in name for name in glue.asked)


def test_pairs_splits_by_their_first_word_and_rows_without_a_label(glue) -> None:
    data = load_labelled("hub:nyu-mll/glue/mnli")
    assert data.paired
    assert data.classes == ("entailment", "neutral", "contradiction")
    said = " ".join(data.notes)
    assert "dev is the split 'validation_matched'" in said
    assert "not used: validation_mismatched" in said
    assert "1 rows of train have no label" in said


def test_a_set_is_read_from_the_cache_when_the_hub_is_gone(glue) -> None:
    first = load_labelled("hub:nyu-mll/glue/sst2")
    glue.stop()
    again = load_labelled("hub:nyu-mll/glue/sst2")
    assert again.splits == first.splits
    assert any("using the files of an earlier download" in note for note in again.notes)
    with pytest.raises(UserError, match="attnlab data get hub:nyu-mll/glue/mnli --out FOLDER"):
        load_labelled("hub:nyu-mll/glue/mnli")


def test_the_hubs_own_copy_stands_in_for_a_loading_script(hub) -> None:
    script = {"boolq.py": b"raise SystemExit", "README.md": b"---\nlicense: mit\n---\n"}
    hub.add("google/boolq", script, "dataset")
    copy = {f"default/{split}/0000.parquet": parquet(rows(split)) for split in ("train", "validation")}
    hub.add("google/boolq", copy, "dataset", "refs/convert/parquet")
    data = load_labelled("google/boolq")
    assert data.classes == ("0", "1")
    assert len(data.splits["dev"]) == 12
    assert any("Parquet copy" in note for note in data.notes)
    assert "boolq.py" not in hub.asked
    hub.stop()
    assert load_labelled("google/boolq").splits == data.splits


@pytest.mark.parametrize(
    "files",
    [
        {"train.csv": b"text,label\n" + b"".join(b"t %d,%d\n" % (n, n % 2) for n in range(12))},
        {"data/train.jsonl": jsonl(rows("train")), "data/test.jsonl": jsonl(rows("test")), "other.csv": b"a,b\n1,2\n"},
        {"train/part.json": json.dumps(rows("train")).encode(), "dataset_infos.json": b"{}"},
        {"everything.jsonl": jsonl(rows("train"))},
    ],
)
def test_files_are_found_by_their_names_and_classes_in_the_card(hub, files: dict[str, bytes]) -> None:
    info = "{features: [{name: label, dtype: {class_label: {names: {'0': 'no', '1': 'True'}}}}]}"
    hub.add("a/b", files | {"README.md": f"---\ndataset_info: {info}\n---\n".encode()}, "dataset")
    data = load_labelled("hub:a/b")
    assert sum(map(len, data.splits.values())) == 12 * (2 if "data/test.jsonl" in files else 1)
    assert data.classes == ("no", "true")


def test_a_set_becomes_files_that_read_the_same(glue, tmp_path: Path) -> None:
    out = tmp_path / "sst2"
    done = CliRunner().invoke(app, ["data", "get", "hub:nyu-mll/glue/sst2", "--out", str(out)])
    assert done.exit_code == 0, done.exception
    assert "30 rows" in done.stdout and "not published" in done.stderr
    assert {path.name for path in out.iterdir()} == {"train.jsonl", "dev.jsonl", "README.md"}
    assert load_labelled(out).splits == load_labelled("hub:nyu-mll/glue/sst2").splits
    assert json.loads((out / "train.jsonl").read_text().splitlines()[1]) == {
        "sentence": "train 1",
        "label": "positive",
        "idx": 1,
    }
    shown = CliRunner().invoke(app, ["data", "show", "nyu-mll/glue", "--json"])
    assert "several configurations (sst2, mnli)" in str(shown.exception)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("hub:nyu-mll/glue", "several configurations"),
        ("hub:nyu-mll/glue/sst", "did you mean 'sst2'"),
        ("hub:nobody/nothing", "has no public dataset nobody/nothing"),
        ("nobody/nothing", "is neither a task nor a path here"),
        ("hub:glue", "give hub:owner/name"),
        ("hub:a/../b", "give hub:owner/name"),
        ("data/reviews.csv", "neither a task nor a file"),
        ("hub:only/script", "loading scripts are never run"),
        ("hub:only/test", "must be named train"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(glue, source: str, expected: str) -> None:
    glue.add("only/script", {"script.py": b"raise SystemExit"}, "dataset")
    card = b"---\nconfigs: [{data_files: {test: test.csv}}]\n---\n"
    glue.add("only/test", {"README.md": card, "test.csv": b"a,b"}, "dataset")
    with pytest.raises(UserError, match=expected) as found:
        load_labelled(source)
    assert "\n" not in str(found.value)


def test_names_that_are_numbers_are_places_in_parquet_and_names_in_a_csv(hub) -> None:
    stars = ["1", "2"]
    hub.add("a/stars", {"train.parquet": parquet(rows("train"), stars)}, "dataset")
    info = "{features: [{name: label, dtype: {class_label: {names: ['1', '2']}}}]}"
    lines = b"".join(b"t %d,%d\n" % (n, n % 2 + 1) for n in range(12))
    card = f"---\ndataset_info: {info}\n---\n".encode()
    hub.add("a/lines", {"README.md": card, "train.csv": b"text,label\n" + lines}, "dataset")
    for name in ("hub:a/stars", "hub:a/lines"):
        data = load_labelled(name)
        assert data.classes == ("1", "2")
        assert all(example.label == int(example.text.split()[1]) % 2 for example in data.splits["train"])


def test_a_hub_out_of_order_is_one_sentence(hub) -> None:
    hub.failing = True
    with pytest.raises(UserError, match="answers with error 500") as found:
        load_labelled("hub:a/b")
    assert "\n" not in str(found.value)


def test_a_set_has_splits_of_its_own_and_classes_can_be_renamed(glue) -> None:
    with pytest.raises(UserError, match="leave out --dev"):
        load_labelled("hub:nyu-mll/glue/sst2", dev=Path("dev.tsv"))
    assert (
        load_labelled("hub:nyu-mll/glue/mnli", ColumnRequest(classes=("yes", "perhaps", "no"))).classes[1] == "perhaps"
    )
    data = load_labelled("hub:nyu-mll/glue/sst2", ColumnRequest(classes=("bad", "good")))
    assert data.classes == ("bad", "good")
    assert data.splits["dev"][1].label == 1
