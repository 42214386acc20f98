"""One malformed input each: a good file changed, or values nobody means, and the command that reads it."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.faults.good_files import RECIPES
from tests.faults.mutations import drawn, json_values, mutate, texts

DRAWS = 400  # values that hypothesis draws for one run of the cases


class Case(NamedTuple):
    family: str
    words: list[str]
    """Of the command."""
    stdin: bytes = b""


class Maker:
    """Makes case number n of a seed in a folder of its own; the same seed gives the same cases."""

    def __init__(self, good: Path, seed: int) -> None:
        self.good, self.seed = good, seed
        self.texts = drawn(texts(), DRAWS, seed)
        self.values = drawn(json_values(), DRAWS, seed)

    def make(self, number: int, folder: Path) -> Case:
        draw = random.Random(f"{self.seed}/{number}")
        for path in self.good.iterdir():
            (folder / path.name).symlink_to(path)
        family = draw.choices(list(FAMILIES), [weight for weight, _ in FAMILIES.values()])[0]
        case = FAMILIES[family][1](self, draw, folder)
        return case if isinstance(case, Case) else Case(family, case)

    def text(self, draw: random.Random) -> str:
        """One that can be given on a command line."""
        text = draw.choice(self.texts).replace("\0", "")
        return text.encode("utf-8", "replace").decode("utf-8")

    def spoil(self, draw: random.Random, path: Path) -> Path:
        """Exchange a good file for a malformed one; its folders become copies."""
        for parent in reversed(path.parents):
            if parent.is_symlink():
                target = parent.resolve()
                parent.unlink()
                shutil.copytree(target, parent)
        content = path.read_bytes()
        path.unlink()
        kind = draw.random()
        if kind < 0.1 and path.suffix in (".json", ".jsonl"):
            path.write_text(json.dumps(draw.choice(self.values)), encoding="utf-8")
        elif kind < 0.15:
            path.write_text("\n".join(draw.sample(self.texts, 5)), encoding="utf-8", errors="replace")
        elif kind < 0.16:
            path.mkdir()
        else:
            path.write_bytes(mutate(content, draw))
        return path


Words = list[str]


def _recipes(maker: Maker, draw: random.Random, folder: Path) -> Words:
    kind = draw.choice(list(RECIPES))
    maker.spoil(draw, folder / f"{kind}.yaml")
    flags = draw.choice(([], ["--steps", "3"], ["--lr", "0.1"])) if kind not in ("compare", "sweep") else []
    return [kind, "--config", f"{kind}.yaml", *flags, "--dry-run"]


def _texts(maker: Maker, draw: random.Random, folder: Path) -> Words:
    commands: list[tuple[str, Words]] = [
        ("corpus.txt", ["language", "--corpus", "corpus.txt", "--context", "8", "--dry-run"]),
        ("corpus.txt", ["language", "--corpus", "corpus.txt", "--tokens", "words", "--context", "8", "--dry-run"]),
        ("corpus.txt", ["pretrain", "--corpus", "corpus.txt", "--dry-run"]),
        ("corpus.txt", ["pretrain", "--corpus", "corpus.txt", "--objective", "mlm", "--vocabulary", "60", "--dry-run"]),
        ("corpus.txt", ["evaluate", "read", "corpus.txt", "--out", "results", "--per-token"]),
        ("corpus.txt", ["heads", "read", "--text", "corpus.txt", "--draws", "1"]),
        ("questions.tsv", ["evaluate", "asked", "questions.tsv", "--out", "results", "--unseen-names", "2"]),
        ("questions.txt", ["evaluate", "asked", "questions.txt", "--out", "results", "--outputs", "o.txt"]),
        ("questions.tsv", ["finetune", "--from", "read", "--train", "questions.tsv", "--dry-run"]),
        ("questions.tsv", ["trace", "asked", "questions.tsv", "--draws", "1", "--most", "2"]),
        ("questions.tsv", ["lens", "asked", "questions.tsv", "--most", "2"]),
        ("questions.tsv", ["ablate", "asked", "questions.tsv", "--most", "3"]),
        ("corpus.txt", ["ask", "asked", "Where was Ada Moss born?", "--trace", "--corpus", "corpus.txt"]),
    ]
    name, words = draw.choice(commands)
    maker.spoil(draw, folder / name)
    return words


def _tables(maker: Maker, draw: random.Random, folder: Path) -> Words:
    name = f"labelled.{draw.choice(('csv', 'tsv', 'json', 'jsonl', 'parquet'))}"
    maker.spoil(draw, folder / name)
    options = draw.choice(
        (
            [],
            ["--json"],
            ["--text", maker.text(draw)],
            ["--label", maker.text(draw), "--no-header"],
            ["--classes", maker.text(draw)],
            ["--header", "--pair", "label"],
            ["--dev", name],
            ["--text", "text", "--label", "label"],
        )
    )
    commands = (
        ["data", "show", name, *options],
        ["data", "show", name, *options],
        ["classify", "--task", name, "--model", "bert", "--dry-run"],
    )
    return draw.choice(commands)


def _predict(maker: Maker, draw: random.Random, folder: Path) -> Words | Case:
    name = f"labelled.{draw.choice(('csv', 'tsv', 'json', 'jsonl', 'parquet', 'txt'))}"
    spoiled = maker.spoil(draw, folder / name)
    out = draw.choice(([], ["--json"], ["--out", "out.csv"], ["--out", "out.tsv"], ["--out", "out.jsonl"]))
    if name.endswith(".txt") and spoiled.is_file() and draw.random() < 0.5:
        return Case("predict", ["predict", "sorted", *out], spoiled.read_bytes())
    if draw.random() < 0.2:
        return ["evaluate", "sorted", name, "--out", "results", "--outputs", "o.jsonl"]
    return ["predict", "sorted", "--file", name, *out]


def _arrays(maker: Maker, draw: random.Random, folder: Path) -> Words:
    keys = f"keys.{draw.choice(('npy', 'json', 'tsv', 'csv'))}"
    maker.spoil(draw, folder / draw.choice((keys, keys, "query.json")))
    commands = (
        ["attend", "--keys", keys, "--values", keys, "--query", "query.json"],
        ["attend", "--keys", "keys.npy", "--values", keys, "--query", "query.json", "--json"],
        ["select", "--keys", keys, "--values", "keys.csv"],
        ["identity", "--keys", keys, "--values", keys],
        ["average", "--keys", keys, "--values", keys],
        ["argmax", "--keys", keys, "--values", keys, "--query", "query.json"],
        ["reach", "--keys", keys, "--values", keys, "--target", "query.json"],
        ["extract", "--keys", keys],
    )
    return ["explore", *draw.choice(commands)]


def _predictions(maker: Maker, draw: random.Random, folder: Path) -> Words:
    (folder / "other").symlink_to(maker.good / "sorted")
    maker.spoil(draw, folder / "sorted" / f"predictions-{draw.choice(('test', 'dev'))}.jsonl")
    return draw.choice((["runs", "compare", "sorted", "other"], ["runs", "compare", "other", "sorted", "--json"]))


def _models(maker: Maker, draw: random.Random, folder: Path) -> Words:
    source = draw.choice(("bert", "bert", "exported", "weights"))
    files = [path for path in (folder / source).rglob("*") if path.is_file()]
    maker.spoil(draw, draw.choice([path for path in files if path.suffix != ".md"]))
    if draw.random() < 0.1:
        pooling = folder / source / "1_Pooling"
        pooling.mkdir(exist_ok=True)
        (pooling / "config.json").write_bytes(mutate(b'{"pooling_mode_mean_tokens": true}', draw))
    if source != "bert":
        return draw.choice(
            (["predict", source, "--text", "a film"], ["evaluate", source, "labelled.tsv", "--out", "r"])
        )
    commands: tuple[Words, ...] = (
        ["models", "show", "./bert"],
        ["models", "show", "./bert", "--json"],
        ["classify", "--task", "labelled.tsv", "--model", "./bert", "--dry-run"],
        ["classify", "--task", "labelled.tsv", "--model", "./bert", "--tune", "head", "--dry-run"],
        ["inspect", "./bert", "--text", "a film", "--json"],
        ["pretrain", "--corpus", "corpus.txt", "--objective", "mlm", "--from", "./bert", "--dry-run"],
    )
    return draw.choice(commands)


def _vocabularies(maker: Maker, draw: random.Random, folder: Path) -> Words:
    run = draw.choice(("read", "asked"))
    maker.spoil(draw, folder / run / "vocabulary.json")
    commands: tuple[Words, ...] = (
        ["ask", "asked", "Where was Ada Moss born?"],
        ["sample", run, "--length", "5"],
        ["lens", run, "--text", "Ada Moss was born in"],
        ["finetune", "--from", run, "--train", "questions.tsv", "--dry-run"],
    )
    return draw.choice(commands)


def _runs(maker: Maker, draw: random.Random, folder: Path) -> Words:
    run = draw.choice(("read", "asked", "sorted"))
    names = ["run.json", "config.yaml", "status.json", "metrics.jsonl"]
    maker.spoil(draw, folder / run / draw.choice([name for name in names if (folder / run / name).is_file()]))
    uses: dict[str, Words] = {
        "read": ["sample", "read", "--length", "5"],
        "asked": ["ask", "asked", "Where was Ada Moss born?"],
        "sorted": ["predict", "sorted", "--text", "a film"],
    }
    return draw.choice(
        (
            ["runs", "--in", "."],
            ["runs", "show", run],
            ["runs", "show", run, "--json"],
            ["runs", "compare", run, "read"],
            uses[run],
            ["inspect", run, "--text", "a film", "--json"],
        )
    )


def _weights(maker: Maker, draw: random.Random, folder: Path) -> Words:
    run, words = draw.choice(
        (
            ("read", ["sample", "read", "--length", "5"]),
            ("asked", ["ask", "asked", "Where was Ada Moss born?"]),
            ("sorted", ["predict", "sorted", "--text", "a film"]),
        )
    )
    files = sorted(path for path in (folder / run).rglob("*") if path.suffix in (".pt", ".safetensors", ".json"))
    maker.spoil(draw, draw.choice([path for path in files if path.parent != folder / run]))
    return list(words)


def _code(maker: Maker, draw: random.Random, folder: Path) -> Words:
    name = draw.choice(("pieces.py", "pieces.ipynb", "mixer.py"))
    maker.spoil(draw, folder / name)
    if name == "mixer.py":
        return draw.choice(
            (
                ["audit", "mixer.py", "--no-cost", "--no-half", "--context", "16"],
                ["language", "--corpus", "corpus.txt", "--attention", "mixer.py", "--context", "8", "--dry-run"],
            )
        )
    return ["check", name, "--stage", "plain"]


def _options(maker: Maker, draw: random.Random, folder: Path) -> Words:
    text = maker.text(draw)
    odd = draw.choice(("nan", "inf", "-1", "0", "1e999", "9" * 5000, "", "x", str(2**63), "0x10", "1_0", text))
    commands: tuple[Words, ...] = (
        ["ask", "asked", f"--abstain-below={odd}", "Where?"],
        ["ask", "asked", "--", text],
        ["sample", "read", "--length=5", f"--prompt={text}"],
        ["sample", "read", "--length=5", f"--temperature={odd}"],
        ["sample", "read", "--length=5", f"--top-k={odd}"],
        ["sample", "read", "--length=5", f"--stop={text}"],
        ["sample", "read", "--length=5", f"--out={odd}"],
        ["sample", "read", "--length=5", f"--seed={odd}"],
        ["predict", "sorted", f"--text={text}"],
        ["predict", "sorted", f"--text={text}", "--json"],
        ["predict", "sorted", "--text=a film", f"--out={odd}"],
        ["predict", "sorted", "--text=a film", f"--pair={text}"],
        ["predict", "sorted", f"--file={text}"],
        ["predict", text or "x"],
        ["predict", "sorted", "--text=a", f"--device={text}"],
        ["explore", "attend", f"--query={text}"],
        ["explore", "attend", f"--query={odd} 1 2"],
        ["explore", "attend", f"--keys={odd} 1; 2 3", "--query=1 2"],
        ["explore", "select", f"--index={odd}"],
        ["explore", "select", f"--norm={odd}"],
        ["explore", "select", f"--figure={text}"],
        ["explore", "average-some", f"--rows={text}"],
        ["explore", "noise", f"--seed={odd}"],
        ["explore", "construct", f"--seed={odd}"],
        ["explore", "copy", f"--longest={odd}"],
        ["data", "show", text or "x"],
        ["data", "show", "labelled.csv", f"--classes={text}"],
        ["data", "show", "labelled.csv", f"--seed={odd}"],
        ["data", "get", text or "x", "--out", "new"],
        ["data", "repeats", f"--seed={odd}", "--characters=200", "new.txt"],
        ["models", "show", text or "x"],
        ["audit", "vanilla", "--no-cost", "--no-half", f"--context={odd}"],
        ["audit", "vanilla", "--no-cost", "--no-half", f"--width={odd}", "--context=16"],
        ["audit", "vanilla", "--no-cost", "--no-half", f"--heads={odd}", "--context=16"],
        ["audit", text or "x", "--no-cost", "--no-half"],
        ["new", "attention", text or "x"],
        ["recipes", text or "x"],
        ["runs", "--in", text or "x"],
        ["runs", "--in=.", f"--kind={text}", f"--state={text}"],
        ["runs", "show", text or "x"],
        ["inspect", "./bert", f"--text={text}", "--json"],
        ["inspect", "./bert", "--text=a film", f"--head={odd}", "--json"],
        ["inspect", "./bert", "--text=a film", f"--layer={odd}", "--json"],
        ["heads", "read", f"--length={odd}", "--draws=1"],
        ["heads", "read", f"--draws={odd}"] if len(odd) < 4 else ["heads", "read", f"--top={odd}"],
        ["lens", "read", f"--text={text}", f"--answer={text}"],
        ["ablate", "read", f"--text={text}"],
        ["ablate", "read", "--text=Ada Moss was born", f"--part={odd}"],
        ["evaluate", "read", "corpus.txt", f"--stride={odd}", "--out=results"],
        ["evaluate", "read", "corpus.txt", f"--context={odd}", "--out=results"],
        ["evaluate", "read", "corpus.txt", f"--out={odd}"],
        ["export", "sorted", f"--to={text}"],
        ["pretrain", "--dry-run", f"--lr={odd}", "--corpus=corpus.txt"],
        ["pretrain", "--dry-run", f"--width={odd}", "--corpus=corpus.txt"],
        ["pretrain", "--dry-run", f"--steps={odd}", "--corpus=corpus.txt"],
        ["pretrain", "--dry-run", f"--batch-size={odd}", "--corpus=corpus.txt"],
        ["pretrain", "--dry-run", f"--corpus={text}"],
        ["pretrain", "--dry-run", f"--objective={text}", "--corpus=corpus.txt"],
        ["pretrain", "--dry-run", f"--people={odd}"],
        ["language", "--dry-run", f"--attention={text}", "--corpus=corpus.txt"],
        ["language", "--dry-run", f"--dev-share={odd}", "--corpus=corpus.txt"],
        ["language", "--dry-run", f"--device={text}", "--corpus=corpus.txt"],
        ["language", "--dry-run", f"--config={text}"],
        ["classify", "--dry-run", "--task=labelled.csv", f"--model={text}"],
        ["classify", "--dry-run", f"--task={text}", "--model=bert"],
        ["classify", "--dry-run", "--task=labelled.csv", "--model=bert", f"--tune={text}"],
        ["classify", "--dry-run", "--task=labelled.csv", "--model=bert", f"--max-tokens={odd}"],
        ["world", "--out=w", f"--skew={odd}"],
        ["world", "--out=w", f"--places={odd}"],
        ["world", "--out=w", f"--train={odd}"],
        ["check", text or "x"],
        ["trust", text or "x"],
        [text],
    )
    return draw.choice(commands)


Make = Callable[[Maker, random.Random, Path], "Words | Case"]
FAMILIES: dict[str, tuple[float, Make]] = {
    "recipes": (5, _recipes),
    "texts": (3, _texts),
    "tables": (5, _tables),
    "predict": (3, _predict),
    "arrays": (3, _arrays),
    "predictions": (1, _predictions),
    "models": (4, _models),
    "vocabularies": (2, _vocabularies),
    "runs": (3, _runs),
    "weights": (1, _weights),
    "code": (0.5, _code),
    "options": (6, _options),
}
"""The share of the cases of each family, and what makes them. Of code there is little: each file needs a process."""
