"""`attnlab world`: make a synthetic world of people to pretrain and fine-tune on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnlab.base import console

if TYPE_CHECKING:
    from attnlab.data.world.world import World

_SIZE, _TEXT, _SPLIT = "Size of the world", "How the corpus tells it", "Who is asked about"


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
        int | None, typer.Option(help="Decides everything drawn.", rich_help_panel=_SIZE, show_default="0")
    ] = None,
    documents: Annotated[
        int | None, typer.Option(help="Documents a person.", rich_help_panel=_TEXT, show_default="4")
    ] = None,
    sentences: Annotated[
        int | None,
        typer.Option(
            help="Sentences a document, one of them on the birthplace.", rich_help_panel=_TEXT, show_default="2"
        ),
    ] = None,
    paraphrases: Annotated[
        int | None,
        typer.Option(
            help="Wordings of the birthplace a person gets over all documents.", rich_help_panel=_TEXT, show_default="4"
        ),
    ] = None,
    name_first: Annotated[
        bool | None,
        typer.Option(
            "--name-first", help="Only wordings that name the person before the place.", rich_help_panel=_TEXT
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
    """Make a synthetic world of people: a corpus, and questions "Where was X born?" on some of them."""
    given = {name: value for name, value in locals().items() if name != "out" and value is not None}

    from attnlab.base.files import check_new_folder
    from attnlab.data.world.files import write_world
    from attnlab.data.world.world import World, WorldSpec

    spec = WorldSpec(**given)
    check_new_folder(out)
    made = World(spec)
    write_world(made, out)
    _report(made, out)


def _report(made: World, out: Path) -> None:
    from attnlab.data.world.world import SPLITS

    spec = made.spec
    place, share = made.most_common_place()
    size = (out / "corpus.txt").stat().st_size
    asked = ", ".join(f"{split} {sum(1 for _ in made.iter_questions(split)):,}" for split in SPLITS)
    console.result(f"{out}: {spec.people:,} people, {spec.places:,} places, seed {spec.seed}")
    console.result(f"  corpus.txt  {spec.people * spec.documents:,} documents, {size / 1e6:.1f} MB")
    console.result(f"  questions   {asked}")
    console.result(f"  most common birthplace: {place}, {share:.1%} of the people")
    _, people = next(made.blocks())
    for person, document in zip(people[:3], made.documents(), strict=False):
        console.result(f"  {document}")
        console.result(f"    Where was {person.name} born? {person.birthplace}")


def register(app: typer.Typer) -> None:
    app.command("world")(world)
