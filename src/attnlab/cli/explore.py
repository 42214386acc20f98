"""`attnlab explore ...`: attention by hand. Each command prints numbers and an explanation."""

from __future__ import annotations

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

EXAMPLE_HELP = "Built-in matrices: selection, argmax, orthonormal, square or unequal."
SelectionExample = Annotated[str | None, typer.Option(help=EXAMPLE_HELP, show_default="selection")]
ArgmaxExample = Annotated[str | None, typer.Option(help=EXAMPLE_HELP, show_default="argmax")]
SquareExample = Annotated[str | None, typer.Option(help=EXAMPLE_HELP, show_default="square")]
KeysOption = Annotated[str | None, typer.Option(help='Keys, one per row: a file, or typed like "1 0; 0 1".')]
ValuesOption = Annotated[str | None, typer.Option(help="Values, one per row, as many as keys.")]
QueryOption = Annotated[str | None, typer.Option(help='The query: a file, or typed like "-2 1 1".')]
IndexOption = Annotated[int, typer.Option(help="Which row, counted from 0.")]
NormOption = Annotated[float | None, typer.Option(help="Maximum length of the query (default: no limit).")]
FigureOption = Annotated[Path | None, typer.Option(help="Write the figure to this file (.png, .svg, .pdf).")]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print the result as JSON, with all digits, instead of tables.")
]
SeedOption = Annotated[int, typer.Option(help="Seed of the random numbers.")]


def register(app: typer.Typer) -> None:
    app.add_typer(explore, name="explore")


@explore.command("attend", epilog=example('attnlab explore attend --query "1,0,2" --target "0 0 0"'))
def attend_command(
    query: QueryOption = None,
    target: Annotated[str | None, typer.Option(help="The output to compare with: a file, or typed.")] = None,
    example: SelectionExample = None,
    keys: KeysOption = None,
    values: ValuesOption = None,
    figure: FigureOption = None,
    as_json: JsonOption = False,
) -> None:
    """Attend with your own query: scores, weights, output, and the distance to a target."""
    from attnlab.explore import read_vector, try_query

    k, v = _matrices(example, keys, values)
    wanted = read_vector(target, "--target") if target is not None else None
    _show(try_query(_query(query, example, keys), k, v, wanted), figure, as_json)


@explore.command("select", epilog=example("attnlab explore select --index 1"))
def select_command(
    index: IndexOption = 0,
    example: SelectionExample = None,
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
    example: SelectionExample = None,
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
    example: SelectionExample = None,
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
    example: SelectionExample = None,
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
    example: SelectionExample = None,
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
    kept = average_some(k, v, (0, 1)[: len(k)]).queries[0] if query is None else read_vector(query, "--query")
    _show(replace_key(k, v, kept, index, read_rows(rows, len(k), "row"), unit), figure, as_json)


@explore.command("argmax", epilog=example('attnlab explore argmax --query "1 0 0"'))
def argmax_command(
    query: QueryOption = None,
    example: ArgmaxExample = None,
    keys: KeysOption = None,
    values: ValuesOption = None,
    figure: FigureOption = None,
    as_json: JsonOption = False,
) -> None:
    """Attend with argmax instead of softmax, and see what still gets a gradient."""
    from attnlab.explore import argmax

    k, v = _matrices(example, keys, values, "argmax")
    _show(argmax(k, v, _query(query, example, keys, "argmax")), figure, as_json)


@explore.command("copy", epilog=example("attnlab explore copy --index 0 --longest 20"))
def copy_command(
    index: IndexOption = 0,
    longest: Annotated[float, typer.Option(help="Length of the longest query in the figure.")] = 30.0,
    example: SelectionExample = None,
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
    dimension: Annotated[
        int | None, typer.Option(help="Dimensions of the space, for random subspaces.", show_default="8")
    ] = None,
    m: Annotated[int | None, typer.Option(help="Dimensions of A, for random subspaces.", show_default="3")] = None,
    p: Annotated[int | None, typer.Option(help="Dimensions of B, for random subspaces.", show_default="2")] = None,
    seed: SeedOption = 0,
    figure: FigureOption = None,
    as_json: JsonOption = False,
) -> None:
    """Recover one vector from the sum or mean of two vectors in different subspaces."""
    from attnlab.explore import extract, random_subspaces, read_matrix

    if (basis_a is None) != (basis_b is None):
        raise UserError("--a and --b belong together: give both, or neither for random subspaces.")
    if basis_a is not None and basis_b is not None:
        if (dimension, m, p) != (None, None, None):
            raise UserError("--dimension, --m and --p are for random subspaces: leave them out with --a and --b.")
        bases = read_matrix(basis_a, "--a"), read_matrix(basis_b, "--b")
    else:
        d, m, p = (default if size is None else size for size, default in ((dimension, 8), (m, 3), (p, 2)))
        bases = random_subspaces(d, m, p, seed)
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
    """Compare one head and two when one key varies in length: exactly, and in draws."""
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
    example: SquareExample = None,
    keys: KeysOption = None,
    rows: Annotated[str | None, typer.Option(help="Decide only this set of keys.")] = None,
    size: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Decide all sets of up to this many keys (default: all of them, pairs if there are more than 6).",
        ),
    ] = None,
    figure: FigureOption = None,
    as_json: JsonOption = False,
) -> None:
    """Decide which keys some query selects and which sets some query averages."""
    from attnlab.explore import reach, read_rows

    k = _keys(example, keys, "square")
    if rows is not None and size is not None:
        raise UserError("--size has no effect with --rows: give one of them.")
    chosen = read_rows(rows, len(k), "row") if rows is not None else None
    _show(reach(k, size, chosen), figure, as_json)


def _keys(example: str | None, keys: str | None, default: str = "selection") -> Array:
    from attnlab.explore import read_matrix
    from attnlab.explore.examples import example as built_in

    if keys is None:
        return built_in(example or default).keys
    if example is not None:
        raise UserError("--example has no effect with --keys: give one of them.")
    return read_matrix(keys, "--keys")


def _matrices(
    example: str | None, keys: str | None, values: str | None, default: str = "selection"
) -> tuple[Array, Array]:
    from attnlab.explore import read_matrix
    from attnlab.explore.examples import example as built_in

    if (keys is None) != (values is None):
        raise UserError("--keys and --values belong together: give both, or an --example.")
    if values is None:
        return _keys(example, keys, default), built_in(example or default).values
    return _keys(example, keys), read_matrix(values, "--values")


def _query(query: str | None, example: str | None, keys: str | None, default: str = "selection") -> Array:
    """The query that was given, or that of the example if it has one."""
    from attnlab.explore import read_vector
    from attnlab.explore.examples import example as built_in

    if query is not None:
        return read_vector(query, "--query")
    known = built_in(example or default).query if keys is None else None
    if known is None:
        raise UserError('the query is missing: give one with --query, for example --query "1 0 0".')
    return known


def _norm(norm: float | None) -> float | None:
    if norm is not None and not 0 < norm < float("inf"):
        raise UserError(f"--norm must be a positive length, got {norm:g}.")
    return norm


def _show(result: Exploration, figure: Path | None, as_json: bool) -> None:
    """Print the result to standard output and write the figure to its file."""
    if figure is not None:
        console.say(f"wrote {result.draw(figure)}")
    if as_json:
        console.json_result(result.as_dict(), indent=None)
        return
    from rich.table import Table
    from rich.text import Text

    from attnlab.explore.exploration import is_shortened, rows_of

    head, rows = result.table()
    table = Table(title=result.title, title_justify="left", title_style="bold")
    for name in head:
        table.add_column(Text(name))
    for row in rows:
        table.add_row(*map(console.cell, row))
    console.result(table)
    for name, matrix in result.matrices().items():
        rows_columns = " × ".join(str(size) for size in matrix.shape)
        hint = ", in full with --json" if is_shortened(matrix) else ""
        console.result(Text("\n".join([f"{name} ({rows_columns}{hint})", *rows_of(matrix)])))
    for name, number in result.summary():
        console.result(Text(f"{name}: {number}"))
    console.result(Text(result.why))
