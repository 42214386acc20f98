"""Every command that a README or a report of an assignment prints is run by a test.

Here: those that no other test types, in a shell, in a clean copy of the folder, at tiny size. And a list of all, so
that a new one cannot be forgotten.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.assignments import test_adapting_commands, test_attention_notebooks, test_knowledge_commands, test_reports
from tests.assignments.attention_folder import copy_folder
from tests.assignments.conftest import ASSIGNMENTS, CleanCopy
from tests.launch import test_course_job

pytest.importorskip("transformers")
COURSE, ADAPTING = "training-transformer-language-models", "adapting-transformers"
KNOWLEDGE, ATTENTION, BERT = (
    "self-attention-transformers-pretraining",
    "attention-and-transformers",
    "natural-language-processing-4",
)
Command = tuple[str, ...]
RUNS = re.compile(
    r"(?:[A-Z_]+=\S* )*(?:python|sh|bash|sbatch|squeue|sinfo|ln|\./\S+|attnlab (?:check|explore))(?: .*)?$"
)


def page(name: str, file: str) -> str:
    return (ASSIGNMENTS / name / file).read_text(encoding="utf-8")


def fenced(text: str) -> Iterator[Command]:
    """The commands in blocks of code, a continued line as one."""
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        if language not in ("", "sh", "bash"):
            continue
        for line in block.replace("\\\n", " ").splitlines():
            if RUNS.match(line):
                yield tuple(shlex.split(line, comments=True))


def inline(text: str) -> Iterator[Command]:
    """The commands in a sentence or table; those with … are shortened forms of others."""
    for words in re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
        if RUNS.match(words) and "…" not in words and not words.startswith("attnlab"):
            yield tuple(shlex.split(words))


def printed(name: str) -> list[Command]:
    """All commands of a folder, each once, in their order."""
    pages = [page(name, "README.md"), page(name, "report.md")]
    return list(dict.fromkeys(words for text in pages for kind in (fenced, inline) for words in kind(text)))


def measured(name: str) -> set[Command]:
    """The commands of results that are kept: test_experiments_sh runs the script that has them."""
    files = (ASSIGNMENTS / name / "results").glob("*.json")
    return {tuple(shlex.split(json.loads(file.read_text(encoding="utf-8"))["command"])) for file in files}


SLURM = {tuple(shlex.split(line)) for line in test_course_job.LINES}
ELSEWHERE: dict[str, set[Command]] = {
    COURSE: measured(COURSE) | SLURM | {("sbatch",), ("sinfo",)},  # programs that are only named
    ADAPTING: measured(ADAPTING) | {("python", *shlex.split(words)) for words in test_adapting_commands.COMMANDS},
    # test_knowledge_report makes the hand-in; all experiments take hours, and REPEATED is one of them
    KNOWLEDGE: {tuple(words) for words in test_knowledge_commands.printed_commands()}
    | {("python", "experiments.py"), ("python", "experiments.py", "hand-in")},
    ATTENTION: {tuple(shlex.split(words, comments=True)) for words in test_attention_notebooks.printed_commands()},
    # test_bert_commands types both, test_bert_submission the rest
    BERT: {words for words in printed(BERT) if "${YOUR_DATA_DIR}" in words}
    | {("./experiments.sh",), ("python", "collect.py"), ("python", "make_submission.py")},
}
EXPLORE = {tuple(shlex.split(words)) for words in test_reports.shown_commands()}
HERE = {name: [words for words in printed(name) if words not in others | EXPLORE] for name, others in ELSEWHERE.items()}


@pytest.mark.parametrize("words", [words for words in HERE[COURSE] if words[0] == "python"], ids=shlex.join)
@pytest.mark.slow
def test_an_experiment_as_printed(words: Command, clean_copy: Callable[[str], CleanCopy]) -> None:
    """Not an option is changed: the models have a width of 16, and there are 48 questions."""
    course = clean_copy(COURSE)
    output = () if "--help" in words else ("--output", "out")
    code, out, err = course.run(*words[1:], *output)
    assert code == 0, err
    if output:
        found = course.results("out")
        assert found["instead"] == [] and all(run["state"] == "finished" for run in found["runs"])
        assert out.count("metrics: accuracy=") >= 1
        assert all((course.folder / "out" / figure).is_file() for figure in found["figures"])


def typed(line: str, folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """A line in a shell, where the interpreter of the tests is `python`."""
    path = os.pathsep.join([str(folder / "bin"), str(Path(sys.executable).parent), environment.get("PATH", "")])
    return subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        env=environment | {"PATH": path, "OMP_NUM_THREADS": "1"},
        text=True,
        capture_output=True,
        timeout=1200,
    )


SMALL = f"""#!/bin/bash
# `python`, with the options of a small model for src/run.py
case "$1 $2" in
  "src/run.py pretrain" | "src/run.py finetune") set -- "$@" --layers 1 --heads 2 --width 16 --epochs 1 ;;
  "src/run.py evaluate") set -- "$@" --layers 1 --heads 2 --width 16 ;;
esac
exec {shlex.quote(sys.executable)} "$@"
"""
# `python experiments.py scratch-fast`: one of its experiments instead of hours, and by the small `python` as well.
REPEATED = """python -c '
import os, runpy, sys
sys.executable, sys.argv = os.path.abspath("bin/python"), ["experiments.py", "scratch-fast"]
runpy.run_path("experiments.py", run_name="__main__")'"""


@pytest.mark.slow
@pytest.mark.parametrize("file", ["README.md", "report.md"])
def test_the_other_commands_on_pretraining_in_their_order(
    file: str, tmp_path: Path, cli_environment: dict[str, str]
) -> None:
    folder = tmp_path / "course"
    shutil.copytree(ASSIGNMENTS / KNOWLEDGE, folder, ignore=shutil.ignore_patterns("runs", "results", "__pycache__"))
    data = folder / "path" / "to" / "birthplaces"  # as the README's `ln` has it
    data.mkdir(parents=True)
    (tmp_path / "filled").mkdir()
    for each in test_knowledge_commands.fill(tmp_path / "filled").glob("[bw]*"):  # birth….tsv and wiki.txt
        shutil.copy(each, data)
    (folder / "bin").mkdir()
    (folder / "bin" / "python").write_text(SMALL)
    (folder / "bin" / "python").chmod(0o755)
    environment = cli_environment | {"ATTNLAB_QUICK": "1", "TEXT": "wiki.txt"}
    link, *others = (" ".join(words) for words in HERE[KNOWLEDGE])
    shown = {" ".join(words) for kind in (fenced, inline) for words in kind(page(KNOWLEDGE, file))}
    own = ["python mingpt-demo/play_char.py"] if file == "README.md" else [REPEATED]
    for line in [link, *own, *(line for line in others if line in shown)]:
        done = typed(line, folder, environment)
        assert done.returncode == 0, f"{line}\n{done.stderr[-2000:]}"
    if file == "report.md":
        assert (folder / "vanilla.pretrain.dev.predictions.trace.tsv").is_file()
        assert (folder / "results" / "scratch-fast.json").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("words", HERE[ATTENTION], ids=" ".join)
def test_the_other_commands_on_attention(words: Command, tmp_path: Path, cli_environment: dict[str, str]) -> None:
    environment = {name: value for name, value in cli_environment.items() if name != "ATTNLAB_DATA"}
    done = typed(" ".join(words), copy_folder(tmp_path), environment | {"ATTNLAB_QUICK": "1"})
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.slow
def test_the_other_commands_on_reviews_in_their_order(place: Path, cli_environment: dict[str, str]) -> None:
    shutil.copytree(
        ASSIGNMENTS / BERT, place, dirs_exist_ok=True, ignore=shutil.ignore_patterns("runs", "results", "__pycache__")
    )
    (place / "yelp_small").rename(place / "yelp")
    (place / "unlabeled_train_50000.txt").rename(place / "yelp" / "unlabeled.txt")
    (place / "models" / "TinyBERT_General_4L_312D").rename(place / "models" / "tinybert-4l-312d")
    environment = cli_environment | {"ATTNLAB_DATA": str(place), "ATTNLAB_MODELS": str(place / "models")}
    lines = [" ".join(words) for words in HERE[BERT]]
    assert any("&& python collect.py" in line for line in lines)
    for line in lines:
        done = typed(line, place, environment)
        assert done.returncode == 0, f"{line}\n{done.stderr[-2000:]}"
    assert (place / "results" / "problem2.json").is_file() and (place / "results" / "problem3.json").is_file()


def test_no_printed_command_is_forgotten() -> None:
    """What is left over is run above, by folder; a command of a new kind fails here."""
    kinds = {
        COURSE: ("python classification.py",),
        ADAPTING: (),
        KNOWLEDGE: ("ln -s", "python "),
        ATTENTION: ("TOKENS=",),
        BERT: ("ln -s", "./experiments.sh problem", "python classifier"),
    }
    for name, commands in HERE.items():
        assert len(printed(name)) >= 8, f"the commands of {name} are not recognized"
        for words in commands:
            assert " ".join(words).startswith(kinds[name]), f"{name}: no test runs {' '.join(words)}"


@pytest.mark.slow
def test_the_facts_are_printed(cli_environment: dict[str, str]) -> None:
    done = typed("python assignments/facts.py", ASSIGNMENTS.parent, cli_environment)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^noise\.ratio_forward +174\.472$", done.stdout, re.MULTILINE)
