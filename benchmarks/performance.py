"""All benchmarks, one after the other at a stated size, and the page docs/performance.md: `make bench`.

    python benchmarks/performance.py                                 # under half an hour on two quiet cores
    python benchmarks/performance.py --only sampling decoding        # without --out nothing is written
    python benchmarks/performance.py --out docs/performance.md --nanogpt path/to/nanoGPT --mingpt path/to/minGPT

Each benchmark is a process of its own; its command, its ratios and its peak memory become rows of the page. A ratio is
the peer's time divided by the lab's, unless the row states another one: above 1 the lab is faster.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnlab.base.files import write_text
from attnlab.base.machine import facts

HERE = Path(__file__).resolve().parent
PLAIN = "plain forward pass"
BUSY = 0.5  # load average above which a machine is not quiet
PAGE = """# Performance

How fast the lab is beside named peers, on one machine on one day. `make bench` measures everything again and writes
this page; [the notebook](notebook/pretraining-speed.md) has the profiles, and what did not help.

{machine}

Sides alternate in one process, or in processes that alternate. A ratio is the peer's time divided by the lab's (or what
the row names): the median of the rounds, with the lowest and the highest where a benchmark reports them. Memory is the
peak of the benchmark's process, both sides in it.

{table}

Commands, typed in the repository, with the time each took:

{commands}
"""


@dataclass(frozen=True)
class Row:
    what: str
    ratio: float
    low: float | None = None
    high: float | None = None
    unit: str = ""

    def shown(self) -> str:
        ends = "" if self.low is None or self.high is None else f" ({self.low:.2f} to {self.high:.2f})"
        return f"{self.ratio:.2f}{self.unit}{ends}"


Results = Mapping[str, Any]


@dataclass(frozen=True)
class Benchmark:
    words: str
    """The script and its options."""
    rows: Callable[[Results], Iterator[Row]]
    aims: Mapping[str, str]
    """By the row's `what`; a row without one has no aim."""


def ratios(results: Results) -> Iterator[Row]:
    """Of `pretraining.py` and `checkouts.py`, by the clock."""
    for row in results["ratios"]:
        wall = row["wall"]
        yield Row(f"{row['of']} / {row['to']}", wall["ratio"], wall["low"], wall["high"])


def pretraining(results: Results) -> Iterator[Row]:
    yield from ratios(results)
    for side in results["sides"]:
        yield Row(f"{side['side']}: share of the measured peak", 100 * side["share_of_peak"]["wall"], unit="%")


def sampling(results: Results) -> Iterator[Row]:
    for row in results["rows"]:
        yield Row(f"1,000 tokens, {row['way']} / transformers.generate", row["ratio"], row["low"], row["high"])


def one(key: str | None, what: str) -> Callable[[Results], Iterator[Row]]:
    """Of a benchmark with `ratio`, `ratio_low` and `ratio_high`, in a part of its results."""

    def rows(results: Results) -> Iterator[Row]:
        part = results[key] if key else results
        yield Row(what, part["ratio"], part.get("ratio_low"), part.get("ratio_high"))

    return rows


def bert(results: Results) -> Iterator[Row]:
    for model, values in results["models"].items():
        for side in ("padded", "unpadded", "by length"):
            if side in values:
                yield Row(f"{model}, forward and backward, {side} / transformers", values[side])
    yield Row("a joint step: logits at masked places / at all places", results["joint"]["ratio"])


def maps(results: Results) -> Iterator[Row]:
    seconds = results["seconds"]
    yield Row("attention maps of MiniLM, 64 tokens: time / plain forward pass", seconds["maps"] / seconds[PLAIN])


def trace(results: Results) -> Iterator[Row]:
    yield Row("causal trace of 500 people", results["seconds"], unit=" s")
    yield Row("the same, one restoration per pass / batched", results["times_faster"])


def startup(results: Results) -> Iterator[Row]:
    for name, median in results["seconds"].items():
        if name.startswith("attnlab"):
            yield Row(f"`{name.replace('<TAB>', 'TAB')}`", median, unit=" s")


def checked(results: Results) -> Iterator[Row]:
    medians = {name: sorted(times)[len(times) // 2] for name, times in results["seconds"].items()}
    for name, median in medians.items():
        if name != results["peer"]:
            yield Row(f"check, {name}: time / `{results['peer']}`", median / medians[results["peer"]])


BENCHMARKS = {
    "pretraining": Benchmark(
        "pretraining.py --rounds 5 --steps 2",
        pretraining,
        {
            "lab vanilla / transformers gpt2": "1.5",
            "lab vanilla, by length / transformers gpt2": "2.0",
            "lab vanilla, by length: share of the measured peak": "65%",
        },
    ),
    "checkouts": Benchmark("checkouts.py --rounds 5 --steps 2", ratios, {"lab vanilla / nanoGPT": "1.45"}),
    "decoding": Benchmark(
        "decoding.py --repeats 3",
        one(None, "500 questions together / one at a time without a cache"),
        {"500 questions together / one at a time without a cache": "20"},
    ),
    "sampling": Benchmark("sampling.py --repeats 5", sampling, {"1,000 tokens, sampled / transformers.generate": "2"}),
    "fine-tuning": Benchmark(
        "classification.py --task sst2 --only trainer --repeats 5",
        one("speed", "fine-tuning on SST-2 / transformers.Trainer"),
        {"fine-tuning on SST-2 / transformers.Trainer": "2.0"},
    ),
    "predict": Benchmark(
        "classification.py --task sst2 --only predict --repeats 5",
        one("predict", "predict on SST-2's dev / transformers.pipeline"),
        {"predict on SST-2's dev / transformers.pipeline": "2.2"},
    ),
    "bert": Benchmark(
        "bert.py --repeats 3 --texts 32", bert, {"BertModel, forward and backward, padded / transformers": "1.3"}
    ),
    "maps": Benchmark(
        "attention_maps.py", maps, {"attention maps of MiniLM, 64 tokens: time / plain forward pass": "at most 2"}
    ),
    "trace": Benchmark("tracing.py", trace, {"causal trace of 500 people": "at most 180 s"}),
    "startup": Benchmark(
        "startup.py --repeats 7",
        startup,
        {"`attnlab --help`": "0.4 s", "`attnlab TAB`": "0.4 s", "`attnlab runs`": "0.6 s"},
    ),
    "check": Benchmark("check.py --repeats 7", checked, {}),
}


@dataclass(frozen=True)
class Measured:
    name: str
    words: str
    rows: list[Row]
    seconds: float
    memory: float
    """Peak of the process in GiB."""


def measure(name: str, options: str) -> Measured:
    benchmark = BENCHMARKS[name]
    words = f"python benchmarks/{benchmark.words}{options}"
    print(f"{name}: {words}", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "results.json"
        script, *rest = shlex.split(benchmark.words + options)
        command = [sys.executable, str(HERE / script), *rest, "--json", str(out)]
        start = time.perf_counter()
        child = subprocess.Popen(command, stdout=sys.stderr)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            sys.exit(f"error: {words} failed with exit code {child.returncode}.")
        seconds = time.perf_counter() - start
        results = json.loads(out.read_text(encoding="utf-8"))
    return Measured(name, words, list(benchmark.rows(results)), seconds, usage.ru_maxrss / 2**20)


def table(measured: Sequence[Measured]) -> str:
    lines = ["| | ratio | aim | memory |", "| --- | ---: | ---: | ---: |"]
    for one_of in measured:
        for row in one_of.rows:
            aim = BENCHMARKS[one_of.name].aims.get(row.what, "")
            lines.append(f"| {row.what} | {row.shown()} | {aim} | {one_of.memory:.1f} GiB |")
    return "\n".join(lines)


def page(measured: Sequence[Measured], load: float) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in facts.versions().items())
    quiet = "" if load < BUSY else f" **The machine was busy: its load average was {load:.1f} at the start.**"
    machine = (
        f"{datetime.date.today().isoformat()}, {facts.cpu_name()}, {facts.cores()} cores; {versions}. "
        f"Load average at the start {load:.2f}.{quiet}"
    )
    commands = "\n".join(f"- `{one_of.words}`, {one_of.seconds / 60:.1f} minutes" for one_of in measured)
    return PAGE.format(machine=machine, table=table(measured), commands=commands)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(BENCHMARKS), metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--nanogpt", help="a checkout of nanoGPT; without one and minGPT's they are not measured")
    parser.add_argument("--mingpt", help="a checkout of minGPT")
    parser.add_argument("--out", type=Path, help="the page to write")
    args = parser.parse_args(arguments)
    given = {name: path for name, path in (("nanogpt", args.nanogpt), ("mingpt", args.mingpt)) if path}
    load = os.getloadavg()[0]
    measured = []
    for name in args.only or BENCHMARKS:
        if name == "checkouts" and not given:
            print("checkouts: not measured, no checkout was named", file=sys.stderr)
            continue
        options = "".join(f" --{key} {shlex.quote(path)}" for key, path in given.items())
        measured.append(measure(name, options if name == "checkouts" else ""))
    print(table(measured))
    if args.out:
        # Where a checkout lies is of no interest to others.
        text = page(measured, load)
        for path in given.values():
            text = text.replace(shlex.quote(path), "CHECKOUT")
        write_text(args.out, text)


if __name__ == "__main__":
    main()
