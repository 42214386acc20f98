"""`attnlab recipes`: the experiments that come with the package, for `--config NAME`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from textwrap import TextWrapper
from typing import Annotated

import typer
from rich.markup import escape

from attnlab.base import console
from attnlab.cli.help import example


def recipes(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Print this recipe: a start for your own.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """List the shipped recipes with their expected result and cost; run one with --config NAME."""
    from attnlab.config.shipped import find_recipe, shipped_recipes

    if name is not None:
        console.out.out(find_recipe(Path(name)).read_text(encoding="utf-8"), end="", highlight=False)
        return
    shipped = shipped_recipes()
    if as_json:
        console.out.out(
            json.dumps([asdict(recipe) for recipe in shipped], indent=2, ensure_ascii=False), highlight=False
        )
        return
    wrapped = TextWrapper(
        min(console.out.width, 120), initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False
    )
    for recipe in shipped:
        console.result(f"[bold]{recipe.name}[/]")
        for text in (recipe.purpose, f"expected: {recipe.expected}", f"cost: {recipe.cost}"):
            console.result(escape(wrapped.fill(text)))
    console.say("`attnlab recipes NAME` prints a recipe with the command that runs it.")


def register(app: typer.Typer) -> None:
    app.command(epilog=example("attnlab recipes knowledge"))(recipes)
