"""Any job can be compared over any of its settings: by what it says it is judged by, chosen on dev."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from attnlab.base.errors import UserError
from attnlab.cli.compare import REQUEST
from attnlab.config import check
from attnlab.experiments.cells import Cell, cells, variants
from attnlab.experiments.compare import gather, job_config, resume_comparison, run_comparison, view_of
from attnlab.experiments.compare_page import numeric_axis
from attnlab.experiments.config import LanguageComparison, comparison_of
from attnlab.experiments.experiment import COMPARISON
from attnlab.experiments.results import ComparisonResults, ExperimentRow
from attnlab.experiments.views.view import verdicts
from attnlab.runs.settings import flat

CHAIN: dict[str, Any] = {
    "data": {"tokens": "words"},
    "world": {"people": 16, "places": 4, "documents": 2, "name_first": True},
    "model": {"layers": 1, "heads": 1, "width": 8, "context": 48},
    "pretrain": {"objective": {"name": "causal"}, "training": {"steps": 2}},
    "finetune": {"training": {"steps": 2}},
    "machine": {"device": "cpu", "precision": "fp32", "threads": 1},
}


def comparison(**compare: Any) -> Any:
    return check(comparison_of("knowledge"), CHAIN | {"compare": {"job": "knowledge"} | compare})


def results_of(config: Any, rows: list[ExperimentRow]) -> ComparisonResults:
    return ComparisonResults(config, config.compare.job, rows, {}, {})


def test_axes_and_changes_name_settings_of_the_job() -> None:
    config = comparison(vary="world.paraphrases=1,2; model.width=8,16", changes="qk-norm=true", seeds=2)
    assert [variant.label for variant in variants(config)][:3] == [
        "paraphrases=1 + width=8 + as it is",
        "paraphrases=1 + width=8 + qk-norm=true",
        "paraphrases=1 + width=16 + as it is",
    ]
    assert len(variants(config)) == 8
    rows = [flat(job_config(config, cell, {}).model_dump()) for cell in cells(config)]
    assert {name for name in rows[0] if rows[0][name] != rows[7][name]} == {
        "world.paraphrases",
        "model.width",
        "model.qk_norm",
    }
    assert {name for name in rows[0] if rows[0][name] != rows[8][name]} == {"seed"}


def test_a_recipe_may_write_the_axes_as_a_mapping() -> None:
    for vary in ({"world.paraphrases": [1, 2]}, {"world": {"paraphrases": [1, 2]}}, "world.paraphrases=1,2"):
        config = comparison(vary=vary)
        assert [job_config(config, Cell(v, 0), {}).world.paraphrases for v in variants(config)] == [1, 2]
        assert numeric_axis(results_of(config, [])) == "world.paraphrases"
    assert numeric_axis(results_of(comparison(vary="pretrain.optimizer.name=adamw,muon"), [])) is None


def test_arms_are_named_sets_of_settings_and_cross_what_varies() -> None:
    config = comparison(
        arms="plain, wide:model.width=16:heads=2",
        vary="world.paraphrases=1,2",
        seeds=3,
        along_with={"paraphrases=2": {"pretrain.training.steps": 5, "seeds": 1}},
    )
    labels = [variant.label for variant in variants(config)]
    assert labels == [f"{arm} + paraphrases={n}" for arm in ("plain", "wide") for n in (1, 2)]
    made = {cell.variant.label: job_config(config, cell, {}) for cell in cells(config) if cell.seed == 0}
    shapes = [(one.model.width, one.model.heads, one.pretrain.training.steps) for one in made.values()]
    assert shapes == [(8, 1, 2), (8, 1, 5), (16, 2, 2), (16, 2, 5)]
    run = [(cell.variant.choices, cell.seed) for cell in cells(config)]
    assert {seed for choices, seed in run if choices[1] == "paraphrases=1"} == {0, 1, 2}
    assert {seed for choices, seed in run if choices[1] == "paraphrases=2"} == {0}


def test_a_setting_that_excludes_another_takes_its_place() -> None:
    config = comparison(vary="pretrain.training.epochs=1,3")
    parts = [job_config(config, Cell(variant, 0), {}).pretrain.training for variant in variants(config)]
    assert [(part.epochs, part.steps) for part in parts] == [(1, None), (3, None)]


@pytest.mark.parametrize(
    ("compare", "sentence"),
    [
        ({"vary": "pretrain.world.paraphrases=1,2"}, "did you mean 'world.paraphrases'"),
        ({"vary": "lr=1,2"}, "pretrain.optimizer.lr, finetune.optimizer.lr"),
        ({"changes": "model.widht=8"}, "did you mean 'model.width'"),
        ({"vary": "model.width=wide,8"}, "model.width must be a whole number, got 'wide'"),
        ({"vary": "model.width=8,8"}, "no value twice"),
        ({"job": "pretrain"}, "unknown job 'pretrain'"),
        ({"vary": "model.width=8,16", "along_with": "width=9:lr=1"}, "unknown choice 'width=9'"),
        ({"vary": "model.width=8,16", "along_with": "width=8:seeds=0"}, "width=8': expected a whole number above 0"),
        ({"arms": "a, b:model.widht=8"}, "did you mean 'model.width'"),
    ],
)
def test_a_setting_that_is_not_there_is_one_sentence_and_writes_nothing(
    compare: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=sentence):
        run_comparison(comparison(**compare), tmp_path / "never")
    assert not (tmp_path / "never").exists()


def test_flags_and_settings_of_the_command_line_go_to_the_job(tmp_path: Path) -> None:
    config = REQUEST.config(None, {("compare", "job"): "knowledge", ("machine", "threads"): "1"}, ["world.people=40"])
    assert config.world.people == 40 and config.machine.threads == 1
    with pytest.raises(UserError, match="--dev-blocks is a setting of the job 'language'"):
        REQUEST.config(None, {("compare", "job"): "knowledge", ("measures", "dev_blocks"): "4"}, [])
    with pytest.raises(UserError, match="NAME=VALUE"):
        REQUEST.config(None, {}, ["model.width"])
    with pytest.raises(UserError, match="give the number of seeds with --seeds"):
        run_comparison(check(type(config), CHAIN | {"seed": 3, "compare": {"job": "knowledge"}}), tmp_path / "never")


def made_up(scores: dict[str, list[tuple[float, float]]]) -> ComparisonResults:
    """ComparisonResults as if runs had scored so on (dev, test)."""
    config = check(comparison_of("finetune"), {"compare": {"job": "finetune", "changes": "optimizer.lr=1"}})
    rows = [
        ExperimentRow(
            label,
            label,
            {},
            {seed: {"dev_accuracy": dev, "test_accuracy": test} for seed, (dev, test) in enumerate(pairs)},
            planned=3,
        )
        for label, pairs in scores.items()
    ]
    return results_of(config, rows)


def test_dev_ranks_and_test_stands_beside_it() -> None:
    good_on_test = [(0.50, 0.95), (0.51, 0.96), (0.52, 0.95)]
    good_on_dev = [(0.80, 0.60), (0.81, 0.62), (0.82, 0.61)]
    results = made_up({"first": good_on_test, "second": good_on_dev})
    assert [row.label for row in results.ordered] == ["second", "first"]
    table = view_of(results.job).table(results)
    assert table.header[:2] == ["variant", "dev accuracy"] and table.header[3] == "test accuracy"
    assert table.rows[0][0] == "second" and table.rows[0][1].startswith("81.0%") and "61.0%" in table.rows[0][3]
    (sentence,) = verdicts(results)
    assert sentence.startswith("With a higher dev accuracy than first") and "+30.0%" in sentence


def test_an_arm_is_compared_with_the_first_arm_at_the_same_value() -> None:
    config = comparison(arms="plain, wide:model.width=16", vary="world.paraphrases=1,2")
    scores = {
        "plain + paraphrases=1": 0.3,
        "plain + paraphrases=2": 0.6,
        "wide + paraphrases=1": 0.4,
        "wide + paraphrases=2": 0.5,
    }
    rows = [
        ExperimentRow(
            variant.label,
            variant.folder,
            {},
            {seed: {"dev_accuracy": scores[variant.label] + seed / 1000} for seed in range(3)},
            choices=variant.choices,
        )
        for variant in variants(config)
    ]
    results = results_of(config, rows)
    found = {row.label: results.difference(row) for row in rows}
    assert [found[f"plain + paraphrases={n}"] for n in (1, 2)] == [None, None]
    gains = [found[f"wide + paraphrases={n}"] for n in (1, 2)]
    assert [round(gain.mean, 6) for gain in gains if gain] == [0.1, -0.1]
    assert view_of(config.compare.job).table(results).header[2] == "difference to plain"
    lower, higher = verdicts(results)
    assert "than plain" in lower and "wide + paraphrases=2 by" in lower and "wide + paraphrases=1 by" in higher


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three numbers of paraphrases, of which the last cannot be: there are two documents."""
    config = comparison(vary={"world.paraphrases": [1, 2, 3]}, seeds=2)
    return run_comparison(config, tmp_path_factory.mktemp("any") / "comparison")


def test_a_comparison_of_chains_from_end_to_end(compared: Path) -> None:
    found = json.loads((compared / "results.json").read_text(encoding="utf-8"))
    rows = {row["label"]: row for row in found["variants"]}
    assert found["ranked_by"] == "dev_accuracy" and rows["paraphrases=2"]["settings"] == {"world.paraphrases": 2}
    for label in ("paraphrases=1", "paraphrases=2"):
        for name in ("dev_accuracy", "test_accuracy", "told_accuracy", "test_baseline", "seconds"):
            assert set(rows[label][name]["by_seed"]) == {"0", "1"}
    assert "is not possible" in rows["paraphrases=3"]["failures"]["1"] and "dev_accuracy" not in rows["paraphrases=3"]
    page = (compared / "report.html").read_text(encoding="utf-8")
    assert "is not possible" in page and (compared / "figures" / "curve.png").stat().st_size > 0
    assert "test accuracy" in page and "chose nothing" in page


def test_it_goes_on_where_a_chain_was_cut_and_runs_nothing_twice(compared: Path, tmp_path: Path) -> None:
    root = tmp_path / "copy"
    shutil.copytree(compared, root)
    cut = root / "cells" / "paraphrases-2" / "seed-1"
    shutil.rmtree(cut / "finetune")
    (cut / "status.json").unlink()  # killed within the second half
    kept = {path: path.stat().st_mtime_ns for path in root.rglob("metrics.jsonl")}
    resume_comparison(root, COMPARISON.saved(root))
    assert all(path.stat().st_mtime_ns == when for path, when in kept.items())
    before, after = (gather(path, COMPARISON.saved(path)).rows[1].runs[1] for path in (compared, root))
    assert before["test_accuracy"] == after["test_accuracy"] and before["told_accuracy"] == after["told_accuracy"]


def test_the_default_is_the_language_model_on_a_text() -> None:
    assert isinstance(check(LanguageComparison, {}), comparison_of("language"))
    assert LanguageComparison().compare.job == "language"
