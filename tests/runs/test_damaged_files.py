"""Files of a run with other content than the lab writes: a row, a line passed over, or one sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from attnlab.base.errors import UserError
from attnlab.runs import MetricsWriter, RunFolder, read_config, read_metrics, read_record, series
from attnlab.runs.listing import DAMAGED, find_runs, summarise
from attnlab.runs.metrics import cut_back, last_metrics, lost_metrics
from attnlab.runs.settings import edited_settings, must_be_unchanged, trained_config

SETTINGS: dict[str, Any] = {"optimizer": {"lr": 0.1, "clip": None}, "training": {"steps": 40, "keep": 2}}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    made = RunFolder.create(
        tmp_path / "run", "pretrain", SETTINGS, 0, False, {"vocabulary.json": '["a", "b"]'}, settings=SETTINGS
    )
    made.close()
    return made.path


def change(file: Path, **values: object) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        ({"kind": 5}, "kind: input should be a valid string"),
        ({"started": "yesterday"}, "started"),
        ({"training": {"step": "x"}}, "training.step"),
        ({"results": []}, "results"),
        ({"changes": "none"}, "changes"),
        ({"machine": {"devices": None}}, "machine.devices"),
        ({"steps": 2.5}, "steps"),
        ("[1, 2]", "expected a JSON object"),
        ("[" * 100_000, "nested too deeply"),
        ('{"kind": "pre', "cannot be read"),
        ("{}", "kind is missing"),
    ],
)
def test_one_bad_folder_is_a_row_beside_the_others(run: Path, damage: dict[str, object] | str, sentence: str) -> None:
    RunFolder.create(run.parent / "good", "pretrain", {}, 0).close()
    if isinstance(damage, str):
        (run / "run.json").write_text(damage)
    else:
        change(run / "run.json", **damage)
    with pytest.raises(UserError, match=r"run\.json"):
        read_record(run)
    rows = {path.name: summarise(path) for path in find_runs(run.parent)}
    assert rows["run"].state == DAMAGED and sentence in rows["run"].reason
    assert rows["good"].kind == "pretrain"


def test_a_record_without_what_later_versions_write_is_read(run: Path) -> None:
    (run / "run.json").write_text('{"kind": "pretrain", "new": {"a": 1}}')
    record = read_record(run)
    assert record["started"] == "" and record["machine"]["devices"] == [] and record["new"] == {"a": 1}
    assert summarise(run).kind == "pretrain"


def test_metrics_that_are_no_measurements_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    lines = ["[]", '{"step": "x"}', '{"loss": 1}', '{"step": 2, "seconds": []}', "[" * 10_000, "\x00\x00", ""]
    good = '{"step": 3, "split": "train", "loss": 0.5}'
    path.write_text("\n".join([*lines, good, '{"step": 4, "split": "train", "loss": "low"}', '{"step": 5, "lo']))
    assert [line["step"] for line in read_metrics(path)] == [3, 4]
    assert series(path, "train", "loss") == ([3], [0.5]) and last_metrics(path)["step"] == 4
    path.unlink()
    path.mkdir()
    for read in (last_metrics, lambda path: list(read_metrics(path))):
        with pytest.raises(UserError, match=r"metrics\.jsonl cannot be read"):
            read(path)


def test_metrics_that_were_lost_are_noticed(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    writer = MetricsWriter(path)
    writer.write(step=1, loss=2.0)
    position = writer.position()
    writer.close()
    assert lost_metrics(path, position) == "" and lost_metrics(path, 0) == ""
    path.write_text(path.read_text()[:-4])
    assert f"of the {position} bytes" in lost_metrics(path, position)
    cut_back(path, position)
    MetricsWriter(path).write(step=2, loss=1.0)
    assert [line["step"] for line in read_metrics(path)] == [2], "half a line does not spoil the next"
    path.write_text("x" * 100)
    assert "other lines" in lost_metrics(path, position)
    path.unlink()
    assert "has 0 of" in lost_metrics(path, position)


def test_a_setting_that_decides_the_weights_cannot_be_edited(run: Path) -> None:
    file = run / "config.yaml"
    text = file.read_text()
    file.write_text(f"# a remark\n{text}")
    assert trained_config(run) == SETTINGS
    file.write_text(text.replace("lr: 0.1", "lr: 0.2"))
    with pytest.raises(UserError, match=r"optimizer.lr is 0.2, but the run started with 0.1"):
        trained_config(run)
    file.write_text(text.replace("clip: null\n", "clip: 1.0\n"))
    with pytest.raises(UserError, match=r"optimizer.clip is 1.0, but the run started with None"):
        trained_config(run)


@pytest.mark.parametrize(
    ("old", "new", "allowed"),
    [("keep: 2", "keep: 5", True), ("steps: 40", "steps: 50", True), ("steps: 40", "steps: 30", False)],
)
def test_what_may_change_is_found_to_be_recorded(run: Path, old: str, new: str, allowed: bool) -> None:
    file = run / "config.yaml"
    file.write_text(file.read_text().replace(old, new))
    assert len(edited_settings(run)) == 1
    if allowed:
        trained_config(run)
    else:
        with pytest.raises(UserError, match=r"training\.steps is 30"):
            trained_config(run)


def test_a_missing_configuration_is_that_of_the_record(run: Path) -> None:
    (run / "config.yaml").unlink()
    assert read_config(run) == SETTINGS
    RunFolder.reopen(run).close()
    assert (run / "config.yaml").is_file() and trained_config(run) == SETTINGS
    (run / "config.yaml").write_text("training: 5\n")
    with pytest.raises(UserError, match="training is damaged"):
        read_config(run)
    (run / "config.yaml").write_text("a: [")
    with pytest.raises(UserError, match=r"invalid YAML.*Delete it: run.json has the same settings"):
        read_config(run)


def test_a_permuted_vocabulary_is_refused_and_its_own_is_not(run: Path) -> None:
    file = must_be_unchanged(run, "vocabulary.json")
    file.write_text('["b", "a"]')
    with pytest.raises(UserError, match="changed since the run was trained with it"):
        must_be_unchanged(run, "vocabulary.json")
    file.unlink()
    with pytest.raises(UserError, match="is missing"):
        must_be_unchanged(run, "vocabulary.json")
