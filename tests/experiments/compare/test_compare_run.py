"""A comparison from end to end: honest tables, marks, rows for what fails, and resuming after a stop."""

from __future__ import annotations

import html
import json
import math
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from attnlab.base.errors import RunFailed, UserError
from attnlab.base.interrupts import Interrupted
from attnlab.base.trust import allow
from attnlab.config.language import MeasuresSection
from attnlab.experiments import experiment
from attnlab.experiments.compare import gather, resume_comparison, run_comparison
from attnlab.experiments.config import LanguageComparison
from attnlab.experiments.experiment import COMPARISON
from attnlab.experiments.results import ComparisonResults
from attnlab.experiments.views.language import LanguageView, at_length, length_losses
from attnlab.experiments.views.view import verdicts
from attnlab.jobs.samples import compared_samples
from attnlab.jobs.subruns import run_subrun
from attnlab.report.page import write_page
from attnlab.runs import read_record, read_status

VIEW = LanguageView("language")
Small = Callable[..., LanguageComparison]

BROKEN = '''
import torch

class Broken(torch.nn.Module):
    """Fine until it is trained: the third step comes to nothing."""

    def __init__(self, shape):
        super().__init__()
        self.line, self.steps = torch.nn.Linear(shape.width, shape.width), 0

    def forward(self, x):
        self.steps += self.training
        return self.line(x) * (float("nan") if self.steps > 2 else 1.0)
'''


@pytest.fixture(scope="module")
def compared(small: Small, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """vanilla, one that sees the future, one that fails; two seeds each."""
    folder = tmp_path_factory.mktemp("compared")
    (folder / "broken.py").write_text(BROKEN, encoding="utf-8")
    allow(folder / "broken.py")
    named = {"attention": f"vanilla,naive-mask,linear,{folder / 'broken.py'}", "seeds": 2}
    config = small(compare=named, optimizer={"lr": 0.02}, budget={"steps": 24})
    return run_comparison(config, folder / "comparison")


@pytest.fixture(scope="module")
def results(compared: Path) -> ComparisonResults:
    return gather(compared, COMPARISON.saved(compared))


@pytest.fixture(scope="module")
def found(compared: Path) -> dict[str, Any]:
    rows = json.loads((compared / "results.json").read_text(encoding="utf-8"))["variants"]
    return {row["label"]: row for row in rows}


def test_a_variant_that_fails_is_a_row_with_its_reason(compared: Path, found: dict[str, Any]) -> None:
    assert "the loss is nan at step 3" in found["broken"]["failures"]["0"]
    assert set(found["broken"]["failures"]) == {"0", "1"} and "dev_loss" not in found["broken"]
    page = (compared / "report.html").read_text(encoding="utf-8")
    assert "the loss is nan at step 3" in page
    assert read_status(compared)["state"] == "finished"


def test_the_others_go_on(found: dict[str, Any]) -> None:
    for label in ("vanilla", "linear", "naive-mask"):
        for name in ("train_loss", "dev_loss", "prefix_loss", "tokens_per_second", "step_memory_mib"):
            measure = found[label][name]
            assert measure["runs"] == 2 and math.isfinite(measure["mean"]) and len(measure["interval"]) == 2
            assert set(measure["by_seed"]) == {"0", "1"}
    assert found["vanilla"]["parameters"] == found["naive-mask"]["parameters"] > 0


def test_what_sees_the_future_is_marked_and_never_ranked(results: ComparisonResults, found: dict[str, Any]) -> None:
    assert "normalises" in found["naive-mask"]["sees_future"] and found["vanilla"]["sees_future"] is None
    assert found["naive-mask"]["difference"] is None and found["linear"]["difference"]["runs"] == 2
    order = [row.label for row in results.ordered]
    assert order.index("naive-mask") == 2 and order[3] == "broken"  # after all that can be compared
    row = next(row for row in VIEW.table(results).rows if row[0].startswith("naive-mask"))
    assert row[0].endswith("†") and "not comparable" in row[5]
    assert "not comparable" in VIEW.notes(results)[0] and "the sum runs over all positions" in VIEW.notes(results)[1]


def test_hiding_the_future_changes_nothing_for_a_causal_model(found: dict[str, Any]) -> None:
    for label in ("vanilla", "linear"):
        assert abs(found[label]["prefix_gap"]["mean"]) < 1e-5
    assert found["naive-mask"]["prefix_gap"]["mean"] > 1e-4


def test_runs_of_a_seed_saw_the_same_data(compared: Path) -> None:
    records = [read_record(compared / "cells" / label / "seed-1") for label in ("vanilla", "linear")]
    assert records[0]["data"] == records[1]["data"]
    assert records[0]["training"]["tokens"] == records[1]["training"]["tokens"] > 0


def test_the_report_stands_alone(compared: Path) -> None:
    page = (compared / "report.html").read_text(encoding="utf-8")
    assert not re.search(r'(src|href)="(?!data:)', page)
    for heading in ("What came out", "The way there", "Who sees the future", "What it cost", "Read with care"):
        assert f"<h2>{heading}</h2>" in page


def test_every_variant_writes_after_the_same_prompt(compared: Path, found: dict[str, Any], text: Path) -> None:
    samples = {label: found[label]["samples"]["0"] for label in ("vanilla", "linear", "naive-mask")}
    assert {(each["prompt"], each["seed"]) for each in samples.values()} == {(samples["vanilla"]["prompt"], 0)}
    assert samples["vanilla"]["prompt"] in text.read_text(encoding="utf-8")
    assert len({each["samples"][0]["text"] for each in samples.values()}) == 3
    assert found["broken"]["samples"] == {}
    page = html.unescape((compared / "report.html").read_text(encoding="utf-8"))
    passage = page.partition("<h2>What they write</h2>")[2].partition("</pre>")[0]
    assert "=== naive-mask †, seed 0 ===" in passage and "=== vanilla, seed 0 ===" in passage
    for each in samples.values():
        last = each["samples"][-1]["text"].split("\n")[1]  # a whole line, shorter than one of the page
        assert f"\n{last}\n" in passage


def test_samples_are_text_on_the_page_and_can_be_left_out(tmp_path: Path) -> None:
    paths = {0: tmp_path / "a", 1: tmp_path / "b"}
    for path in paths.values():
        path.mkdir()
    measures = MeasuresSection()
    assert compared_samples({"x": paths}, measures) is None
    row = {"prompt": "<b>", "seed": 0, "samples": [{"text": "<script>\x1b[31m " + "long " * 60, "log_probability": -1}]}
    (tmp_path / "b" / "samples.json").write_text(json.dumps(row), encoding="utf-8")
    passage = compared_samples({"x": paths}, measures)
    assert passage is not None and "=== x, seed 1 ===" in passage.printed and "\\x1b[31m" in passage.printed
    assert max(map(len, passage.printed.splitlines())) <= 100
    write_page(tmp_path / "page.html", "t", "l", [passage])
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "&lt;script&gt;" in page and "<script>" not in page and "\x1b" not in page


def test_more_seeds_can_be_added_and_nothing_is_run_twice(compared: Path) -> None:
    before = {path: path.read_bytes() for path in compared.glob("cells/*/seed-[01]/metrics.jsonl")}
    config = COMPARISON.saved(compared)
    config.compare.seeds = 3
    resume_comparison(compared, config)
    assert (compared / "cells" / "linear" / "seed-2" / "report.html").exists()
    kept = {path: before[path] for path in before if "broken" not in str(path)}
    assert len(kept) == 6 and all(path.read_bytes() == content for path, content in kept.items())


def test_a_signal_before_the_steps_of_a_cell_stops_that_cell(
    small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes while the second cell is made ready; that cell is saved after one step, not trained to its end."""
    config, path, begun = small(compare={"attention": "linear,vanilla", "seeds": 1}), tmp_path / "stopped", []

    def signalled(*args: Any) -> None:
        begun.append(args)
        if len(begun) == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        run_subrun(*args)

    monkeypatch.setattr(experiment, "run_subrun", signalled)
    with pytest.raises(Interrupted):
        run_comparison(config, path)
    states = {name: read_status(path / "cells" / name / "seed-0") for name in ("linear", "vanilla")}
    assert [state["state"] for state in states.values()] == ["finished", "interrupted"]
    assert len(list((path / "cells" / "vanilla" / "seed-0" / "checkpoints").glob("step-*1"))) == 1
    resume_comparison(path, COMPARISON.saved(path))
    assert read_status(path)["state"] == "finished"
    assert len(list(path.rglob("checkpoints/*"))) == 2 and not list(path.rglob("optimizer.safetensors"))


def test_one_seed_gives_no_interval_and_no_order(small: Small, tmp_path: Path) -> None:
    config = small(compare={"attention": "linear,vanilla", "seeds": 1}, budget={"steps": 4})
    path = run_comparison(config, tmp_path / "one")
    one = gather(path, config)
    assert not one.ranked and [row.label for row in one.ordered] == ["linear", "vanilla"]
    assert "no interval" in verdicts(one)[0] and "not ranked" in verdicts(one)[0]
    assert all(row.mean("dev_loss").interval is None for row in one.rows)
    assert "±" not in "".join(cell for row in VIEW.table(one).rows for cell in row)


def test_learned_positions_end_with_their_table_and_others_go_on(small: Small, tmp_path: Path) -> None:
    named = {"positions": "learned,alibi", "seeds": 1}
    config = small(compare=named, budget={"steps": 4}, measures={"test_contexts": "16,48"})
    path = run_comparison(config, tmp_path / "longer")
    rows = {row.label: row for row in gather(path, config).rows}
    assert at_length(rows["learned"], 16).count == 1 and at_length(rows["learned"], 48).count == 0
    assert at_length(rows["alibi"], 48).count == 1 and len(length_losses(rows["alibi"], [16, 48]).by_position) == 48
    assert "a table of 16 positions" in (path / "report.html").read_text(encoding="utf-8")
    assert (path / "figures" / "lengths.png").stat().st_size > 0


def test_a_table_longer_than_the_training_blocks_can_be_read(small: Small, tmp_path: Path) -> None:
    config = small(
        compare={"positions": "learned", "seeds": 1},
        budget={"steps": 2},
        model={"context": 48},
        data={"train_context": 16},
        measures={"test_contexts": "16,48"},
    )
    path = run_comparison(config, tmp_path / "untrained")
    (row,) = gather(path, config).rows
    assert at_length(row, 48).count == 1
    assert read_record(path / "cells" / "vanilla" / "seed-0")["training"]["tokens"] == 2 * 4 * 16  # two batches of four


def test_a_budget_in_seconds_is_the_same_number_of_steps_for_all_seeds(small: Small, tmp_path: Path) -> None:
    config = small(compare={"seeds": 2}, budget={"steps": None, "seconds": 0.05})
    path = run_comparison(config, tmp_path / "timed")
    steps = {read_record(path / "cells" / "vanilla" / f"seed-{seed}")["steps"] for seed in (0, 1)}
    assert steps == {read_record(path)["variants"]["vanilla"]["steps"]} and steps.pop() >= 1


def test_nothing_is_written_when_nothing_can_run(small: Small, tmp_path: Path) -> None:
    wrong = (
        (small(compare={"attention": "vanila"}), "did you mean 'vanilla'"),
        (small(compare={"positions": "absolute"}), "unknown positions"),
        (small(batch={"size": "auto"}), "its own batch size"),
        (small(model={"heads": 3}), "cannot be split into 3 heads"),
        (small(model={"context": 4096}), "for one block"),
        (small(data={"corpus": "nowhere.txt"}), "does not exist"),
        (small(data={"train_context": 32}), "longer than the context"),
    )
    for config, sentence in wrong:
        with pytest.raises(UserError, match=re.escape(sentence)):
            run_comparison(config, tmp_path / "never")
        assert not (tmp_path / "never").exists()


def test_when_every_variant_fails_that_is_said(small: Small, tmp_path: Path) -> None:
    config = small(compare={"attention": "aft-simple", "positions": "alibi"})
    with pytest.raises(RunFailed, match="does not support alibi positions"):
        run_comparison(config, tmp_path / "none")
    assert read_status(tmp_path / "none")["state"] == "failed"
