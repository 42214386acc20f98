"""`attnlab explore ...`: attention by hand. Each command prints numbers and an explanation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnlab.base import console
from attnlab.base.errors import UserError
from attnlab.cli.help import example

if TYPE_CHECKING:
    from attnlab.explore import Exploration
    from attnlab.explore.attend import Array

explore = typer.Typer(
    no_args_is_help=True,
    help="Attention by hand: choose a query, see the weights, and learn what no query can do.",
    epilog='Matrices are files (.csv, .tsv, .json, .npy) or typed: --keys "1 0; 0 1". Rows count from 0.',
)

ExampleName = Annotated[str, typer.Option(help="Built-in matrices: selection, argmax, orthonormal, square or unequal.")]
KeysOption = Annotated[str | None, typer.Option(help='Keys, one per row: a file, or typed like "1 0; 0 1".')]
ValuesOption = Annotated[str | None, typer.Option(help="Values, one per row, as many as keys.")]
QueryOption = Annotated[str | None, typer.Option(help='The query: a file, or typed like "-2 1 1".')]
IndexOption = Annotated[int, typer.Option(help="Which row, counted from 0.")]
NormOption = Annotated[float | None, typer.Option(help="Maximum length of the query (default: no limit).")]
FigureOption = Annotated[Path | None, typer.Option(help="Write the figure to this file (.png, .svg, .pdf).")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print everything as JSON instead of tables.")]
SeedOption = Annotated[int, typer.Option(help="Seed of the random numbers.")]


def register(app: typer.Typer) -> None:
    app.add_typer(explore, name="explore")


@explore.command("select", epilog=example("attnlab explore select --index 1"))
def select_command(
    index: IndexOption = 0,
    example: ExampleName = "selection",
    keys: KeysOption = None,
    values: ValuesOption = None,
    norm: NormOption = None,
    figure: FigureOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find a query that returns one value."""
    from attnlab.explore import select

    _show(select(*_matrices(example, keys, values), index, _norm(norm)), figure, as_json)


@explore.command("identity", epilog=example("attnlab explore identity --example orthonormal"))
def identity_command(
    example: ExampleName = "selection",
    keys: KeysOption = None,
    values: ValuesOption = None,
    norm: NormOption = None,
    figure: FigureOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find a query matrix that returns every value."""
    from attnlab.explore import identity

    _show(identity(*_matrices(example, keys, values), _norm(norm)), figure, as_json)


@explore.command("average", epilog=example("attnlab explore average --figure average.png"))
def average_command(
    example: ExampleName = "selection",
    keys: KeysOption = None,
    values: ValuesOption = None,
    figure: FigureOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find a query that averages all values."""
    from attnlab.explore import average

    _show(average(*_matrices(example, keys, values)), figure, as_json)


@explore.command("average-some", epilog=example("attnlab explore average-some --rows 0,2"))
def average_some_command(
    rows: Annotated[str, typer.Option(help="The values to average, counted from 0.")] = "0,1",
    example: ExampleName = "selection",
    keys: KeysOption = None,
    values: ValuesOption = None,
    norm: NormOption = None,
    figure: FigureOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find a query that averages some values without the rest."""
    from attnlab.explore import average_some, read_rows

    k, v = _matrices(example, keys, values)
    _show(average_some(k, v, read_rows(rows, len(k), "row"), _norm(norm)), figure, as_json)


@explore.command("replace-key", epilog=example("attnlab explore replace-key --index 2 --rows 0,1,2"))
def replace_key_command(
    index: IndexOption = 2,
    rows: Annotated[str, typer.Option(help="The values that the output should average; one row: select it.")] = "0,1,2",
    unit: Annotated[bool, typer.Option("--unit", help="The new key must have length 1.")] = False,
    query: QueryOption = None,
    example: ExampleName = "selection",
    keys: KeysOption = None,
    values: ValuesOption = None,
    figure: FigureOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change one key so that an unchanged query gives another output.

    The default query is the one that averages the first two values, as in the documents.
    """
    from attnlab.explore import average_some, read_rows, read_vector, replace_key

    k, v = _matrices(example, keys, values)
    if query is None and len(k) < 2:
        raise UserError("there is only one key: give the query with --query.")
    kept = average_some(k, v, (0, 1)).queries[0] if query is None else read_vector(query, "--query")
    _show(replace_key(k, v, kept, index, read_rows(rows, len(k), "row"), unit), figure, as_json)


@explore.command("argmax", epilog=example('attnlab explore argmax --query "1 0 0"'))
def argmax_command(
    query: QueryOption = None,
    example: ExampleName = "argmax",
    keys: KeysOption = None,
    values: ValuesOption = None,
    figure: FigureOption = None,
    as_json: JsonOption = False,
) -> None:
    """Attend with argmax instead of softmax, and see what still gets a gradient."""
    from attnlab.explore import argmax, read_vector
    from attnlab.explore.examples import example as built_in

    k, v = _matrices(example, keys, values)
    q = read_vector(query, "--query") if query is not None else None
    if q is None and keys is None:
        q = built_in(example).query
    if q is None:
        raise UserError('the query is missing: give one with --query, for example --query "1 0 0".')
    _show(argmax(k, v, q), figure, as_json)


@explore.command("copy", epilog=example("attnlab explore copy --index 0 --longest 20"))
def copy_command(
    index: IndexOption = 0,
    longest: Annotated[float, typer.Option(help="Length of the longest query in the figure.")] = 30.0,
    example: ExampleName = "selection",
    keys: KeysOption = None,
    figure: FigureOption = None,
    as_json: JsonOption = False,
) -> None:
    """See how the weight on one key grows with the length of the query."""
    from attnlab.explore import copy

    _show(copy(_keys(example, keys), index, longest), figure, as_json)


@explore.command("extract", epilog=example("attnlab explore extract --dimension 6 --m 2 --p 2"))
def extract_command(
    basis_a: Annotated[str | None, typer.Option("--a", help="Basis of A, one vector per row.")] = None,
    basis_b: Annotated[str | None, typer.Option("--b", help="Basis of B, one vector per row.")] = None,
    mean: Annotated[bool, typer.Option("--mean", help="From the mean of the two instead of the sum.")] = False,
    dimension: Annotated[int, typer.Option(help="Dimensions of the space, for random subspaces.")] = 8,
    m: Annotated[int, typer.Option(help="Dimensions of A, for random subspaces.")] = 3,
    p: Annotated[int, typer.Option(help="Dimensions of B, for random subspaces.")] = 2,
    seed: SeedOption = 0,
    figure: FigureOption = None,
    as_json: JsonOption = False,
) -> None:
    """Recover one vector from the sum or mean of two vectors in different subspaces."""
    from attnlab.explore import extract, random_subspaces, read_matrix

    if (basis_a is None) != (basis_b is None):
        raise UserError("--a and --b belong together: give both, or neither for random subspaces.")
    if basis_a is not None and basis_b is not None:
        bases = read_matrix(basis_a, "--a"), read_matrix(basis_b, "--b")
    else:
        bases = random_subspaces(dimension, m, p, seed)
    _show(extract(*bases, of_mean=mean, seed=seed), figure, as_json)


@explore.command("noise", epilog=example("attnlab explore noise --items 4 --samples 1000"))
def noise_command(
    items: Annotated[int, typer.Option(help="Number of keys.")] = 4,
    alpha: Annotated[float, typer.Option(help="Variance of every key in every direction.")] = 1e-6,
    stretch: Annotated[float, typer.Option(help="Extra variance of one key along itself.")] = 0.5,
    beta: Annotated[float, typer.Option(help="Scale of the queries.")] = 20.0,
    samples: Annotated[int, typer.Option(help="Number of draws of the keys.")] = 5000,
    seed: SeedOption = 0,
    figure: FigureOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare one head and two when one key varies in length."""
    from attnlab.explore import noise

    _show(noise(items, alpha, stretch, beta, samples, seed), figure, as_json)


@explore.command("construct", epilog=example("attnlab explore construct --betas 1,3,5"))
def construct_command(
    betas: Annotated[str, typer.Option(help="Lengths of u_a to u_d to try.")] = "1,2,3,4,5",
    dimension: Annotated[int, typer.Option(help="Dimensions of the space, at least 4.")] = 4,
    seed: SeedOption = 0,
    figure: FigureOption = None,
    as_json: JsonOption = False,
) -> None:
    """Build the K, Q, V with which one token takes part of another."""
    from attnlab.explore import construct, read_vector

    _show(construct(tuple(read_vector(betas, "--betas").tolist()), dimension, seed), figure, as_json)


@explore.command("reach", epilog=example("attnlab explore reach --example square --size 2"))
def reach_command(
    example: ExampleName = "square",
    keys: KeysOption = None,
    rows: Annotated[str | None, typer.Option(help="Decide only this set of keys.")] = None,
    size: Annotated[int | None, typer.Option(min=1, help="Decide all sets of up to this many keys.")] = None,
    figure: FigureOption = None,
    as_json: JsonOption = False,
) -> None:
    """Decide which keys some query selects and which sets some query averages."""
    from attnlab.explore import reach, read_rows

    k = _keys(example, keys)
    chosen = read_rows(rows, len(k), "row") if rows is not None else None
    _show(reach(k, size, chosen), figure, as_json)


def _keys(example: str, keys: str | None) -> Array:
    from attnlab.explore import read_matrix
    from attnlab.explore.examples import example as built_in

    return built_in(example).keys if keys is None else read_matrix(keys, "--keys")


def _matrices(example: str, keys: str | None, values: str | None) -> tuple[Array, Array]:
    from attnlab.explore import read_matrix
    from attnlab.explore.examples import example as built_in

    if (keys is None) != (values is None):
        raise UserError("--keys and --values belong together: give both, or an --example.")
    if keys is None or values is None:
        matrices = built_in(example)
        return matrices.keys, matrices.values
    return read_matrix(keys, "--keys"), read_matrix(values, "--values")


def _norm(norm: float | None) -> float | None:
    if norm is not None and not 0 < norm < float("inf"):
        raise UserError(f"--norm must be a positive length, got {norm:g}.")
    return norm


def _show(result: Exploration, figure: Path | None, as_json: bool) -> None:
    """Print the result to standard output and write the figure to its file."""
    if figure is not None:
        console.say(f"wrote {result.draw(figure)}")
    if as_json:
        console.out.print_json(json.dumps(result.as_dict(), allow_nan=False), indent=None, highlight=False)
        return
    from rich.table import Table
    from rich.text import Text

    head, rows = result.table()
    table = Table(title=result.title, title_justify="left", title_style="bold")
    for name in head:
        table.add_column(Text(name))
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console.result(table)
    for name, number in result.summary():
        console.result(Text(f"{name}: {number}"))
    console.result(Text(result.why))
