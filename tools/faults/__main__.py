"""`python -m tools.faults`: cause faults for some minutes, and write the table of docs/reliability.md.

Every family has a share of the time. The seed is printed: with it, and with --only, what was found is found again.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from random import Random

from tools.faults import families
from tools.faults.family import Family, Try

MINUTES = 15.0
START, END = "<!-- faults: begin -->", "<!-- faults: end -->"


def main() -> int:
    options = _options()
    every = [family for family in _families() if options.only in (None, family.name)]
    if not every:
        sys.exit(f"--only {options.only}: choose from {', '.join(family.name for family in _families())}")
    print(f"seed {options.seed}", flush=True)
    tried: list[Try] = []
    whole = sum(family.share for family in every)
    with tempfile.TemporaryDirectory(prefix="faults-") as place:
        os.environ |= {"ATTNLAB_CONFIG": f"{place}/config", "XDG_CACHE_HOME": f"{place}/cache", "NO_COLOR": "1"}
        for family in every:
            seconds = 60 * options.minutes * family.share / whole
            tried += _cause(family, options, Path(place), seconds)
    table = "\n".join(_table(tried, options.seed))
    print(f"\n{table}")
    if options.out is not None:
        _insert(options.out, table)
    return int(any(each.failure for each in tried))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.faults", description=__doc__)
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32, help="of everything that is drawn")
    parser.add_argument("--only", metavar="FAMILY", help="one family by its name")
    parser.add_argument("--most", type=int, metavar="N", help="tries per family at most")
    parser.add_argument("--out", type=Path, metavar="FILE", help="a page with the two marks around the table")
    return parser.parse_args()


def _families() -> list[Family]:
    names = sorted(module.name for module in pkgutil.iter_modules(families.__path__))
    return [importlib.import_module(f"tools.faults.families.{name}").FAMILY for name in names]


def _cause(family: Family, options: argparse.Namespace, place: Path, seconds: float) -> list[Try]:
    folder = place / family.name.replace(" ", "-")
    folder.mkdir()
    deadline, tried = time.monotonic() + seconds, list[Try]()
    least = family.least * options.minutes / MINUTES
    with closing(family.tries(Random(f"{options.seed} {family.name}"), folder)) as tries:
        for each in tries:
            tried.append(each)
            if each.failure:
                print(f"{family.name}, try {len(tried)}: {each.fault}: {each.detail}\n  {each.failure}", flush=True)
            if (time.monotonic() > deadline and len(tried) >= least) or len(tried) == options.most:
                break
    print(f"{family.name}: {len(tried)} tries, {sum(bool(each.failure) for each in tried)} not survived", flush=True)
    return tried


def _table(tried: Iterable[Try], seed: int) -> Iterable[str]:
    rows: dict[str, list[Try]] = {}
    for each in tried:
        rows.setdefault(each.fault, []).append(each)
    yield f"| fault (seed {seed}) | tried | survived |"
    yield "| --- | ---: | ---: |"
    for fault, every in rows.items():
        yield f"| {fault} | {len(every):,} | {sum(not each.failure for each in every):,} |"


def _insert(page: Path, table: str) -> None:
    before, _, rest = page.read_text(encoding="utf-8").partition(START)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{START}\n{table}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
