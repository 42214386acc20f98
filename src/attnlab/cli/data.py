"""`attnlab data`: labelled texts by name, what they contain, and data sets from the package registry or the hub."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from attnlab.base import console
from attnlab.base.errors import UserError, unknown
from attnlab.cli.help import example

app = typer.Typer(help="Labelled texts: list the tasks, show one or your own file, get one.")
DataFolder = Annotated[
    Path | None, typer.Option(metavar="FOLDER", help="Folder of the tasks.", show_default="the folder in ATTNLAB_DATA")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
_OWN_FILE = "Your own file"
GETS = ("vader",)
SHARES = 20
"""Classes up to which the share of each is shown."""
DOUBTFUL = 5
"""Labels that are shown as likely wrong."""


@app.command("list", epilog=example("attnlab data list"))
def list_tasks(data_folder: DataFolder = None, as_json: Json = False) -> None:
    """List the tasks, with their sizes where their files are found."""
    from attnlab.data.tasks.catalog import ABOUT, load_task

    tasks: list[dict[str, Any]] = []
    for name, about in ABOUT.items():
        try:
            facts = load_task(name, data_folder).facts()
            tasks.append({"task": name, "about": about, "classes": facts["classes"], "examples": facts["examples"]})
        except UserError as error:
            tasks.append({"task": name, "about": about, "missing": str(error)})
    if as_json:
        console.json_result(tasks)
        return
    rows = []
    for task in tasks:
        sizes = ["not found", "", ""]
        if "missing" not in task:
            sizes = [f"{size:,}" for size in task["examples"].values()]
        rows.append([task["task"], *sizes, str(len(task.get("classes", [])) or ""), task["about"]])
    _table(("task", "train", "dev", "test", "classes", "question"), rows, left=("task", "question"))
    for task in tasks:
        if "missing" in task:
            console.say(task["missing"])


@app.command(epilog=example("attnlab data show reviews.csv --text review --label stars"))
def show(
    source: Annotated[
        str,
        typer.Argument(
            metavar="NAME|FILE",
            help="A task, a file (CSV, TSV, JSONL, JSON, Parquet), a folder, or hub:owner/name (or /name/part).",
        ),
    ],
    text: Annotated[str | None, typer.Option(help="Column of the text.", rich_help_panel=_OWN_FILE)] = None,
    pair: Annotated[str | None, typer.Option(help="Column of a second text.", rich_help_panel=_OWN_FILE)] = None,
    label: Annotated[str | None, typer.Option(help="Column of the label.", rich_help_panel=_OWN_FILE)] = None,
    classes: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="Names of the classes, in order.", rich_help_panel=_OWN_FILE)
    ] = None,
    header: Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header",
            help="The first row names columns (--no-header: it does not).",
            rich_help_panel=_OWN_FILE,
        ),
    ] = None,
    separator: Annotated[
        str | None,
        typer.Option(
            help="Between fields: comma, semicolon, tab, bar, bars (|||); word (a label is the first word), fasttext.",
            show_default="detected",
            rich_help_panel=_OWN_FILE,
        ),
    ] = None,
    quote: Annotated[
        str | None,
        typer.Option(help="Around fields: double, single or none.", show_default="detected", rich_help_panel=_OWN_FILE),
    ] = None,
    encoding: Annotated[
        str | None, typer.Option(help="Encoding of the files.", show_default="detected", rich_help_panel=_OWN_FILE)
    ] = None,
    skip_bad_rows: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Leave out rows that cannot be used and write them to a new CSV; otherwise they are refused.",
            rich_help_panel=_OWN_FILE,
        ),
    ] = None,
    dev: Annotated[Path | None, typer.Option(help="File of the dev split.", rich_help_panel=_OWN_FILE)] = None,
    test: Annotated[Path | None, typer.Option(help="File of the test split.", rich_help_panel=_OWN_FILE)] = None,
    seed: Annotated[int, typer.Option(help="Seed of a split that the lab draws.", min=0)] = 0,
    data_folder: DataFolder = None,
    label_errors: Annotated[
        bool, typer.Option("--label-errors/--no-label-errors", help="Look for labels that may be wrong.")
    ] = True,
    as_json: Json = False,
) -> None:
    """Show a task or a file: sizes, balance of the classes, lengths, texts that repeat, doubtful labels, examples."""
    from attnlab.base.files import check_new_file
    from attnlab.data.tasks.bad_rows import write_bad_rows
    from attnlab.data.tasks.catalog import load_labelled
    from attnlab.data.tasks.summary import summarise
    from attnlab.data.tasks.tables import ColumnRequest
    from attnlab.evaluation.label_errors import find_suspects

    names = tuple(name.strip() for name in classes.split(",")) if classes is not None else ()
    if skip_bad_rows is not None:
        check_new_file(skip_bad_rows)
    request = ColumnRequest(
        text,
        pair,
        label,
        names,
        header,
        separator=separator,
        quote=quote,
        encoding=encoding,
        skip_bad_rows=skip_bad_rows is not None,
    )
    data = load_labelled(source, request, dev, test, seed, data_folder)
    if skip_bad_rows is not None and data.skipped:
        write_bad_rows(data.skipped, skip_bad_rows)
    summary = summarise(data)
    with console.working("looking for labels that may be wrong ..."):
        suspects = find_suspects(data) if label_errors else None
    if suspects is not None:
        summary["label_errors"] = {
            "sentence": suspects.sentence(),
            "count": len(suspects.found),
            "of": suspects.looked_at,
            "rows": suspects.rows()[:DOUBTFUL],
        }
    if as_json:
        console.json_result(summary)
    else:
        _print(summary)


@app.command(epilog=example("attnlab data get vader --out data/vader"))
def get(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="vader (rated snippets, 4 files), or a data set of the hub: hub:owner/name (or /name/part).",
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder to write, new or empty.")],
) -> None:
    """Get labelled texts from the package registry that pip is set up for (vader), or from the hub."""
    from attnlab.base.files import check_new_folder
    from attnlab.data.tasks import hub_files, hub_sets, vader

    if source := hub_files.parse(name):
        for file, rows in hub_sets.write_set(source, out).items():
            _line(f"{out / file}: {rows:,} rows")
        return
    if name not in GETS:
        raise UserError(unknown("set", name, GETS))
    check_new_folder(out)
    with console.working("downloading"):
        sets = vader.read_archive(vader.fetch_source(vader.PACKAGE, vader.VERSION, vader.SHA256))
    vader.write_sets(sets, out)
    for file, snippets in sets.items():
        _line(f"{out / file}.tsv: {snippets}")
    console.warn("movie.tsv contains the sentences of SST-2: never train on one of them and report on the other.")


@app.command(epilog=example("attnlab data repeats repeats.txt"))
def repeats(
    out: Annotated[Path, typer.Argument(metavar="FILE", help="The new text file.")],
    characters: Annotated[int, typer.Option(min=100, help="Its length.")] = 1_000_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the strings.")] = 0,
) -> None:
    """Write a text of random strings, each written 2 to 4 times: what induction heads learn from."""
    from attnlab.base.files import check_new_file, write_text
    from attnlab.data.text.repeats import repeated_strings

    check_new_file(out)
    text = repeated_strings(characters, seed)
    write_text(out, text)
    _line(f"{out}: {len(text):,} characters")


def _print(summary: dict[str, Any]) -> None:
    _line(summary["name"])
    for note in summary["notes"]:
        _line(f"  {note}")
    counts: dict[str, dict[str, int]] = summary["counts"]
    totals = {split: sum(count.values()) for split, count in counts.items()}
    _line("")
    _table(
        ("class", *counts, "weight"),
        [
            ["all", *(f"{total:,}" for total in totals.values()), ""],
            *(
                [
                    name,
                    *(_count(counts[split][name], totals[split], len(counts[split])) for split in counts),
                    f"{weight:.3f}",
                ]
                for name, weight in summary["weights"].items()
            ),
        ],
        left=("class",),
    )
    _line("")
    units = [(split, unit, sizes) for split, both in summary["lengths"].items() for unit, sizes in both.items()]
    lengths = "length of text and pair" if summary["paired"] else "length"
    _table(
        (lengths, "in", *units[0][2]),
        [[split, unit, *(f"{value:,}" for value in sizes.values())] for split, unit, sizes in units],
        left=(lengths, "in"),
    )
    _line("")
    if not summary["across"] and not summary["contradicting"]:
        _line("no text is in two splits, and none has two labels.")
    for splits, repeated in summary["across"].items():
        _line(f"texts of {splits} too: {repeated['count']:,}")
        _examples(repeated["examples"])
    for split, contradicting in summary["contradicting"].items():
        _line(f"texts of {split} with more than one label: {contradicting['count']:,}")
        _examples(contradicting["examples"])
    if doubted := summary.get("label_errors"):
        _line(doubted["sentence"])
        for row in doubted["rows"]:
            text = " | ".join(_short(row[part]) for part in ("text", "pair") if part in row)
            _line(f"  {row['label']}, likely {row['likely']} ({row['probability']:.0%}): {text}")
    _line("examples:")
    _examples(summary["examples"])


def _count(count: int, total: int, classes: int) -> str:
    """With its share, unless there are so many classes that it is nearly nothing for all."""
    return f"{count:,} ({count / max(1, total):.1%})" if classes <= SHARES else f"{count:,}"


def _examples(examples: list[dict[str, str]]) -> None:
    for row in examples:
        _line(f"  {row['label']}: {' | '.join(_short(row[part]) for part in ('text', 'pair') if part in row)}")


def _short(text: str, longest: int = 90) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= longest else f"{flat[: longest - 1]}…"


def _line(text: str) -> None:
    """Print a line of user text: square brackets in it are not markup."""
    console.result(text)


def _table(titles: tuple[str, ...], rows: list[list[str]], left: tuple[str, ...]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in titles:
        table.add_column(title, justify="left" if title in left else "right", no_wrap=title != "question")
    for row in rows:
        table.add_row(*map(console.cell, row))
    console.result(table)


def register(lab: typer.Typer) -> None:
    lab.add_typer(app, name="data")
