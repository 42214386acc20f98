"""Tasks by name: their splits, where they are looked for, and the real files where there are some."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from attnlab.base.errors import UserError
from attnlab.config.classify import TextsSection
from attnlab.data.tasks.catalog import BOOLQ_ALL, TASKS, load_sentiment, load_task, read_texts
from attnlab.data.tasks.labelled import LabelledSet

DATA = Path(os.environ.get("ATTNLAB_DATA", "no data"))


def boolq(folder: Path, rows: int) -> Path:
    (folder / "boolq").mkdir()
    for name, count in (("train", rows), ("dev", 10)):
        lines = (
            json.dumps({"question": f"{name} {n}", "title": "", "answer": n % 3 > 0, "passage": "p"}) + "\n"
            for n in range(count)
        )
        (folder / "boolq" / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    return folder


def test_the_whole_boolq_is_parted_as_the_course_does(tmp_path: Path) -> None:
    data = load_task("boolq", boolq(tmp_path, BOOLQ_ALL))
    assert [example.text for example in data.splits["train"]] == [f"train {n}" for n in range(8000)]
    assert [example.text for example in data.splits["test"]] == [f"train {n}" for n in range(8000, BOOLQ_ALL)]
    assert len(data.splits["dev"]) == 10
    assert data.classes[data.splits["train"][1].label] == "yes"


def test_a_part_of_boolq_keeps_the_proportion_and_says_so(tmp_path: Path) -> None:
    data = load_task("boolq", boolq(tmp_path, 900))
    assert len(data.splits["test"]) == pytest.approx(900 * 1427 / 9427, abs=2)
    assert any("not the published one" in note and "seed 0" in note for note in data.facts()["notes"])


def test_yelp_has_newlines_and_five_classes(tmp_path: Path) -> None:
    (tmp_path / "yelp").mkdir()
    rows = "".join(f'"{n % 5 + 1}","Said ""no"".\\nLeft, number {n}"\n' for n in range(20))
    for name in ("train", "valid", "test"):
        (tmp_path / "yelp" / f"{name}.csv").write_text(rows, encoding="utf-8")
    first = load_task("yelp", tmp_path).splits["train"][0]
    assert first.text == 'Said "no".\nLeft, number 0'
    assert first.label == 0


def sst2(folder: Path, test: str | None = None) -> Path:
    """Files of the form of SST-2, and a test.tsv of this content."""
    (folder / "sst2").mkdir()
    for name, count in (("train", 100), ("dev", 10)):
        lines = "".join(f"{name} {n}\t{n % 2}\n" for n in range(count))
        (folder / "sst2" / f"{name}.tsv").write_text(f"sentence\tlabel\n{lines}", encoding="utf-8")
    if test is not None:
        (folder / "sst2" / "test.tsv").write_text(test, encoding="utf-8")
    return folder


def sizes(data: LabelledSet) -> dict[str, int]:
    return {split: len(examples) for split, examples in data.splits.items()}


def test_a_labelled_test_file_of_sst2_is_used_as_it_is(tmp_path: Path) -> None:
    lines = "".join(f"held out {n}\t{n % 2}\n" for n in range(30))
    data = load_task("sst2", sst2(tmp_path, f"sentence\tlabel\n{lines}"))
    assert sizes(data) == {"train": 100, "dev": 10, "test": 30}
    assert [example.text for example in data.splits["test"]] == [f"held out {n}" for n in range(30)]
    assert data.facts()["files"]["test"]["path"] == str(tmp_path / "sst2" / "test.tsv")
    assert not any("taken from" in note for note in data.notes)


UNLABELLED = {
    "GLUE's form": "index\tsentence\n0\tone\n1\ttwo\n",
    "the hub's form": "sentence\tlabel\none\t-1\ntwo\t-1\n",
    "an empty column": "sentence\tlabel\none\t\ntwo\t\n",
}


@pytest.mark.parametrize("form", UNLABELLED)
def test_a_test_file_without_labels_is_left_out_with_a_note(tmp_path: Path, form: str) -> None:
    data = load_task("sst2", sst2(tmp_path, UNLABELLED[form]))
    assert sizes(data) == {"train": 90, "dev": 10, "test": 10}
    assert any("test.tsv has no labels in 'label': it is not used" in note for note in data.notes)
    assert any("test (10) taken from the 100 training rows" in note for note in data.notes)
    assert "test" not in data.files


def test_a_fault_in_the_test_file_of_sst2_is_not_passed_over(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"test\.tsv, line 3: the label '7' is not among"):
        load_task("sst2", sst2(tmp_path, "sentence\tlabel\none\t1\ntwo\t7\n"))


def test_fewer_examples_of_dev_and_test_are_a_fixed_sample_of_every_class() -> None:
    whole, fewer = read_texts(TextsSection()), read_texts(TextsSection(eval_examples=30))
    assert fewer.splits["train"] == whole.splits["train"]
    for split in ("dev", "test"):
        assert fewer.counts(split) == [15, 15] and set(fewer.splits[split]) < set(whole.splits[split])
    assert read_texts(TextsSection(eval_examples=30)).splits == fewer.splits
    assert "dev is 30 of its 120 examples." in fewer.notes
    assert read_texts(TextsSection(eval_examples=500)) == whole


@pytest.mark.parametrize("name", TASKS)
def test_a_task_that_is_not_there_says_where_it_looked(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATTNLAB_DATA", str(tmp_path))
    with pytest.raises(UserError, match="does not exist") as raised:
        load_task(name)
    assert str(tmp_path / name / TASKS[name].files[0]) in str(raised.value)
    monkeypatch.delenv("ATTNLAB_DATA")
    with pytest.raises(UserError, match="--data-folder or ATTNLAB_DATA"):
        load_task(name)


def test_the_embedded_set_is_the_same_by_name() -> None:
    data = load_task("sentiment")
    for split, examples in load_sentiment().items():
        assert [(e.text, data.classes[e.label]) for e in data.splits[split]] == [tuple(e) for e in examples]


@pytest.mark.skipif(not DATA.is_dir(), reason="ATTNLAB_DATA is not set")
@pytest.mark.parametrize(("name", "rows", "dev"), [("boolq", 1886, 3270), ("sst2", 6920, 872), ("yelp", 3200, 500)])
def test_the_real_files_have_the_sizes_of_their_readme(name: str, rows: int, dev: int) -> None:
    if not (DATA / name).is_dir():
        pytest.skip(f"{name} is not in ATTNLAB_DATA")
    data = load_task(name)
    made = 0 if "test" in data.files else len(data.splits["test"])
    assert len(data.splits["train"]) + made == rows
    assert len(data.splits["dev"]) == dev
    if name == "boolq":
        assert data.counts("dev")[1] / dev == pytest.approx(0.6217, abs=1e-4)  # published: always "yes"
    if name == "yelp":
        assert not any("\\n" in example.text for example in data.splits["train"])
