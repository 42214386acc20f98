"""What the runs of a comparison share and in what they differ."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnlab.base.errors import UserError
from attnlab.config import check, load
from attnlab.experiments.cells import Cell, cells, variants
from attnlab.experiments.compare import job_config
from attnlab.experiments.config import LanguageComparison
from attnlab.models.gpt import shape_of
from attnlab.runs.settings import flat


def labels(**compare: object) -> list[str]:
    return [variant.label for variant in variants(check(LanguageComparison, {"compare": compare}))]


def test_a_label_says_what_varies() -> None:
    assert labels(attention="vanilla,linear") == ["vanilla", "linear"]
    assert labels(positions="none,alibi") == ["none", "alibi"]
    assert labels(attention=["vanilla", "linear"], positions="none,alibi") == [
        "vanilla + none",
        "vanilla + alibi",
        "linear + none",
        "linear + alibi",
    ]
    assert labels(attention=" vanilla , vanilla") == ["vanilla"]


def test_a_change_stands_beside_the_model_as_it_is_and_touches_nothing_else() -> None:
    config = check(LanguageComparison, {"compare": {"changes": "norm=rmsnorm, qk-norm=true"}})
    rows = [flat(job_config(config, cell, {"steps": 100}).model_dump()) for cell in list(cells(config))[:3]]
    assert labels(changes="norm=rmsnorm,qk-norm=true") == ["as it is", "norm=rmsnorm", "qk-norm=true"]
    differing = [{name: row[name] for name in row if row[name] != rows[0][name]} for row in rows[1:]]
    assert differing == [{"model.norm": "rmsnorm"}, {"model.qk_norm": True}]
    with pytest.raises(UserError, match="'rmsnorm' is no change"):
        check(LanguageComparison, {"compare": {"changes": "rmsnorm"}})


def test_two_files_of_one_name_are_two_variants() -> None:
    rows = variants(check(LanguageComparison, {"compare": {"attention": "a/mine.py,b/mine.py"}}))
    assert len({row.label for row in rows}) == len({row.folder for row in rows}) == 2


def test_runs_of_a_seed_differ_in_the_variant_alone() -> None:
    """Everything else that could favour one of them is the same: data, order, budget, shape, rates."""
    config = check(LanguageComparison, {"compare": {"attention": "vanilla,linear", "seeds": 2}})
    first, second, later = (
        flat(job_config(config, cell, {"steps": 100}).model_dump()) for cell in list(cells(config))[:3]
    )
    assert {name for name in first if first[name] != second[name]} == {"model.attention"}
    assert {name for name in first if first[name] != later[name]} == {"training.seed"}


def test_whole_rounds_of_seeds_come_first() -> None:
    config = check(LanguageComparison, {"compare": {"attention": "vanilla,linear", "seeds": 2}})
    assert [(cell.variant.label, cell.seed) for cell in cells(config)] == [
        ("vanilla", 0),
        ("linear", 0),
        ("vanilla", 1),
        ("linear", 1),
    ]
    assert len({cell.path(Path("x")) for cell in cells(config)}) == 4


def test_positions_none_means_none() -> None:
    config = load(LanguageComparison, None, {("compare", "positions"): "none"})
    cell = next(cells(config))
    assert isinstance(cell, Cell)
    assert shape_of(job_config(config, cell, {"steps": 1}).model, 10).positions == "none"


def test_the_presets_positions_are_the_default() -> None:
    for preset, positions in (("vanilla", "learned"), ("modern", "rotary")):
        config = check(LanguageComparison, {"model": {"preset": preset}})
        assert shape_of(job_config(config, next(cells(config)), {"steps": 1}).model, 10).positions == positions


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"compare": {"attention": ","}}, "at least one name"),
        ({"compare": {"seeds": 0}}, "seeds"),
        ({"budget": {"steps": 10, "seconds": 3}}, "exclude each other"),
        ({"measures": {"test_contexts": "100,long"}}, "whole numbers"),
        ({"data": {"dev_share": 1.0}}, "dev_share"),
    ],
)
def test_impossible_settings_are_one_sentence(values: dict[str, dict[str, object]], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        check(LanguageComparison, values)
