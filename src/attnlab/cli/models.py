"""`attnlab models`: list pretrained models, show one, get one as a folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from attnlab.base import console
from attnlab.base.errors import UserError
from attnlab.cli.help import example

app = typer.Typer(help="Pretrained models: list them, show one, get one as a folder.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(metavar="NAME|FOLDER", help="A short name, a hub id (owner/name) or a folder.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
COLUMNS = ("name", "family", "layers", "width", "parameters", "download", "here", "hub id", "good for")
BRIEF = ("name", "family", "parameters", "download", "here")
WIDE = 140  # columns of a terminal that fits all of COLUMNS


@app.command("list", epilog=example("attnlab models list"))
def list_models(as_json: Json = False) -> None:
    """List the models with short names, and whether they are on this machine."""
    rows = [*_catalogue(), *_others()]
    if as_json:
        console.json_result(rows)
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    shown = COLUMNS if console.out.width >= WIDE else BRIEF
    for title in shown:
        right = title in ("layers", "width", "parameters", "download")
        table.add_column(title, justify="right" if right else "left", no_wrap=title != "good for")
    for row in rows:
        cells = row | {
            "parameters": f"{row['millions']:,.1f}M" if row["millions"] else "",
            "download": f"{row['megabytes']:,} MB" if row["megabytes"] else "",
            "here": row["where"] or "no",
            "hub id": row["hub"],
        }
        words = [cells[title] for title in shown]
        table.add_row(*(console.cell(word or "") for word in words))
    console.result(table)
    console.say(
        "A model that is not here is downloaded when it is used, or with `attnlab models get NAME`. Any other hub id "
        "(owner/name) and any folder with config.json, weights and tokenizer work too."
    )


@app.command(epilog=example("attnlab models show minilm"))
def show(name: Name, as_json: Json = False) -> None:
    """Show a model: family, shape, vocabulary, parameters, which heads it has, licence."""
    from attnlab.models.pretrained.folder import describe
    from attnlab.models.pretrained.load import exchanged_layers
    from attnlab.models.pretrained.source import model_folder

    folder = model_folder(name)
    facts = describe(folder)
    try:
        facts["fast encoder"] = exchanged_layers(folder)
    except UserError:  # without transformers, or of a family it does not know, there is no encoder to speed up
        facts["fast encoder"] = None
    if as_json:
        console.json_result(facts)
        return
    for title, value in facts.items():
        if isinstance(value, bool):
            value = "present" if value else "missing"
        elif isinstance(value, list):
            value = ", ".join(map(str, value)) or "none"
        if value is not None:
            number = f"{value:,}" if isinstance(value, int) else str(value)
            console.result(f"{title + ':':<22}{number}")


@app.command(epilog=example("attnlab models get minilm --to models/minilm"))
def get(
    name: Name,
    to: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder to write.", show_default="the hub's cache")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the model in FOLDER.")] = False,
) -> None:
    """Get a model from the hub: configuration, tokenizer and weights, never code; all files or none."""
    from attnlab.base.files import sha256
    from attnlab.models.pretrained.folder import weight_files
    from attnlab.models.pretrained.get import get_model
    from attnlab.models.pretrained.source import model_folder

    if to is None:
        folder = model_folder(name)
    else:
        get_model(name, to, overwrite)
        folder = to
    console.result(str(folder))
    for path in weight_files(folder):
        size = f"{path.stat().st_size / 1e6:,.1f} MB"
        console.result(f"  {path.name}  {size}  sha256 {sha256(path)}")


def _catalogue() -> list[dict[str, Any]]:
    from attnlab.models.pretrained.catalog import MODELS
    from attnlab.models.pretrained.source import find_here

    rows = []
    for entry in MODELS:
        try:
            location = find_here(entry.name)
        except UserError:  # the package is not installed
            location = None
        rows.append(
            {
                "name": entry.name,
                "hub": entry.hub,
                "family": entry.family,
                "layers": entry.layers,
                "width": entry.width,
                "millions": entry.millions,
                "megabytes": entry.megabytes,
                "where": location and location.where,
                "folder": location and str(location.folder),
                "good for": entry.good_for,
            }
        )
    return rows


def _others() -> list[dict[str, Any]]:
    """Folders with other names in the models folder."""
    from attnlab.models.pretrained.catalog import CATALOG
    from attnlab.models.pretrained.folder import describe
    from attnlab.models.pretrained.source import VARIABLE

    root = os.environ.get(VARIABLE)
    rows = []
    for path in sorted(Path(root).glob("*/config.json")) if root else []:
        folder = path.parent
        if folder.name in CATALOG:
            continue
        try:
            facts = describe(folder)
        except UserError as error:
            console.say(str(error))
            continue
        rows.append(
            {
                "name": folder.name,
                "hub": None,
                "family": facts["family"],
                "layers": facts["layers"],
                "width": facts["width"],
                "millions": facts["parameters"] and facts["parameters"] / 1e6,
                "megabytes": None,
                "where": "models folder",
                "folder": str(folder),
                "good for": "a folder of your own",
            }
        )
    return rows


def register(lab: typer.Typer) -> None:
    lab.add_typer(app, name="models")
