"""What is searched: values and ranges of settings that exist, told in one sentence when they do not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from attnlab.base.errors import UserError
from attnlab.config import check
from attnlab.config.axes import Choices, Range, short_names
from attnlab.experiments.config import SweepFlags
from attnlab.experiments.space import axes_of, grid, identity
from attnlab.experiments.sweep import check_sweep, run_sweep

Toy = Callable[..., Any]


def test_values_and_ranges_are_those_of_the_setting(toy: Toy) -> None:
    axes = axes_of(toy(vary="x=1e-5..1e-3 log; hill.y=2..10; shape=flat,steep", search="random"))
    assert axes == {
        "hill.x": Range(1e-5, 1e-3, True, False),
        "hill.y": Range(2, 10, False, True),
        "hill.shape": Choices(("flat", "steep")),
    }
    assert axes_of(toy(vary={"hill": {"x": [1, "2e0"]}})) == {"hill.x": Choices((1.0, 2.0))}
    assert axes_of(toy(vary="x=-1.5..-.5", search="guided")) == {"hill.x": Range(-1.5, -0.5, False, False)}


def test_a_cell_is_its_settings_however_they_are_written(toy: Toy) -> None:
    first, second = (list(grid(axes_of(toy(vary=vary)))) for vary in ("x=1e-4,1; y=1,2", "hill.x=0.0001,1.0; y=1,2"))
    assert len(first) == 4 and [identity(cell) for cell in first] == [identity(cell) for cell in second]


def test_names_are_as_short_as_they_can_be() -> None:
    names = short_names(["pretrain.optimizer.lr", "finetune.optimizer.lr", "model.width"])
    assert list(names.values()) == ["pretrain.optimizer.lr", "finetune.optimizer.lr", "width"]


@pytest.mark.parametrize(
    ("sweep", "sentence"),
    [
        ({"vary": "hill.xx=1,2"}, "did you mean 'hill.x'"),
        ({"vary": ""}, "--vary is missing"),
        ({"vary": "x=1..2"}, "a grid needs values"),
        ({"vary": "x=2..1", "search": "random"}, "is empty"),
        ({"vary": "x=1..1", "search": "random"}, "is empty"),
        ({"vary": "x=0..1 log", "search": "random"}, "a log range starts above 0"),
        ({"vary": "y=1.5..3", "search": "random"}, "hill.y must be a whole number"),
        ({"vary": "shape=1..2", "search": "random"}, "'flat' or 'steep'"),
        ({"vary": "x=1,1.0"}, "the same value twice"),
        ({"vary": "x=1,far"}, "hill.x must be a number, got 'far'"),
        ({"vary": "x=1; hill.x=2"}, "is given twice"),
        ({"vary": "seed=1,2"}, "--seeds"),
        ({"vary": "x=1,2", "trials": 3}, "--trials is for random and guided"),
        ({"vary": "x=1,2", "prune": "median"}, "consists of several runs"),
        ({"vary": "x=1,2", "store": "mysql://here"}, "expected journal"),
        ({"vary": "x=1,2", "store": "postgresql://me:secret@here/db"}, "a password does not belong in it"),
        ({"vary": "x=1,2", "search": "gird"}, "'grid', 'random' or 'guided'"),
        ({"job": "pretrain", "vary": "x=1,2"}, "unknown job 'pretrain'"),
    ],
)
def test_what_cannot_be_searched_is_one_sentence_and_writes_nothing(
    toy: Toy, sweep: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=sentence):
        if sweep.get("job"):
            check(SweepFlags, {"sweep": sweep})
        run_sweep(toy(**sweep), tmp_path / "never")
    assert not (tmp_path / "never").exists()


def test_values_that_are_wrong_together_are_found_before_anything_runs() -> None:
    from attnlab.experiments.config import sweep_of

    vary = "schedule.warmup_ratio=0.1,0.9; schedule.decay_ratio=0.2; schedule.name=wsd"
    config = check(sweep_of("finetune"), {"sweep": {"job": "finetune", "vary": vary}})
    with pytest.raises(UserError, match="more than 1"):
        check_sweep(config)


def test_the_edge_of_a_grid_and_of_a_range() -> None:
    assert [Choices((1, 2, 3)).edge(value) for value in (1, 2, 3)] == ["lowest", None, "highest"]
    assert Choices(("a", "b")).edge("a") is None and Choices((1,)).edge(1) is None
    wide = Range(1e-5, 1e-1, True, False)
    assert [wide.edge(value) for value in (1.1e-5, 1e-3, 0.09)] == ["lowest", None, "highest"]
