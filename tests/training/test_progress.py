"""The progress bar stays whole on narrow terminals, whatever was measured last."""

from __future__ import annotations

import sys
from io import StringIO
from types import ModuleType, SimpleNamespace

import pytest
from rich.console import Console

from attnlab.base import console
from attnlab.training.callbacks import LogLine, RunLength, StepReport, TrainState
from attnlab.training.progress import NotebookBar, ProgressBar, fitted, progress


@pytest.mark.parametrize("width", [60, 80, 100, 110, 160])
def test_bar_steps_and_loss_stay_visible_after_an_evaluation(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Console(file=StringIO(), force_terminal=True, width=width, color_system=None, highlight=False)
    monkeypatch.setattr(console, "err", screen)
    bar, state = ProgressBar("finetune"), TrainState(step=0)
    bar.on_start(state, RunLength(12_000, 1_000.0))
    state.step = 6_000
    bar.on_log(state, LogLine(1.2345, 1e-3, 1.0, 0.01, 32, 4096, 5000))
    bar.on_step(state, StepReport(1e-3, 0.01, 32, 4096, 5000))
    bar.on_evaluate(state, {"loss": 1.23456, "accuracy": 0.87654, "macro_f1": 0.86543, "ece": 0.01}, best=True)
    shown = "".join(part.text for part in screen.render(bar.bar.get_renderable()))
    bar.on_end(state)
    lines = [line for line in shown.splitlines() if line.strip()]
    assert len(lines) == 1 and len(lines[0].rstrip()) <= width
    assert lines[0].startswith("finetune " + "━" * (bar.bar_width // 2))  # half of the steps are done
    assert lines[0].index("6000/12000") == len("finetune ") + bar.bar_width + 1 and "loss 1.23" in lines[0]
    if width >= 80:
        assert "left" in lines[0] and "dev: loss 1.235" in lines[0]


def test_what_is_least_important_is_left_out_first() -> None:
    parts = [(2, "epoch 1"), (0, "loss 2"), (1, "0:10 left")]
    assert fitted(parts, 100) == "epoch 1  loss 2  0:10 left"
    assert fitted(parts, 20) == "loss 2  0:10 left"
    assert fitted(parts, 10) == "loss 2"
    assert fitted(parts, 3) == ""


def test_a_notebook_gets_one_line_that_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []

    class Handle:
        def update(self, shown: str) -> None:
            lines.append(shown)

    def display(shown: str, display_id: bool) -> Handle:
        lines.append(shown)
        return Handle()

    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(HTML=str, display=display))  # type: ignore[arg-type]
    monkeypatch.setattr(console, "err", Console(file=StringIO(), force_jupyter=True))
    bar, state = progress("<b>"), TrainState(step=0)
    assert isinstance(bar, NotebookBar)
    bar.on_start(state, RunLength(10, 1.0))
    state.step = 10
    bar.on_step(state, StepReport(1e-3, 0.01, 32, 4096, 5000))
    bar.on_evaluate(state, {"loss": 1.5}, best=True)
    bar.on_end(state)
    assert '<progress value="0" max="10">' in lines[0] and '<progress value="10" max="10">' in lines[-1]
    assert "&lt;b&gt;" in lines[-1] and "dev: loss 1.5" in lines[-1]
