"""The measured parts of a report, written from the files beside it.

    <!-- results: NAME -->  <!-- end -->     figures, a table and the settings of results/NAME.json
    <!-- output: NAME -->   <!-- end -->     results/NAME.txt, the output of commands

A part whose file does not exist yet is empty. Every number of a table carries the comment that names its place in the
file, so that a reader of the source, and a test, can find it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from attnlab.base import console
from attnlab.base.files import read_json, write_json, write_text
from attnlab.jobs.study.outcome import UNREACHABLE
from attnlab.stats.scores import NEARLY_ALL

PART = re.compile(r"(<!-- (results|output): ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
SPLITS = ("train", "dev", "test")


def collect(folder: Path) -> None:
    """Keep the results and figures of every study in runs/, and renew the report."""
    for path in sorted(folder.glob("runs/*/results.json")):
        keep(path.parent, folder)
    write_text(folder / "report.md", filled(folder))
    console.result(f"report: {folder / 'report.md'}")


def keep(study: Path, folder: Path) -> None:
    """Copy results.json and the figures of a study under the study's name."""
    results = read_json(study / "results.json")
    (folder / "figures").mkdir(exist_ok=True)
    (folder / "results").mkdir(exist_ok=True)
    named = {figure: study.name + figure.removeprefix(results["experiment"]) for figure in results["figures"]}
    for figure, name in named.items():
        shutil.copyfile(study / figure, folder / "figures" / name)
    write_json(folder / "results" / f"{study.name}.json", results | {"figures": list(named.values())})
    console.result(f"kept: {folder / 'results' / study.name}.json")


def filled(folder: Path) -> str:
    """The report with every part as its file has it now."""

    def part(match: re.Match[str]) -> str:
        start, kind, name, end = match.groups()
        path = folder / "results" / f"{name}.{'json' if kind == 'results' else 'txt'}"
        if not path.is_file():
            return start + end
        if kind == "output":
            return f"{start}\n```text\n{path.read_text(encoding='utf-8').rstrip()}\n```\n\n{end}"
        return f"{start}\n" + "\n".join(Measured(name, read_json(path)).lines()) + f"\n\n{end}"

    return PART.sub(part, (folder / "report.md").read_text(encoding="utf-8"))


class Measured:
    """One results file as figures, a table and sentences."""

    def __init__(self, name: str, results: dict[str, Any]) -> None:
        self.name, self.results, self.rows = name, results, list(results["runs"])

    def number(self, text: str, key: str) -> str:
        return f"{text}<!-- = results:{self.name}.json:{key} -->"

    def percent(self, value: float, key: str) -> str:
        return self.number(f"{100 * value:.1f}%", key)

    def count(self, value: int, key: str) -> str:
        return self.number(f"{value:,}", key)

    def lines(self) -> Iterator[str]:
        models = ", ".join(dict.fromkeys(row["model"].rpartition("/")[2] for row in self.rows))
        for figure in self.results["figures"]:
            yield f"![{self.results['experiment']}: {models} on {self.results['task']}](figures/{figure})\n"
        yield from self.table()
        yield ""
        yield from self.best()
        largest = self.results.get("largest_batch")
        if largest:
            yield f"**The largest batch size: {self.count(largest['size'], 'largest_batch.size')}.**\n"
        yield self.settings()
        notes = [largest["sentence"]] if largest else []
        if notes := notes + self.results["changes"]:
            yield "\nNotes of the runs:\n\n```text"
            yield from notes
            yield "```"

    def table(self) -> Iterator[str]:
        shown = [split for split in SPLITS if any(split in row for row in self.rows)]
        yield (
            "| run | batch size | tuned parameters |"
            + "".join(f" {split} accuracy |" for split in shown)
            + " minutes |"
        )
        yield "| --- | --- | --- |" + " --- |" * (len(shown) + 1)
        for place, row in enumerate(self.rows):
            yield f"| {' | '.join(self.cells(place, row, shown))} |"

    def cells(self, place: int, row: dict[str, Any], shown: Sequence[str]) -> Iterator[str]:
        at = f"runs.{place}"
        chosen = place in self.results.get("chosen", ()) and "test" in row and len(self.rows) > 1
        yield f"`{row['name']}`" + (" (chosen on dev)" if chosen else "")
        if row["state"] != "finished":
            yield "not reached" if row["state"] == UNREACHABLE else f"0: `{row['reason']}`"
            yield from [""] * (2 + len(shown))
            return
        yield self.count(row["batch_size"], f"{at}.batch_size")
        yield self.count(row["tuned_parameters"], f"{at}.tuned_parameters")
        for split in shown:
            yield self.accuracy(row[split], f"{at}.{split}") if split in row else ""
        yield self.number(f"{row['minutes']:.1f}", f"{at}.minutes")

    def best(self) -> Iterator[str]:
        """The answer of a search: the accuracies of the one run that was chosen on dev."""
        chosen = self.results.get("chosen", ())
        if len(chosen) != 1 or "test" not in self.rows[chosen[0]]:
            return
        row, at = self.rows[chosen[0]], f"runs.{chosen[0]}"
        model = row["model"].rpartition("/")[2]
        dev = self.percent(row["dev"]["accuracy"], f"{at}.dev.accuracy")
        test = self.percent(row["test"]["accuracy"], f"{at}.test.accuracy")
        yield f"**Best accuracy of {model} on the dev set: {dev}. Its accuracy on the test set: {test}.**\n"

    def accuracy(self, score: dict[str, Any], at: str) -> str:
        low, high = score["interval"]
        interval = f"`[{low:.3f}, {high:.3f}]`"
        return f"{self.percent(score['accuracy'], f'{at}.accuracy')} {self.number(interval, f'{at}.interval')}"

    def settings(self) -> str:
        """Command, seed, data, machine and cost in one paragraph."""
        results, machine = self.results, self.results["machine"]
        sizes = [
            f"{self.count(results['examples'][split], f'examples.{split}')} {'to train' if split == 'train' else split}"
            for split in SPLITS
            if split in results["examples"]
        ]
        constant = [
            f"{self.percent(results['chance'][split], f'chance.{split}')} of {split}"
            for split in ("dev", "test")
            if split in results["chance"]
        ]
        instead = [f"`{given}` instead of `{document}`" for given, document in results["instead"]]
        collapsed = [f"`{row['name']}`" for row in self.rows if row.get("collapsed")]
        tokens = self.count(results["max_tokens"], "max_tokens")
        minutes = self.number(f"{results['minutes']:.1f}", "minutes")
        sentences = [
            f"`{results['command']}`",
            f"Seed {results['seed']}; instances: {', '.join(sizes)}, of at most {tokens} tokens"
            + (f"; the most common class is {' and '.join(constant)}" if constant else ""),
            "Accuracies have 95%<!-- given --> intervals over the instances"
            + ("; those of dev are of the best epoch on dev" if constant else ""),
            f"Device {machine['device']} (`{machine['cpu']}`, cores: {machine['cores']}, "
            f"threads: {machine['threads']}), {machine['precision']}, {minutes} minutes by the clock",
        ]
        if instead:
            sentences.append(f"Differs from the document: {', '.join(instead)}")
        if collapsed:
            sentences.append(
                f"Collapsed, the same answer for at least {100 * NEARLY_ALL:.0f}%<!-- given --> of dev: "
                + ", ".join(collapsed)
            )
        return ".\n".join(sentences) + "."
