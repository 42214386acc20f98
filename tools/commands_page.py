"""docs/commands.md from the commands themselves: `python tools/commands_page.py` writes it, a test compares it.

Walks the tree of `attnlab`: panels of commands, commands and their subcommands, options by panel with defaults.
A panel of options that is the same in several commands is shown once and linked from each.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import typer
import typer.main

from attnlab.cli import app

PAGE = Path(__file__).parents[1] / "docs" / "commands.md"
HEADER = """\
# Commands

Written by `python tools/commands_page.py` from the commands themselves; `attnlab COMMAND --help-all` prints the
same, `--help` the common options.
The [glossary](glossary.md) explains the words.
"""
SHARED = "Options that several commands share"
OTHERS = "Commands"  # the panel of commands that name none
SHARED_BY = 3  # so many commands with the same panel of options, and it is shown once
KINDS = {"str": "TEXT", "float": "NUMBER", "int": "INT"}
ROOT: Any = typer.main.get_command(app)
Panel = tuple[str, tuple[str, ...]]  # its title and its rows


def page() -> str:
    """The whole page."""
    shared = _shared_panels()
    panels = _by_panel(ROOT.commands.values(), OTHERS)
    lines = [HEADER]
    for title, commands in panels.items():
        if len(panels) > 1:
            lines.append(f"**{title}**\n")
        for command in commands:
            name = f"attnlab {command.name}"
            lines.append(f"- [`{name}`](#{anchor(name)}): {_line(command.help)}")
        lines.append("")
    lines += ["## Options of all commands\n", *_tables(_option_panels(ROOT), shared)]
    for commands in panels.values():
        for command in commands:
            lines += _section(command, ["attnlab", str(command.name)], shared)
    lines.append(f"\n## {SHARED}\n")
    for title, rows in shared:
        lines += [f"### {title}\n", *_table("Option", rows)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def _section(command: Any, words: list[str], shared: list[Panel]) -> Iterator[str]:
    """A command with its arguments and options; then the commands below it."""
    children = getattr(command, "commands", {})
    arguments = [_argument(parameter) for parameter in command.params if _is_argument(parameter)]
    ending = [*(["COMMAND"] if children else []), *(["[OPTIONS]"] if len(command.params) > len(arguments) else [])]
    yield f"\n{'#' * len(words)} {' '.join(words)}\n"
    yield f"{_text(command.help)}\n"
    yield f"    {' '.join([*words, *arguments, *ending])}\n"
    yield from _tables(_option_panels(command), shared)
    for child in children.values():
        yield from _section(child, [*words, str(child.name)], shared)


def _tables(panels: list[Panel], shared: list[Panel]) -> Iterator[str]:
    for title, rows in panels:
        if (title, rows) not in shared:
            yield from _table(title, rows)
    links = [f"[{title}](#{anchor(title)})" for title, rows in panels if (title, rows) in shared]
    if links:
        yield f"And the shared options: {', '.join(links)}.\n"


def _table(title: str, rows: Iterable[str]) -> Iterator[str]:
    yield f"| {title} | | Default |\n| --- | --- | --- |"
    yield from rows
    yield ""


def _shared_panels() -> list[Panel]:
    """The panels that several commands have, of each title the most frequent form."""
    counts = Counter(panel for command in walk(ROOT) for panel in _option_panels(command))
    frequent: dict[str, Panel] = {}
    for panel, count in counts.most_common():
        if count >= SHARED_BY and len(panel[1]) > 1:
            frequent.setdefault(panel[0], panel)
    return list(frequent.values())


def walk(command: Any) -> Iterator[Any]:
    yield command
    for child in getattr(command, "commands", {}).values():
        yield from walk(child)


def _option_panels(command: Any) -> list[Panel]:
    """Arguments first; then the options by panel, hidden ones last and marked rare."""
    shown = [parameter for parameter in command.params if parameter.name != "help" and not is_of_typer(parameter)]
    arguments = [parameter for parameter in shown if _is_argument(parameter)]
    options = [parameter for parameter in shown if not _is_argument(parameter)]
    panels = ({"Argument": arguments} if arguments else {}) | _by_panel(options, "Option")
    return [(title, tuple(map(_row, sorted(inside, key=_is_hidden)))) for title, inside in panels.items()]


def _row(parameter: Any) -> str:
    text, default = _help_and_default(parameter)
    rare = "(rare) " if _is_hidden(parameter) else ""
    return f"| `{cell(names(parameter))}` | {rare}{cell(text)} | {cell(default)} |"


def names(parameter: Any) -> str:
    if _is_argument(parameter):
        return _argument(parameter)
    spelled = [*sorted(parameter.opts, key=len, reverse=True), *parameter.secondary_opts]
    return ", ".join(spelled) if parameter.is_flag or parameter.count else f"{', '.join(spelled)} {_metavar(parameter)}"


def _metavar(parameter: Any) -> str:
    if parameter.metavar:
        return str(parameter.metavar)
    kind = str(parameter.display_type(typer.Context(ROOT))).strip("<>")
    kind = re.sub(r"^list\[(.*)\]$|^(.*) range$", r"\1\2", kind)
    return kind if "|" in kind else KINDS.get(kind, kind.upper())


def _argument(parameter: Any) -> str:
    name = str(parameter.metavar or parameter.name.upper()) + ("" if parameter.nargs == 1 else "...")
    return name if parameter.required else f"[{name}]"


def _help_and_default(parameter: Any) -> tuple[str, str]:
    """A flag made from a configuration names its default in its help: '(default: 4)'."""
    text, shown, value = _line(parameter.help), getattr(parameter, "show_default", None), parameter.default
    named = re.fullmatch(r"(.*?) ?\(default: ([^()]*)\)(\.?)", text)
    if named:
        return named[1] + named[3], named[2]
    if parameter.required:
        return text, "required"
    if isinstance(shown, str):
        return text, shown
    if shown is False or value is None or value is False or value in ("", (), []) or callable(value):
        return text, ""
    return text, "yes" if value is True else str(value)


def _by_panel(things: Iterable[Any], others: str) -> dict[str, list[Any]]:
    panels: dict[str, list[Any]] = {}
    for thing in things:
        panel = getattr(thing, "rich_help_panel", None)
        panels.setdefault(panel if isinstance(panel, str) else others, []).append(thing)
    return panels


def _is_hidden(thing: Any) -> bool:
    return bool(getattr(thing, "hidden", False))


def _is_argument(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "argument")


def is_of_typer(parameter: Any) -> bool:
    """Options that every command has, or only `attnlab` itself: for help and completion."""
    return bool({"--install-completion", "--show-completion", "--help-all"} & set(parameter.opts))


def anchor(title: str) -> str:
    """As GitHub makes it."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def _text(help_text: str | None) -> str:
    """The help without marks for the terminal."""
    return re.sub(r"[\b\f]", "", help_text or "").strip()


def _line(help_text: str | None) -> str:
    return " ".join(_text(help_text).split("\n\n")[0].split())


def cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
