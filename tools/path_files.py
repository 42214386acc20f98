"""Counts the files of src/attnlab that a command passes through: those in which a function is executed.

    python tools/path_files.py            prints the count of each of the five paths of CONTRIBUTING.md
    python tools/path_files.py --list     and the files, in the order in which they are first passed
    python tools/path_files.py --check    exits with 1 if a path is longer than it may be, or CONTRIBUTING.md differs
    python tools/path_files.py --write    writes the lists of files into CONTRIBUTING.md

Module-level code does not count (every import would), nor do the registrations of other commands at start-up. Each
path runs at a tiny size in a temporary folder, in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCE = str(ROOT / "src" / "attnlab") + os.sep
CO_OPTIMIZED = 1  # set for functions, not for modules and class bodies
PAGE = ROOT / "CONTRIBUTING.md"
HEADINGS = {
    "pretrain": "### Pretrain",
    "classify": "### Classify with LoRA",
    "compare": "### Compare",
    "sweep": "### Sweep with a worker",
    "synthesizer": "### A batch through the synthesizer",
}
LIMITS = {"pretrain": 48, "classify": 70, "compare": 74, "sweep": 86, "synthesizer": 9}

MACHINE = ["--threads", "1", "--precision", "fp32"]
SHAPE = ["--layers", "1", "--heads", "2", "--width", "16", "--context", "64"]
COMMANDS = {
    "pretrain": ["pretrain", "--people", "12", "--places", "4", *SHAPE, "--steps", "2", "--batch-size", "4", *MACHINE],
    "classify": [
        *("classify", "--model", "base", "--tune", "lora", "--examples", "16", "--steps", "2", *MACHINE),
        *("--no-baselines", "--no-label-errors"),
    ],
    "compare": [
        *("compare", "--attention", "vanilla,linear", "--corpus", "text.txt", *SHAPE),
        *("--steps", "2", "--seeds", "2", *MACHINE),
    ],
    "sweep": [
        *("sweep", "--job", "classify", "--vary", "optimizer.lr=1e-4,1e-3", "--set", "model.name=base"),
        *("--set", "training.steps=2", "--set", "data.examples=16", "--no-baselines", *MACHINE),
    ],
}


class Files:
    """A profiler that notes each file on its first executed function."""

    def __init__(self) -> None:
        self.seen: dict[str, None] = {}
        self.importing = 0

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if code.co_name == "<module>" or (code.co_name == "_build" and code.co_filename.endswith("help.py")):
            self.importing += (event == "call") - (event == "return")
        elif (
            event == "call"
            and not self.importing
            and code.co_flags & CO_OPTIMIZED
            and code.co_filename.startswith(SOURCE)
            and code.co_filename.endswith(".py")
        ):
            self.seen.setdefault(code.co_filename.removeprefix(SOURCE))

    def start(self) -> None:
        threading.setprofile(self)
        sys.setprofile(self)


def trace_command(words: list[str]) -> list[str]:
    from attnlab.cli import main

    sys.argv = ["attnlab", *words]
    files = Files()
    files.start()
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
    finally:
        sys.setprofile(None)
    return list(files.seen)


def trace_synthesizer() -> list[str]:
    """A batch through a GPT with the synthesizer, forward and backward."""
    import torch

    from attnlab.models.gpt import GPT, preset

    files = Files()
    files.start()
    model = GPT(preset("vanilla", 50, attention="synthesizer", layers=1, heads=2, width=16, context=32))
    model(torch.zeros(2, 8, dtype=torch.long)).sum().backward()
    sys.setprofile(None)
    return list(files.seen)


def prepare(folder: Path) -> None:
    """A text and a tiny encoder."""
    sys.path.insert(0, str(ROOT))
    from tests.tiny_models import tiny_model

    (folder / "text.txt").write_text("the cat sat on the mat and the dog ran away\n" * 200, encoding="utf-8")
    tiny_model(folder / "base")


def in_child(name: str, folder: Path) -> list[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "HF_HUB_OFFLINE": "1"}
    output = folder / f"{name}.json"
    command = [sys.executable, __file__, "--trace", name, "--output", str(output)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stdout}{done.stderr}")
    files: list[str] = json.loads(output.read_text(encoding="utf-8"))
    return files


def trace_paths(names: list[str]) -> dict[str, list[str]]:
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder))
        return {name: in_child(name, Path(folder)) for name in names}


def listed(files: list[str]) -> str:
    """The files of a path as a block of lines, those of one folder beside each other."""
    lines: list[list[str]] = []
    for file in files:
        folder, _, name = file.rpartition("/")
        if lines and lines[-1][0] == folder:
            lines[-1].append(name.removesuffix(".py"))
        else:
            lines.append([folder, name.removesuffix(".py")])
    return "\n".join(f"{folder + '/':25}{' '.join(names)}" for folder, *names in lines)


def page_with(paths: dict[str, list[str]]) -> str:
    """CONTRIBUTING.md with the lists as they are."""
    text = PAGE.read_text(encoding="utf-8")
    for name, files in paths.items():
        before, heading, after = text.partition(HEADINGS[name] + "\n")
        opening, block, rest = after.partition("```\n")
        _, closing, rest = rest.partition("```\n")
        text = before + heading + opening + block + listed(files) + "\n" + closing + rest
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print the files of each path")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a path is longer than it may be")
    parser.add_argument("--write", action="store_true", help="write the lists into CONTRIBUTING.md")
    parser.add_argument("--trace", choices=LIMITS, help=argparse.SUPPRESS)
    parser.add_argument("--output", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.trace:
        name = args.trace
        files = trace_synthesizer() if name == "synthesizer" else trace_command(COMMANDS[name])
        args.output.write_text(json.dumps(files), encoding="utf-8")
        return 0
    too_long, paths = False, trace_paths(list(LIMITS))
    for name, files in paths.items():
        print(f"{name:12} {len(files):3} files, at most {LIMITS[name]}")
        too_long |= len(files) > LIMITS[name]
        for file in files if args.list else []:
            print(f"    {file}")
    if args.write:
        PAGE.write_text(page_with(paths), encoding="utf-8")
    stale = page_with(paths) != PAGE.read_text(encoding="utf-8")
    if args.check and stale:
        print("CONTRIBUTING.md lists other files: run tools/path_files.py --write.")
    return int(args.check and (too_long or stale))


if __name__ == "__main__":
    raise SystemExit(main())
