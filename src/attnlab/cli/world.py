"""`attnlab world`: write a synthetic world of people to pretrain and fine-tune on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attnlab.base import console
from attnlab.cli.help import example
from attnlab.config.world import WorldSection

if TYPE_CHECKING:
    from attnlab.data.world.world import World

_SIZE, _TEXT, _SPLIT = "Size of the world", "The corpus", "Questions"


def _setting(name: str, panel: str, *flags: str, shown: str | bool | None = None) -> Any:
    """An option with the help text and the default of the same setting in a configuration."""
    field = WorldSection.model_fields[name]
    return typer.Option(
        *flags,
        help=field.description,
        rich_help_panel=panel,
        show_default=str(field.default) if shown is None else shown,
    )


def world(
    out: Annotated[Path, typer.Option(help="Folder to write to: new or empty.")],
    people: Annotated[int | None, _setting("people", _SIZE)] = None,
    places: Annotated[int | None, _setting("places", _SIZE)] = None,
    skew: Annotated[float | None, _setting("skew", _SIZE)] = None,
    seed: Annotated[int | None, _setting("world_seed", _SIZE, "--seed")] = None,
    documents: Annotated[int | None, _setting("documents", _TEXT)] = None,
    sentences: Annotated[int | None, _setting("sentences", _TEXT)] = None,
    paraphrases: Annotated[int | None, _setting("paraphrases", _TEXT)] = None,
    name_first: Annotated[bool | None, _setting("name_first", _TEXT, "--name-first", shown=False)] = None,
    shuffled: Annotated[bool | None, _setting("shuffled", _TEXT, "--shuffled/--in-order", shown="shuffled")] = None,
    train: Annotated[float | None, _setting("train_people", _SPLIT, "--train")] = None,
    dev: Annotated[float | None, _setting("dev_people", _SPLIT, "--dev")] = None,
    test: Annotated[float | None, _setting("test_people", _SPLIT, "--test")] = None,
) -> None:
    """Write a synthetic world of people: a corpus, and questions "Where was X born?" on some of them."""
    given = {name: value for name, value in locals().items() if name != "out" and value is not None}

    from attnlab.base.files import check_new_folder
    from attnlab.data.world.files import write_world
    from attnlab.data.world.world import World, WorldSpec

    spec = WorldSpec(**given)
    check_new_folder(out)
    world = World(spec)
    write_world(world, out)
    _report(world, out)


def _report(world: World, out: Path) -> None:
    from attnlab.data.world.world import SPLITS

    spec = world.spec
    place, share = world.most_common_place()
    size = (out / "corpus.txt").stat().st_size
    questions = ", ".join(f"{split} {sum(1 for _ in world.iter_questions(split)):,}" for split in SPLITS)
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
