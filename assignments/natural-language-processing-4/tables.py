"""The tables and findings of report.md, from the files in results/.

A number is followed by a comment that is not rendered and says where it comes from: the file of results and the key,
`<!-- = results:problem2.json:runs.lr-1e-4.test_acc -->`, or `<!-- given -->` for a setting.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Results = dict[str, Any]
STARS = range(1, 6)


class Numbers:
    """The numbers of one file, as text with their source."""

    def __init__(self, results: dict[str, Results], name: str) -> None:
        self.file, self.content = f"{name}.json", results[name]

    def value(self, key: str) -> Any:
        found: Any = self.content
        for part in key.split("."):
            found = found[int(part)] if isinstance(found, list) else found[part]
        return found

    def percent(self, key: str, sign: str = "") -> str:
        return self._marked(f"{100 * self.value(key):{sign}.1f}%", key)

    def plain(self, key: str, places: int = 0) -> str:
        return self._marked(f"{self.value(key):,.{places}f}", key)

    def p(self, key: str) -> str:
        """A p-value; below half of the last place it is shown as a bound."""
        if self.value(key) < 0.0005:
            return f"below 0.001<!-- > results:{self.file}:{key} -->"
        return self.plain(key, 3)

    def interval(self, key: str) -> str:
        return f"{self.percent(f'{key}.0')} to {self.percent(f'{key}.1')}"

    def _marked(self, text: str, key: str) -> str:
        return f"{text}<!-- = results:{self.file}:{key} -->"


def given(value: object) -> str:
    return f"{value}<!-- given -->"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def problem2_table(results: dict[str, Results]) -> str:
    numbers = Numbers(results, "problem2")
    rows = []
    for name, run in numbers.content["runs"].items():
        key = f"runs.{name}"
        rows.append(
            [
                f"**`{name}`**" if name == numbers.content["best"] else f"`{name}`",
                f"`{run['learning_rate']:.0e}`".replace("e-0", "e-"),
                f"{run['epochs']:g}",
                given(run["max_seq_length"]),
                numbers.percent(f"{key}.cut"),
                numbers.plain(f"{key}.train_loss.1", 2),
                f"{numbers.percent(f'{key}.dev_acc')} (step {numbers.plain(f'{key}.best_step')})",
                f"{numbers.percent(f'{key}.test_acc')} ({numbers.interval(f'{key}.test_interval')})",
                numbers.percent(f"{key}.within_one"),
                _minutes(numbers, key),
            ]
        )
    head = (
        "run",
        "rate",
        "epochs",
        "length",
        "cut",
        "last loss",
        "best dev",
        "test (interval)",
        "within one star",
        "minutes (CPU)",
    )
    return table(head, rows)


def problem2_findings(results: dict[str, Results]) -> str:
    numbers = Numbers(results, "problem2")
    best = numbers.content["best"]
    others = {name: found["p"] for name, found in numbers.content["against_best"].items() if name != best}
    lines = [
        f"- **Chosen on dev: `{best}`**, {numbers.percent(f'runs.{best}.dev_acc')} on dev and "
        f"{numbers.percent(f'runs.{best}.test_acc')} on test ({numbers.interval(f'runs.{best}.test_interval')} over "
        "reviews; one seed)."
    ]
    for what, names in (
        ("Learning rate", ("lr-3e-5", "lr-1e-4", "lr-3e-4")),
        ("Epochs", ("lr-1e-4", "epochs-4")),
        ("Length", ("length-64", "lr-1e-4", "length-256")),
    ):
        shown = ", ".join(f"{numbers.percent(f'runs.{name}.dev_acc')} with `{name}`" for name in names)
        lines.append(f"- {what}: on dev {shown}.")
    for name in dict.fromkeys(("epochs-4", best)):
        low, last = (numbers.plain(f"runs.{name}.dev_losses.{place}", 3) for place in (0, 1))
        trained = numbers.plain(f"runs.{name}.train_loss.1", 3)
        lines.append(f"- Loss with `{name}`: {trained} in training at the end; on dev {last}, at its lowest {low}.")
    for what, names in (
        (f"Worse than `{best}` on dev", [name for name, p in others.items() if p < 0.05]),
        (f"Not distinguishable from `{best}` on dev", [name for name, p in others.items() if p >= 0.05]),
    ):
        if names:
            shown = ", ".join(f"`{name}` (p {numbers.p(f'against_best.{name}.p')})" for name in names)
            test = "McNemar's test of the answers to the same reviews, not corrected for several tests"
            lines.append(f"- {what}, by {test}: {shown}.")
    return "\n".join(lines)


def problem2_confusion(results: dict[str, Results]) -> str:
    numbers = Numbers(results, "problem2")
    key = f"runs.{numbers.content['best']}.confusion"
    rows = [[str(right), *(numbers.plain(f"{key}.{right - 1}.{n - 1}") for n in STARS)] for right in STARS]
    return table(("stars", *(f"answered {n}" for n in STARS)), rows)


def problem3_table(results: dict[str, Results]) -> str:
    numbers = Numbers(results, "problem3")
    rows = []
    for name, group in numbers.content["groups"].items():
        run = _runs_of(numbers, name)[0]
        key, first = f"groups.{name}", numbers.content["runs"][run]
        masked = "none"
        if first["mlm_loss"]:
            ends = (numbers.plain(f"runs.{run}.mlm_loss.{n}", 2) for n in (0, 1))
            masked = " to ".join(ends)
        rows.append(
            [
                numbers.plain(f"runs.{run}.labels"),
                f"joint, `mlm_alpha {first['mlm_alpha']:g}`" if first["mlm_loss"] else "alone",
                f"{first['epochs']:g}",
                ", ".join(map(str, group["seeds"])),
                numbers.percent(f"{key}.dev_acc") + _spread(numbers, key, run, "dev"),
                numbers.percent(f"{key}.test_acc") + _spread(numbers, key, run, "test"),
                masked,
                _minutes(numbers, key),
            ]
        )
    head = ("labels", "training", "epochs", "seeds", "dev", "test", "loss of masked words", "minutes per run (CPU)")
    return table(head, rows)


def problem3_differences(results: dict[str, Results]) -> str:
    numbers = Numbers(results, "problem3")
    rows = []
    for name, found in numbers.content["differences"].items():
        key, run = f"differences.{name}", _runs_of(numbers, name)[0]
        halves = {split: found[f"{split}_acc_half"] for split in ("dev", "test")}
        rows.append(
            [
                numbers.plain(f"runs.{run}.labels"),
                f"`mlm_alpha {numbers.value(f'runs.{run}.mlm_alpha'):g}`",
                str(len(found["seeds"])),
                *(
                    numbers.percent(f"{key}.{split}_acc", "+")
                    + (f" ± {numbers.percent(f'{key}.{split}_acc_half')}" if half is not None else "")
                    for split, half in halves.items()
                ),
                f"{numbers.plain(f'{key}.gained')} and {numbers.plain(f'{key}.lost')}",
                numbers.p(f"{key}.p"),
            ]
        )
    head = ("labels", "weight", "seeds", "dev", "test", "right only with, only without (seed 42)", "McNemar's p")
    return table(head, rows)


def problem3_findings(results: dict[str, Results]) -> str:
    numbers = Numbers(results, "problem3")
    lines = []
    for name, found in numbers.content["differences"].items():
        key, run = f"differences.{name}", _runs_of(numbers, name)[0]
        half, change, weight = found["test_acc_half"], found["test_acc"], numbers.value(f"runs.{run}.mlm_alpha")
        if half is None:
            seen = found["p"] < 0.05
            why = f"one seed, McNemar's p {numbers.p(f'{key}.p')}"
        else:
            seen = abs(change) > half
            why = f"± {numbers.percent(f'{key}.test_acc_half')} over {len(found['seeds'])} seeds"
        verdict = ("better" if change > 0 else "worse") if seen else "no significant difference"
        lines.append(
            f"- **{numbers.plain(f'runs.{run}.labels')} labels, `mlm_alpha {weight:g}`: {verdict}**, "
            f"{numbers.percent(f'{key}.test_acc', '+')} of test ({why}) and {numbers.percent(f'{key}.dev_acc', '+')} "
            f"of dev, at {numbers.plain(f'groups.{name}.minutes', 1)} minutes per run."
        )
    return "\n".join(lines)


def machine(results: dict[str, Results]) -> str:
    """Where the numbers come from."""
    found = results["problem2"]
    about, start, numbers = found["machine"], found["start"], Numbers(results, "problem2")
    processor = about["processor"].replace("(R)", "").replace("(TM)", "")
    return (
        f"{processor}, {_threads(about['threads'])} of {about['cores']} cores, no GPU, fp32; "
        f"torch `{about['torch']}`, Python `{about['python']}`. Model: the folder "
        f"`{start['folder']}`, sha256 `{start['sha256'][:12]}`; {numbers.plain('texts.train')} reviews to train, "
        f"{numbers.plain('texts.dev')} of dev, {numbers.plain('texts.test')} of test."
    )


def _threads(count: int) -> str:
    return "1 thread" if count == 1 else f"{count} threads"


def _runs_of(numbers: Numbers, group: str) -> list[str]:
    """The runs of a group, by the seeds it has; the first is that of the first seed."""
    seeds = numbers.content["groups"][group]["seeds"]
    names = [f"{group}-{seed}" for seed in seeds]
    return ["lr-1e-4", *names[1:]] if group == "all-alone" else names


def _spread(numbers: Numbers, key: str, run: str, split: str) -> str:
    """The interval over seeds, or for one seed that over reviews."""
    if numbers.value(f"{key}.{split}_acc_half") is None:
        return f" ({numbers.interval(f'runs.{run}.{split}_interval')})"
    return f" ± {numbers.percent(f'{key}.{split}_acc_half')}"


def _minutes(numbers: Numbers, key: str) -> str:
    return f"{numbers.plain(f'{key}.minutes', 1)} ({numbers.plain(f'{key}.cpu_minutes', 1)})"


BLOCKS: dict[str, Callable[[dict[str, Results]], str]] = {
    "machine": machine,
    "problem2 table": problem2_table,
    "problem2 figure": lambda _: "![Accuracy on dev over the steps of each run](figures/problem2.svg)",
    "problem2 findings": problem2_findings,
    "problem2 confusion": problem2_confusion,
    "problem3 table": problem3_table,
    "problem3 figure": lambda _: "![Accuracy on dev with 50 labels, three seeds](figures/problem3.svg)",
    "problem3 differences": problem3_differences,
    "problem3 findings": problem3_findings,
}
