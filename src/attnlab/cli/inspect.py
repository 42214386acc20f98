"""`attnlab inspect RUN --text "…"`: the attention of a model on a text, as a page, a figure or JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnlab.base import console
from attnlab.base.errors import UserError
from attnlab.cli.help import example

if TYPE_CHECKING:
    from attnlab.interpret.maps import AttentionMaps

PAGE = "inspect.html"


def inspect(
    source: Annotated[
        str, typer.Argument(metavar="RUN_OR_MODEL", help="Folder of a run, or a pretrained model: name, folder or id.")
    ],
    text: Annotated[str, typer.Option("--text", help="The text to read.")],
    second: Annotated[
        str | None,
        typer.Option("--second", metavar="TEXT", help="The other text of a pair, or what a T5 has answered."),
    ] = None,
    layer: Annotated[
        str | None,
        typer.Option("--layer", metavar="N", help="Only this layer, from 0, or by name: decoder.blocks.0.cross."),
    ] = None,
    head: Annotated[
        str | None, typer.Option("--head", metavar="N.H", help="Head H of layer N: shown first, alone in a figure.")
    ] = None,
    influence: Annotated[
        bool | None,
        typer.Option(
            "--influence/--no-influence",
            help="Compute how much each output depends on each input; without the option, for mixers without weights "
            "and where it takes seconds.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE", help=f"The page (default: {PAGE} in the run's folder, or here for a model)."
        ),
    ] = None,
    figure: Annotated[
        Path | None, typer.Option("--figure", metavar="FILE", help="Write a picture, PNG, SVG or PDF.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print weights and influence as JSON.")] = False,
) -> None:
    """Show the attention of a model on a text: every layer and head, on a page that works without a network.

    With --figure or --json the page is written only if --out is given.
    """
    from attnlab.api import interpret
    from attnlab.interpret.attention_page import check_page_path, write_attention_page

    page = out if out is not None or figure or as_json else _default_page(source)
    if page is not None:
        check_page_path(page)
    chosen = None if head is None else _read_head(head)
    with console.working("reading the text ..."):
        maps = interpret.inspect(source, text, second, layer=layer, influence=influence)
    place, number = (maps.place(chosen[0]), chosen[1]) if chosen else (0, 0)
    if chosen:
        maps.attentions[place].head(number)
    notes = maps.reading.notes if page is None else write_attention_page(page, maps, place, number)
    for note in notes:
        console.warn(note)
    if as_json:
        console.json_result(maps.as_dict(), indent=None)
    if figure is not None:
        from attnlab.interpret.attention_figures import save_figure

        alone = layer is not None and maps.attentions[0].weights is None  # one influence, so large with its tokens
        which = (place, number) if chosen else (0, None) if alone else (None, None)
        console.say(f"wrote {save_figure(figure, maps, *which)}")
    if not as_json:
        _print(maps, page)


def _print(maps: AttentionMaps, page: Path | None) -> None:
    for line in [_overview(maps), *maps.remarks]:
        console.result(line)
    if page is not None:
        console.result(f"page: {page}")


def _overview(maps: AttentionMaps) -> str:
    """How much there is to see, in one line."""
    reading = maps.reading
    tokens = f"{len(reading.tokens)} tokens" + (f" and {len(reading.target)} of the answer" if reading.target else "")
    with_weights = [each for each in maps.attentions if each.weights is not None]
    count = len(maps.attentions)
    parts = [f"{maps.model}: {tokens}, {count} {'attention' if count == 1 else 'attentions'}"]
    if with_weights:
        parts.append(f"weights of {sum(each.heads for each in with_weights)} heads")
    if influences := sum(each.influence is not None for each in maps.attentions):
        parts.append(f"influence of {influences}")
    return ", ".join(parts) + "."


def _default_page(source: str) -> Path:
    """In the folder of a run, which holds all that is known about it; otherwise here."""
    from attnlab.runs.folder import is_run

    return Path(source) / PAGE if is_run(Path(source)) else Path(PAGE)


def _read_head(text: str) -> tuple[str, int]:
    """Head 3 of layer 1 is "1.3"; a layer may also be given by name."""
    layer, _, head = text.rpartition(".")
    if not layer or not head.isdecimal():
        raise UserError(f"--head: expected LAYER.HEAD, for example 1.3, got {text!r}.")
    return layer, int(head)


def register(app: typer.Typer) -> None:
    app.command(epilog=example('attnlab inspect runs/my-run --text "Where was Ada Lovelace born?"'))(inspect)
