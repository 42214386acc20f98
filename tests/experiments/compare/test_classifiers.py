"""Models, tuning methods and optimizers as classifiers: every one with every other, failures as bars at 0, costs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from transformers import BertConfig, BertModel, BertTokenizer

from attnlab.base.errors import UserError
from attnlab.cli.compare import REQUEST
from attnlab.config import check
from attnlab.config.axes import parse_choices
from attnlab.config.classify import METHODS
from attnlab.config.sections import OPTIMIZERS
from attnlab.config.usual import SIZES, USUAL, usual_rate
from attnlab.experiments.cells import Cell, variants
from attnlab.experiments.compare import gather, job_config, resume_comparison, run_comparison, view_of
from attnlab.experiments.config import comparison_of
from attnlab.experiments.experiment import COMPARISON
from attnlab.experiments.results import ComparisonResults, ExperimentRow
from attnlab.experiments.views.classify import best_value, best_value_notes
from attnlab.report import classifier_figures

SMALL: dict[str, Any] = {
    "data": {"task": "sentiment", "examples": 30, "max_tokens": 16},
    "training": {"epochs": 1, "save_every": 0},
    "machine": {"device": "cpu", "precision": "fp32", "threads": 1},
}
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "bad", "the", "a", "not", "film", "."]


def shape(**sizes: int) -> BertConfig:
    usual = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    return BertConfig(vocab_size=len(PIECES), max_position_embeddings=32, **(usual | sizes))


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """tiny works; empty has no weights; huge says in its configuration that it has 10^11."""
    root = tmp_path_factory.mktemp("models")
    (root / "vocab.txt").write_text("\n".join(PIECES))
    for name, config in (
        ("tiny", shape()),
        ("empty", shape()),
        ("huge", shape(hidden_size=2**16, intermediate_size=2**18)),
    ):
        config.save_pretrained(root / name)
        BertTokenizer(str(root / "vocab.txt")).save_pretrained(root / name)
    BertModel(shape()).save_pretrained(root / "tiny")
    shutil.copy(root / "tiny" / "model.safetensors", root / "huge")
    return root


def comparison(**compare: Any) -> Any:
    return check(comparison_of("classify"), SMALL | {"compare": {"job": "classify", "baselines": False} | compare})


@pytest.mark.parametrize(
    "written",
    [
        "full, head:lr=1e-2:epochs=20",
        {"full": None, "head": {"lr": "1e-2", "epochs": "20"}},
        ["full", "head:lr=1e-2:epochs=20"],
    ],
)
def test_choices_can_be_written_in_three_ways(written: Any) -> None:
    assert parse_choices(written) == {"full": {}, "head": {"lr": "1e-2", "epochs": "20"}}
    assert parse_choices({"head": {"optimizer": {"lr": 1e-2}}}) == {"head": {"optimizer.lr": 1e-2}}


@pytest.mark.parametrize(
    ("compare", "sentence"),
    [
        ({"methods": "full,full"}, "twice"),
        ({"methods": "full:fast"}, "'fast' is no setting of 'full'"),
        ({"methods": {"full": 3}}, "write the settings of 'full'"),
        ({"methods": "ful"}, "did you mean 'full'"),
        ({"methods": "full:speed=3"}, "unknown setting 'speed'"),
        ({"optimizers": "adamw,adamwow"}, "did you mean 'adamw'"),
        ({"optimizers": "adamw:lr=fast"}, "must be a number or 'auto', got 'fast'"),
        ({"methods": "full", "job": "finetune"}, "compared as classifiers"),
    ],
)
def test_what_cannot_be_compared_is_one_sentence(compare: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=sentence):
        run_comparison(comparison(**compare), tmp_path / "never")
    assert not (tmp_path / "never").exists()


def rates(config: Any) -> dict[str, float]:
    """The rates with which the runs of each variant would start."""
    configs = {variant.label: job_config(config, Cell(variant, 0), {}) for variant in variants(config)}
    for each in configs.values():
        each.fill_in(110_000_000, 1000)
    return {label: each.optimizer.lr for label, each in configs.items()}


def test_every_one_with_every_other_each_at_its_usual_rate() -> None:
    config = comparison(methods="full,head", optimizers="adamw,sgd:lr=0.3")
    assert rates(config) == {"full + adamw": 5e-5, "full + sgd": 0.3, "head + adamw": 1e-2, "head + sgd": 0.3}
    plain = comparison(methods="full", optimizers="adamw,sgd")
    assert rates(plain) == {"adamw": 5e-5, "sgd": usual_rate("full", "sgd", 110e6)}
    said = check(
        comparison_of("classify"), SMALL | {"optimizer": {"lr": 5e-5}, "compare": {"methods": "full,head:lr=1"}}
    )
    assert rates(said) == {"full": 5e-5, "head": 1.0}
    assert rates(comparison(vary="optimizer.lr=1,2")) == {"lr=1": 1.0, "lr=2": 2.0}
    assert set(USUAL) == set(METHODS) and all(usual_rate("full", name, 1e8) > 0 for name in OPTIMIZERS)
    falling = [usual_rate("full", "adamw", size) for size in (1, *SIZES)]
    assert falling == sorted(falling, reverse=True) and len(set(falling)) == len(falling)  # the larger, the lower


def test_the_flags_say_that_it_is_classification() -> None:
    flags = {("compare", "methods"): "full,head", ("data", "task"): "sentiment", ("training", "epochs"): "2"}
    config = REQUEST.config(None, flags, ["batch.size=8"])
    assert config.compare.job == "classify" and config.training.epochs == 2 and config.batch.size == 8
    with pytest.raises(UserError, match="--task is a setting of the job 'classify'"):
        REQUEST.config(None, {("compare", "job"): "language", ("data", "task"): "sst2"}, [])
    with pytest.raises(UserError, match="compared as classifiers"):
        REQUEST.config(None, {("compare", "job"): "language", ("compare", "models"): "a,b"}, [])


@pytest.fixture(scope="module")
def compared(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that works tuned in two ways, one without weights, one that cannot fit; two seeds."""
    names = ",".join(str(models / name) for name in ("tiny", "empty", "huge"))
    return run_comparison(
        comparison(models=names, methods="full:lr=1e-3,head", seeds=2),
        tmp_path_factory.mktemp("classifiers") / "comparison",
    )


def test_what_cannot_be_run_is_a_bar_at_0_and_the_others_go_on(compared: Path) -> None:
    results = gather(compared, COMPARISON.saved(compared))
    assert [row.label for row in results.finished] == ["tiny + full", "tiny + head"]
    reasons = {row.label: row.reason for row in results.rows}
    assert "has no weights" in reasons["empty + full"] and "it does not fit" in reasons["huge + head"]
    table = view_of(results.job).table(results)
    assert next(cells[1] for cells in table.rows if cells[0] == "huge + full").startswith("0: it does not fit")
    axes = classifier_figures.bars(results.ordered, view_of(results.job).measures, []).axes[0]
    assert sum(bar.get_width() == 0 for bar in axes.patches) == 8  # four variants, dev and test
    assert any("it does not fit" in text.get_text().replace("\n", " ") for text in axes.texts)


def test_cost_stands_beside_quality_and_any_two_are_tested(compared: Path) -> None:
    found = json.loads((compared / "results.json").read_text(encoding="utf-8"))
    rows = {row["label"]: row for row in found["variants"]}
    full, head = rows["tiny + full"], rows["tiny + head"]
    assert full["learning_rates"] == [1e-3] and head["learning_rates"] == []  # it is fitted
    assert full["learning_parameters"] > head["learning_parameters"] == 2 * 16 + 2
    assert head["parameters"] > head["learning_parameters"]  # the frozen body counts
    for row in (full, head):
        assert row["seconds"]["mean"] > 0 and row["peak_memory"]["mean"] > 2**20
    (pair,) = found["pairs"]
    assert {pair["first"], pair["second"]} == {"tiny + full", "tiny + head"} and 0 <= pair["p"] <= pair["p_holm"] <= 1
    page = (compared / "report.html").read_text(encoding="utf-8")
    assert "McNemar" in page and "it does not fit" in page and "peak memory" in page
    for name in ("bars", "worth", "courses"):
        assert (compared / "figures" / f"{name}.png").stat().st_size > 0


def test_a_pair_is_named_by_its_labels(compared: Path) -> None:
    results = gather(compared, COMPARISON.saved(compared))
    pair = view_of(results.job).test_pair
    assert "tiny + full against tiny + head on 120 test examples" in pair(results, "tiny + full, tiny + head")
    for asked, sentence in (
        ("tiny + full", "write two"),
        ("tiny + ful,tiny + head", "did you mean 'tiny \\+ full'"),
        ("tiny + full,huge + full", "no predictions on test: it does not fit"),
    ):
        with pytest.raises(UserError, match=sentence):
            pair(results, asked)


def test_it_goes_on_with_what_is_missing(compared: Path, tmp_path: Path) -> None:
    root = tmp_path / "copy"
    shutil.copytree(compared, root)
    shutil.rmtree(root / "cells" / "tiny-head" / "seed-1")
    kept = {path: path.stat().st_mtime_ns for path in root.rglob("predictions-test.jsonl")}
    resume_comparison(root, COMPARISON.saved(root))
    assert len(kept) == 3 and all(path.stat().st_mtime_ns == when for path, when in kept.items())
    name = "predictions-test.jsonl"
    one, two = ((folder / "cells" / "tiny-head" / "seed-1" / name).read_text() for folder in (compared, root))
    assert one == two


def made_up(scores: dict[str, tuple[float, float, list[bool]]]) -> ComparisonResults:
    """Variants as if they had this accuracy and time, and had collapsed with these seeds."""
    rows = [
        ExperimentRow(
            label,
            label,
            {},
            {
                seed: {
                    "dev_accuracy": score,
                    "test_accuracy": score,
                    "test_macro_f1": score,
                    "seconds": seconds,
                    "dev_baseline": 0.5,
                    "test_baseline": 0.5,
                    "collapsed": collapsed,
                }
                for seed, collapsed in enumerate(seeds)
            },
            planned=2,
        )
        for label, (score, seconds, seeds) in scores.items()
    ]
    config = comparison(methods="full", seeds=2)
    return ComparisonResults(config, "classify", rows, {}, {"examples": {"dev": 100}})


def test_a_collapsed_seed_is_marked_in_table_bars_and_notes() -> None:
    results = made_up({"a": (0.8, 5, [False, False]), "b": (0.5, 1, [False, True])})
    labels = [cells[0] for cells in view_of(results.job).table(results).rows]
    assert labels == ["a", "b ‡ 1 of 2 collapsed"]
    assert "b: 1 of 2 seeds collapsed (seed 1)" in " ".join(view_of(results.job).notes(results))
    figure = classifier_figures.bars(results.ordered, view_of(results.job).measures, ["b"])
    bars = figure.axes[0].patches
    assert [bool(bar.get_hatch()) for bar in bars] == [False, True, False, True]  # dev of both, then test of both
    figure.canvas.draw()
    legend, whole = figure.legends[0].get_window_extent(), figure.bbox
    assert whole.x0 <= legend.x0 and legend.x1 <= whole.x1  # five entries, none cut off


def test_the_best_for_the_money_is_the_cheapest_near_the_best_on_dev() -> None:
    """With 100 examples one standard error at 0.90 is 0.03."""
    fine = [False, False]
    scores = {
        "best": (0.90, 60.0, fine),
        "near": (0.88, 5.0, fine),
        "far": (0.80, 1.0, fine),
        "collapsed": (0.89, 0.1, [True, False]),
    }
    results = made_up(scores)
    chosen = best_value(results)
    assert chosen is not None and chosen.label == "near"
    assert classifier_figures.pareto([(60, 0.9), (5, 0.88), (1, 0.8), (7, 0.85)]) == [(1, 0.8), (5, 0.88), (60, 0.9)]
    (sentence,) = best_value_notes(results)
    assert sentence.startswith("Best for the money: near") and "best, " not in sentence and "90.0%" in sentence


def test_baselines_are_variants_on_every_choice_of_rows_and_read_what_the_encoder_reads() -> None:
    config = comparison(models="tiny,other", methods="full,lora", vary="data.examples=20,30", baselines=True)
    added = {variant.label: variant for variant in variants(config)[8:]}
    names = ("majority", "tfidf", "embeddings")
    assert list(added) == [f"examples={count} + {name}" for count in (20, 30) for name in names]
    tfidf, vectors = (job_config(config, Cell(added[f"examples=30 + {name}"], 1), {}) for name in names[1:])
    assert tfidf.is_linear and tfidf.model.encoder == "tiny" and tfidf.data.examples == 30
    assert (vectors.model.name, vectors.tuning.method, vectors.is_fitted) == ("tiny", "head", True)
    mine = comparison(models="tfidf,tiny", baselines=True)
    assert [variant.label for variant in variants(mine)] == ["tfidf", "tiny", "majority", "embeddings"]
    assert variants(mine)[0].settings["model", "encoder"] == "tiny"
    assert len(variants(comparison(methods="full,lora", baselines=False))) == 2
    with pytest.raises(UserError, match="baselines are for classifiers"):
        check(comparison_of("language"), {"compare": {"baselines": True}})


def test_a_new_comparison_has_its_baselines_among_bars_costs_and_paired_tests(models: Path, tmp_path: Path) -> None:
    config = comparison(models=str(models / "tiny"), seeds=1, baselines=None)
    root = run_comparison(config, tmp_path / "new")
    results = gather(root, COMPARISON.saved(root))
    assert [row.label for row in results.rows] == ["tiny", "majority", "tfidf", "embeddings"]
    assert all(row.runs for row in results.rows) and not any((root / "cells").rglob("baselines"))
    content = json.loads((root / "results.json").read_text())
    assert {(pair["first"], pair["second"]) for pair in content["pairs"]} >= {("tiny", "tfidf"), ("tiny", "embeddings")}
    first = view_of("classify").first(results)
    page = (root / "report.html").read_text()
    assert any(sentence.startswith("Below tfidf") for sentence in first) and first[0][1:] in page
    assert page.index('role="alert"') < page.index("What came out")
    cost = view_of("classify").cost(results)
    assert {row[0]: row[1] for row in cost.rows} == {
        "tiny": "0.0005",
        "majority": "fitted",
        "tfidf": "fitted",
        "embeddings": "fitted",
    }


def test_nothing_at_chance_is_the_best_for_the_money() -> None:
    """With 100 examples 0.57 is within chance of 0.5, and 0.57 is within one standard error of 0.61."""
    fine = [False, False]
    chosen = best_value(made_up({"above": (0.61, 60.0, fine), "chance": (0.57, 1.0, fine)}))
    assert chosen is not None and chosen.label == "above"
    hopeless = made_up({"one": (0.55, 60.0, fine), "two": (0.52, 1.0, fine)})
    assert best_value(hopeless) is None
    assert best_value_notes(hopeless) == ["Best for the money: none. No variant is better on dev than chance explains."]
