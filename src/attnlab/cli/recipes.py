"""`attnlab recipes`: the experiments that come with the package, for `--config NAME`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from textwrap import TextWrapper
from typing import Annotated

import typer
from rich.text import Text

from attnlab.base import console
from attnlab.cli.help import example


def recipes(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Print this recipe: a start for your own.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """List the shipped recipes with their expected result and cost; run one with --config NAME."""
    from attnlab.base.files import read_text
    from attnlab.config.shipped import find_recipe, shipped_recipes

    if name is not None:
        console.result(read_text(find_recipe(Path(name))).removesuffix("\n"))
        return
    shipped = shipped_recipes()
    if as_json:
        console.json_result([asdict(recipe) for recipe in shipped])
        return
    wrapped = TextWrapper(
        min(console.out.width, 120), initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False
    )
    for recipe in shipped:
        console.result(Text(recipe.name, style="bold"))
        for text in (recipe.purpose, f"expected: {recipe.expected}", f"cost: {recipe.cost}"):
            console.result(wrapped.fill(text))
    console.say("`attnlab recipes NAME` prints a recipe with the command that runs it.")


def register(app: typer.Typer) -> None:
    app.command(epilog=example("attnlab recipes knowledge"))(recipes)
