"""Draw the figures of report.md and fill in its tables, all from results/*.json. `python -m write_up` does both.

A table stands between `<!-- table: NAME -->` and `<!-- end -->`; as long as its results do not exist, nothing does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from attnlab.base.files import write_text
from write_up.attention_tables import ATTENTION_BLOCKS
from write_up.classifier_tables import CLASSIFIER_BLOCKS
from write_up.pictures import draw_curves, draw_masks
from write_up.store import Store, table

FOLDER = Path(__file__).parents[1]
BLOCK = re.compile(r"(<!-- table: (?P<name>[^>]+?) -->\n)(?P<content>.*?)(<!-- end -->)", re.DOTALL)


def costs(store: Store) -> Iterator[str]:
    """Every measurement: its command, and how long it took."""
    rows = []
    for results in store.find("A2S[23]*"):
        parts = results.get("cells") or [run for runs in results.get("runs", {}).values() for run in runs.values()]
        minutes = sum(part["seconds"] for part in parts or [results]) / 60
        cpu, cores = results["machine"]["cpu"], results["machine"]["cores"]
        machine = f"{cpu}, {cores} core{'s' if cores != 1 else ''}"
        rows.append([f"`{results['command']}`", f"{minutes:.1f}", machine])
    if rows:
        yield from table(("command", "minutes", "machine"), *rows)


BLOCKS = {**ATTENTION_BLOCKS, **CLASSIFIER_BLOCKS, "costs": costs}


def filled(page: str, store: Store) -> str:
    """The page with every table made anew."""

    def fill(block: re.Match[str]) -> str:
        lines = "\n".join(BLOCKS[block["name"]](store))
        return f"{block[1]}\n{lines.strip()}\n\n{block[4]}" if lines else f"{block[1]}{block[4]}"

    return BLOCK.sub(fill, page)


def draw_all(store: Store, folder: Path) -> list[Path]:
    """The figures of all results that exist."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = [path for results in store.find("A2S2-*") for path in draw_masks(results, folder)]
    if trainings := store.find("A2S3-AdamW-seed*"):
        drawn += [draw_curves(trainings, name, folder / f"9-AdamW-{name}.png") for name in ("accuracy", "loss")]
    for name in ("SGD", "SGD-1000x", "Adagrad"):
        if trainings := store.find(f"A2S3-{name}-seed*"):
            drawn.append(draw_curves(trainings, "accuracy", folder / f"10-{name}-accuracy.png"))
    return drawn


def main() -> None:
    store, report = Store(FOLDER / "results"), FOLDER / "report.md"
    for path in draw_all(store, FOLDER / "figures"):
        print(path.relative_to(FOLDER))
    write_text(report, filled(report.read_text(encoding="utf-8"), store))
    print(report.name)


if __name__ == "__main__":
    main()
