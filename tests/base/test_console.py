"""A text is printed as it is, and a terminal obeys none of it."""

from __future__ import annotations

import io
import json

import pytest
from rich.table import Table
from rich.text import Text

from attnlab.base import console
from attnlab.training.callbacks import RunLength, TrainState
from attnlab.training.progress import ProgressBar

BRACKETS = "runs/[lr=0.1] [/] [bold]x[/bold] :bug: $x_$"


def test_brackets_colons_and_dollars_are_text(capsys: pytest.CaptureFixture[str]) -> None:
    console.result(f"run: {BRACKETS}")
    console.say(BRACKETS)
    console.warn(BRACKETS)
    console.fail(BRACKETS)
    table = Table(BRACKETS)
    table.add_row(f"in a cell {BRACKETS}")
    console.result(table)
    out, err = capsys.readouterr()
    assert f"run: {BRACKETS}\n" in out and f"in a cell {BRACKETS}" in out
    assert err.count(BRACKETS) == 3


@pytest.mark.parametrize(
    "odd", ["\x1b[31mred", "\x9b2J", "title\x07", "over\rwritten", "\u202eright", "\x00", "\ud800"]
)
def test_a_terminal_obeys_nothing_in_a_text(odd: str, capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("head")
    table.add_row(console.cell(odd), Text(odd), odd)
    for printed in (odd, table, Text(odd)):
        console.result(printed)
    for print_it in (console.say, console.warn, console.fail):
        print_it(odd)
    console.json_result({"text": odd}, indent=None)
    out, err = capsys.readouterr()
    assert not console.OBEYED.search(out + err)
    assert json.loads(out.splitlines()[-1]) == {"text": odd}


def test_lines_and_accents_stay(capsys: pytest.CaptureFixture[str]) -> None:
    console.result("größer → 二\nnext")
    assert capsys.readouterr().out == "größer → 二\nnext\n"


def test_a_long_message_keeps_its_beginning_and_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    console.fail(f"recipe.yaml, line 3: got {'x' * 1_000_000}: give less.")
    err = capsys.readouterr().err
    assert err.startswith("error: recipe.yaml, line 3") and err.endswith("give less.\n") and len(err) < 4000


def test_a_bar_and_a_spinner_show_a_label_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = console.PlainConsole(
        file=io.StringIO(), force_terminal=True, width=120, markup=False, emoji=False, color_system=None
    )
    monkeypatch.setattr(console, "err", terminal)
    bar = ProgressBar("[lr=0.1] [/] \x1b]0;x\x07")
    length = RunLength(steps=4, steps_per_epoch=2.0)
    bar.on_start(TrainState(), length)
    bar.on_end(TrainState())
    with console.working("loading [/] \x9b2J ..."):
        pass
    assert isinstance(terminal.file, io.StringIO)
    printed = terminal.file.getvalue()
    assert "[lr=0.1] [/]" in printed and "loading [/]" in printed
    assert "\x1b]0;" not in printed and "\x07" not in printed and "\x9b" not in printed
