"""The recipes that come with the package, found by name from any folder.

Each begins with comments: what it is for (one line, then notes), the commands to run it, what to expect, what it costs.

    # A small GPT reads about 300 invented people.
    #
    #   attnlab pretrain --config knowledge-pretrain
    #
    # Expected: training loss about 0.2.
    # Cost: about a minute on 2 cores.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from textwrap import dedent

from attnlab.base.errors import UserError, nearest

FOLDER = Path(__file__).parents[1] / "recipes"


@dataclass(frozen=True)
class ShippedRecipe:
    """What the comments of a shipped recipe say."""

    name: str
    purpose: str
    commands: str
    expected: str
    cost: str


def shipped_recipes() -> list[ShippedRecipe]:
    """All of them, by name."""
    return [_described(path) for path in sorted(FOLDER.glob("*.yaml"))]


def find_recipe(path_or_name: Path) -> Path:
    """The file of a recipe given as a path or as the name of a shipped one, with or without `.yaml`.

    A file that exists wins. `recipes/NAME.yaml`, where no such file exists, is the shipped recipe NAME.
    """
    if path_or_name.exists() and not path_or_name.is_dir():
        return path_or_name
    name = path_or_name.name.removesuffix(".yaml")
    shipped = {path.stem: path for path in FOLDER.glob("*.yaml")}
    if path_or_name.parent not in (Path(), Path(FOLDER.name)):
        raise UserError(f"{path_or_name}: there is no such recipe.")
    if name not in shipped:
        close = nearest(name, shipped)
        hint = f"did you mean {close!r}? " if close else ""
        raise UserError(f"{path_or_name}: there is no such recipe: {hint}'attnlab recipes' lists the shipped ones.")
    return shipped[name]


def _described(path: Path) -> ShippedRecipe:
    lines = path.read_text(encoding="utf-8").splitlines()
    comments = [line[2:] for line in takewhile(lambda line: line.startswith("#"), lines)]
    start = comments.index("")
    commands = takewhile(lambda line: line != "", comments[start + 1 :])
    return ShippedRecipe(
        path.stem,
        comments[0],
        dedent("\n".join(commands)),
        _paragraph("Expected:", comments),
        _paragraph("Cost:", comments),
    )


def _paragraph(first_word: str, comments: list[str]) -> str:
    """The line that starts with a word and the indented lines after it, as one."""
    start = next(number for number, line in enumerate(comments) if line.startswith(first_word))
    more = takewhile(lambda line: line.startswith(" "), comments[start + 1 :])
    return " ".join([comments[start].removeprefix(first_word).strip(), *(line.strip() for line in more)])
