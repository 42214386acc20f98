"""`attnlab world`: write a synthetic world of people to pretrain and fine-tune on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnlab.base import console
from attnlab.cli.help import example

if TYPE_CHECKING:
    from attnlab.data.world.world import World

_SIZE, _TEXT, _SPLIT = "Size of the world", "Corpus", "Questions"


def world(
    out: Annotated[Path, typer.Option(help="Folder to write to: new or empty.")],
    people: Annotated[
        int | None, typer.Option(help="Number of people.", rich_help_panel=_SIZE, show_default="5000")
    ] = None,
    places: Annotated[
        int | None, typer.Option(help="Number of birthplaces.", rich_help_panel=_SIZE, show_default="100")
    ] = None,
    skew: Annotated[
        float | None,
        typer.Option(
            help="Place number k has weight 1/k^skew; 0 is uniform.", rich_help_panel=_SIZE, show_default="0.5"
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of everything random.", rich_help_panel=_SIZE, show_default="0")
    ] = None,
    documents: Annotated[
        int | None, typer.Option(help="Documents per person.", rich_help_panel=_TEXT, show_default="4")
    ] = None,
    sentences: Annotated[
        int | None,
        typer.Option(
            help="Sentences per document, one of them on the birthplace.", rich_help_panel=_TEXT, show_default="2"
        ),
    ] = None,
    paraphrases: Annotated[
        int | None,
        typer.Option(help="Different wordings of the birthplace per person.", rich_help_panel=_TEXT, show_default="4"),
    ] = None,
    name_first: Annotated[
        bool | None,
        typer.Option(
            "--name-first", help="Use only wordings that name the person before the place.", rich_help_panel=_TEXT
        ),
    ] = None,
    shuffled: Annotated[
        bool | None,
        typer.Option(
            "--shuffled/--in-order",
            help="Sentences in random order, or birthplace first.",
            rich_help_panel=_TEXT,
            show_default="shuffled",
        ),
    ] = None,
    train: Annotated[
        float | None,
        typer.Option(help="Share of people in fine-tuning questions.", rich_help_panel=_SPLIT, show_default="0.5"),
    ] = None,
    dev: Annotated[
        float | None,
        typer.Option(help="Share of people in dev questions.", rich_help_panel=_SPLIT, show_default="0.25"),
    ] = None,
    test: Annotated[
        float | None,
        typer.Option(help="Share of people in test questions.", rich_help_panel=_SPLIT, show_default="0.25"),
    ] = None,
) -> None:
    """Write a synthetic world of people: a corpus, and questions "Where was X born?" on some of them."""
    given = {name: value for name, value in locals().items() if name != "out" and value is not None}

    from attnlab.data.world.files import check_folder, write_world
    from attnlab.data.world.world import World, WorldSpec

    spec = WorldSpec(**given)
    check_folder(out)
    world = World(spec)
    write_world(world, out)
    _report(world, out)


def _report(world: World, out: Path) -> None:
    from attnlab.data.world.world import SPLITS

    spec = world.spec
    place, share = world.most_common_place()
    size = (out / "corpus.txt").stat().st_size
    questions = ", ".join(f"{split} {sum(1 for _ in world.asked(split)):,}" for split in SPLITS)
    console.result(f"{out}: {spec.people:,} people, {spec.places:,} places, seed {spec.seed}")
    console.result(f"  corpus.txt  {spec.people * spec.documents:,} documents, {size / 1e6:.1f} MB")
    console.result(f"  questions   {questions}")
    console.result(f"  most common birthplace: {place}, {share:.1%} of the people")
    _, people = next(world.blocks())
    for person, document in zip(people[:3], world.documents(), strict=False):
        console.result(f"  {document}")
        console.result(f"    Where was {person.name} born? {person.birthplace}")


def register(app: typer.Typer) -> None:
    app.command("world", epilog=example("attnlab world --out world --people 200"))(world)
