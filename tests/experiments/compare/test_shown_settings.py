"""What a comparison with a user's own file shows: settings as they were, the whole command, and no accusation."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from attnlab.attention.audit.settings import settings_read
from attnlab.attention.registry import MixerShape, hand_in
from attnlab.config.recipe import leaves
from attnlab.experiments.compare import view_of
from attnlab.experiments.config import LanguageComparison, comparison_of
from attnlab.experiments.results import ComparisonResults, ExperimentRow
from attnlab.experiments.views.language import LanguageView
from attnlab.stats.intervals import Mean, PositiveMean

Small = Callable[..., LanguageComparison]
VIEW = LanguageView("language")


@pytest.mark.parametrize(("preset", "positions", "dropout"), [("vanilla", "learned", 0.1), ("modern", "rotary", 0.0)])
def test_settings_are_shown_as_the_preset_resolves_them(
    preset: str, positions: str, dropout: float, small: Small
) -> None:
    config = small(model={"preset": preset, "dropout": None}, compare={"attention": "vanilla,linear"})
    shown = VIEW.settings_shown(config)
    assert shown["compare"]["positions"] == positions and shown["model"]["dropout"] == dropout
    assert shown["data"]["train_context"] == shown["model"]["context"] == 16
    assert None not in [value for section in shown.values() for value in section.values()]
    assert set(shown["model"]) == {key[1] for key in leaves(LanguageComparison) if key[0] == "model"}


def test_a_given_setting_is_shown_as_given(small: Small) -> None:
    shown = VIEW.settings_shown(small(model={"dropout": 0.3, "norm": "rmsnorm"}, compare={"positions": "none,alibi"}))
    assert shown["model"]["dropout"] == 0.3 and shown["model"]["norm"] == "rmsnorm"
    assert shown["compare"]["positions"] == "none,alibi"


def test_a_comparison_of_another_job_shows_what_was_given() -> None:
    config = comparison_of("finetune")()
    shown = view_of("finetune").settings_shown(config)
    assert shown["compare"]["job"] == "finetune" and None not in shown["optimizer"].values()


def test_a_mixer_without_dropout_is_noted_and_not_marked(small: Small) -> None:
    def row(label: str, ignored: float) -> ExperimentRow:
        decided = {"future": None, "ignored_dropout": ignored}
        return VIEW.judged(ExperimentRow(label, label, {}, {0: {"dev_loss": 1.0}}, decided=decided))

    config = small()
    results = ComparisonResults(config, "language", [row("vanilla", 0.0), row("mine", 0.1)], {}, {})
    remarks = VIEW.remarks(results)
    assert len(remarks) == 1 and remarks[0].startswith("mine does not use shape.dropout (0.1)")
    assert all(row.comparable for row in results.rows) and VIEW.notes(results) == []
    assert remarks[0] in VIEW.cautions(results)


def test_settings_that_are_read_at_the_start_or_in_a_call_are_used() -> None:
    from torch import Tensor, nn

    class Plain(nn.Module):
        def __init__(self, shape: MixerShape) -> None:
            super().__init__()
            self.shape, self.line = shape, nn.Linear(shape.width, shape.width)

        def forward(self, x: Tensor) -> Tensor:
            return self.line(x)

    class InACall(Plain):
        def forward(self, x: Tensor) -> Tensor:
            return nn.functional.dropout(self.line(x), self.shape.dropout, self.training)

    shape = MixerShape(width=8, heads=2, context=8, dropout=0.1)
    assert "width" in settings_read(hand_in(Plain), shape) and "dropout" not in settings_read(hand_in(Plain), shape)
    assert "dropout" in settings_read(hand_in(InACall), shape)
    assert "dropout" in settings_read("vanilla", shape)


@pytest.mark.parametrize("values", [(100.0, 1.0), (5.0, 4.0, 900.0), (3.0, 3.0)])
def test_the_interval_of_a_speed_is_above_zero(values: tuple[float, ...]) -> None:
    mean = PositiveMean(values)
    assert mean.interval is not None
    low, high = mean.interval
    assert 0 < low <= mean.mean * (1 + 1e-9) and mean.mean <= high * (1 + 1e-9)
    assert "-" not in mean.text(",.0f")


def test_for_speeds_that_are_close_it_is_that_of_student() -> None:
    values = (1000.0, 1001.0, 1002.0)
    ours, students = PositiveMean(values).interval, Mean(values).interval
    assert ours is not None and students is not None
    assert ours == pytest.approx(students, rel=1e-4)
    assert PositiveMean((5.0,)).text(".1f") == "5.0" and PositiveMean(()).text(".1f") == "not measured"
