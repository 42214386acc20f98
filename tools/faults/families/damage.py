"""A file of a run is damaged; every command that opens the run answers or ends in a sentence, and none hangs."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Generator
from pathlib import Path
from random import Random
from typing import Any

import yaml
from tools.faults.command import run
from tools.faults.family import Family, Try
from tools.faults.runs import commands

VALUES: tuple[Any, ...] = (None, True, -1, 10**30, 1e300, "", "text", [], [1], {}, {"a": {"b": 1}}, "\u2028", "[/]")


def damages() -> dict[str, Callable[[Random, Path], None]]:
    return {"a value of another type": _retype, "bytes changed": _flip, "cut": _cut, "replaced": _replace}


def tries(random: Random, folder: Path) -> Generator[Try]:
    whole, path = folder / "whole", folder / "run"
    done = run([*commands(folder)["pretrain"], "--run", str(whole)], folder / "whole.log")
    if done.code != 0:
        raise RuntimeError(f"the run to be damaged failed: {done}")
    while True:
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(whole, path)
        if random.random() < 0.5:  # so that it can be resumed
            _write(path / "status.json", state="interrupted")
        if random.random() < 0.3:  # as an earlier version left it: without what a configuration is compared with
            _write(path / "run.json", settings={})
        files = sorted(file for file in path.rglob("*") if file.suffix in (".json", ".jsonl", ".yaml"))
        name, damage = random.choice(sorted(damages().items()))
        file = random.choice(files)
        damage(random, file)
        for words in random.sample(_commands(path), 2):
            done = run(words, folder / "run.log")
            detail = f"{file.relative_to(path)}: {done}"
            yield Try(f"a file of a run: {name}", detail, "" if done.is_sentence else done.output[-2000:])


def _write(file: Path, **values: Any) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | values))


def _commands(path: Path) -> list[list[str]]:
    run = str(path)
    return [
        ["ask", run, "Where was Ann born?"],
        ["runs", "--in", str(path.parent)],
        ["runs", "show", run],
        ["runs", "compare", run, str(path.parent / "whole")],
        ["resume", run],
        ["report", run],
        ["sample", run, "--length", "3"],
        ["finetune", "--from", run, "--steps", "1", "--dry-run"],
    ]


def _retype(random: Random, file: Path) -> None:
    """One value, anywhere in the file, becomes another; a checkpoint's checksum follows."""
    if file.suffix == ".jsonl":
        lines = file.read_text().splitlines()
        number = random.randrange(len(lines))
        lines[number] = json.dumps(_changed(random, json.loads(lines[number])))
        file.write_text("\n".join(lines) + "\n")
    elif file.suffix == ".yaml":
        file.write_text(yaml.safe_dump(_changed(random, yaml.safe_load(file.read_text()))))
    else:
        file.write_text(json.dumps(_changed(random, json.loads(file.read_text()))))
    checksums = file.with_name("checksums.json")
    if file.name == "state.json" and checksums.is_file():
        values = json.loads(checksums.read_text())
        values["state.json"] = hashlib.sha256(file.read_bytes()).hexdigest()
        checksums.write_text(json.dumps(values))


def _changed(random: Random, value: Any) -> Any:
    inner = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    if not inner or random.random() < 0.15:
        return random.choice(VALUES)
    key = random.choice(inner)
    if isinstance(value, dict) and random.random() < 0.15:
        return {name: item for name, item in value.items() if name != key}
    if isinstance(value, dict):
        return {**value, key: _changed(random, value[key])}
    return [*value[:key], _changed(random, value[key]), *value[key + 1 :]]


def _flip(random: Random, file: Path) -> None:
    content = bytearray(file.read_bytes())
    for _ in range(random.randint(1, 8)):
        content[random.randrange(len(content))] = random.randrange(256)
    file.write_bytes(content)


def _cut(random: Random, file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: random.randrange(len(content))])


def _replace(random: Random, file: Path) -> None:
    """By nothing, a folder, a link that leads nowhere, deep nesting, a number of 5,000 digits, no UTF-8."""
    file.unlink()
    kind = random.randrange(6)
    if kind == 1:
        file.mkdir()
    elif kind == 2:
        file.symlink_to("nowhere")
    elif kind > 2:
        file.write_bytes((b"[" * 100_000, b'{"a": ' + b"9" * 5000 + b"}", b"\xff\xfe\x00")[kind - 3])


FAMILY = Family("damaged run folders", 0.3, tries)
