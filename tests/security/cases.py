"""Hostile files as a table of cases: what a stranger wrote, the commands with which a user opens it, what must hold.

A case holds when no code of the stranger was executed, nothing outside the stranger's folder was changed, and every
command ended as a command does: with 0, 1 or 2, and without a traceback. `survives` tells why one does not.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from tests.security import payloads

TINY = ["--layers", "1", "--heads", "2", "--width", "16", "--threads", "1", "--device", "cpu", "--precision", "fp32"]
TEXT = "the cat sat on the mat and the dog ate the cake. " * 60


@dataclass(frozen=True)
class Outcome:
    code: int
    output: str


Attnlab = Callable[[list[str], str], Outcome]
"""Runs `attnlab WORDS...` with a text on standard input."""


@dataclass(frozen=True)
class Stage:
    """The folders of a case: `stranger` is what was received, `mine` is the user's own and must stay as it is."""

    root: Path
    attnlab: Attnlab

    @property
    def stranger(self) -> Path:
        return self.root / "stranger"

    @property
    def mine(self) -> Path:
        return self.root / "mine"

    @property
    def marker(self) -> Path:
        """Created by any code of the stranger."""
        return self.root / "executed"


@dataclass(frozen=True)
class Case:
    name: str
    commands: list[str]
    """With {stranger} and {mine} for the two folders."""
    prepare: Callable[[Stage], None] = lambda scene: None
    """What the stranger changes in the folder of `made`."""
    made: str = ""
    """The stranger's run: "language", "knowledge", "compare", "sweep" or "classify"."""
    codes: tuple[int, ...] = (0, 1, 2)
    told: str = ""
    """What the output must contain."""
    stdin: str = ""


def make_runs(root: Path, attnlab: Attnlab) -> None:
    """The stranger's runs, each trained with an attention of the stranger's own; slow, so once for all cases."""
    evil, text = root / "evil.py", root / "text.txt"
    evil.write_text(payloads.ATTENTION, encoding="utf-8")
    text.write_text(TEXT, encoding="utf-8")
    short = ["--context", "16", *TINY]
    settings = {"data.corpus": text, "training.steps": 4, "model.layers": 1, "model.heads": 2, "model.width": 16}
    sets = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    on_cpu = ["--threads", "1", "--device", "cpu", "--precision", "fp32"]
    for words in (
        ["language", "--attention", evil, "--corpus", text, "--steps", 4, *short, "--run", root / "language"],
        ["language", "--corpus", text, "--steps", 4, *short, "--run", root / "plain"],
        [
            *("knowledge", "--attention", evil, "--people", 20, "--context", 64, *TINY),
            *("--pretrain-epochs", 1, "--finetune-epochs", 1, "--run", root / "knowledge"),
        ],
        [
            *("compare", "--attention", f"vanilla,{evil}", "--corpus", text, "--steps", 4, "--seeds", 1, *short),
            *("--run", root / "compare"),
        ],
        [
            *("sweep", "--job", "language", "--vary", f"model.attention={evil},vanilla", *sets, *on_cpu),
            *("--set", "model.context=16", "--run", root / "sweep"),
        ],
    ):
        done = attnlab([*map(str, words)], "")
        assert done.code == 0, done.output


def stage(case: Case, made: Path, root: Path, attnlab: Attnlab) -> Stage:
    """The folders of a case, prepared."""
    scene = Stage(root, attnlab)
    scene.stranger.mkdir(parents=True)
    scene.mine.mkdir()
    (scene.mine / "text.txt").write_text(TEXT, encoding="utf-8")
    (scene.mine / "ask.tsv").write_text("where is the cat?\ton the mat\n" * 8, encoding="utf-8")
    (scene.mine / "letter.txt").write_text("mine", encoding="utf-8")
    if case.made:
        shutil.copytree(made / case.made, scene.stranger / case.made, symlinks=True)
    case.prepare(scene)
    return scene


def survives(case: Case, scene: Stage) -> str:
    """Empty, or why the promise is broken."""
    os.environ["MARKER"] = str(scene.marker)
    before = contents(scene)
    for command in case.commands:
        words = [word.format(stranger=scene.stranger, mine=scene.mine) for word in command.split()]
        outcome = scene.attnlab(words, case.stdin)
        if scene.marker.exists():
            return f"{command}: code of the stranger was executed"
        if "Traceback" in outcome.output:
            return f"{command}: a traceback: {outcome.output[-600:]}"
        if outcome.code not in case.codes or "Usage:" in outcome.output:
            return f"{command}: exit code {outcome.code}: {outcome.output[-600:]}"
        if case.told not in " ".join(outcome.output.split()):
            return f"{command}: expected {case.told!r} in {outcome.output[-600:]}"
    if changed := sorted(set(before.items()) ^ set(contents(scene).items())):
        return f"{case.commands}: files outside the stranger's folder were changed: {changed[0][0]}"
    return ""


def contents(scene: Stage) -> dict[str, str]:
    """The checksum of everything that is not the stranger's."""
    files = [path for path in scene.root.rglob("*") if path.is_file() and not path.is_relative_to(scene.stranger)]
    return {str(path): sha256(path.read_bytes()).hexdigest() for path in files if path != scene.marker}


def change(file: str, **values: Any) -> Callable[[Stage], None]:
    """Other values in a JSON file of the stranger's."""

    def prepare(scene: Stage) -> None:
        path = scene.stranger / file
        path.write_text(json.dumps({**json.loads(path.read_text()), **values}))

    return prepare


def link(name: str, to: str) -> Callable[[Stage], None]:
    """A file or folder of the stranger's that is a link to one of the user's."""

    def prepare(scene: Stage) -> None:
        path, target = scene.stranger / name, scene.mine / to
        if path.is_dir():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        path.symlink_to(target)

    return prepare


def interrupted(run: str) -> Callable[[Stage], None]:
    """A run, and those inside it, that can be resumed."""

    def prepare(scene: Stage) -> None:
        for file in (scene.stranger / run).rglob("status.json"):
            change(str(file.relative_to(scene.stranger)), state="interrupted", reason="stopped")(scene)

    return prepare


def without_the_file(scene: Stage) -> None:
    """The file that the run names is on the stranger's machine only: the run's copy would be executed."""
    config = scene.stranger / "language" / "config.yaml"
    named = next(line for line in config.read_text().splitlines() if "evil.py" in line).split(": ", 1)[1]
    for file in (config, config.with_name("run.json")):  # both: one alone would be an edited setting
        file.write_text(file.read_text().replace(named, "/gone/evil.py"))


def both(*steps: Callable[[Stage], None]) -> Callable[[Stage], None]:
    def prepare(scene: Stage) -> None:
        for step in steps:
            step(scene)

    return prepare


def journal_folder(name: str) -> Callable[[Stage], None]:
    """A journal whose waiting trial is stored in another folder."""

    def prepare(scene: Stage) -> None:
        path = scene.stranger / "sweep" / "journal.log"
        entries = [json.loads(line) for line in path.read_text().splitlines()]
        kept = [entry for entry in entries if entry["op_code"] in (0, 4)]  # studies and trials, none of them begun
        for entry in kept:
            if "user_attrs" in entry:
                entry["user_attrs"]["folder"] = name
        path.write_text("".join(json.dumps(entry) + "\n" for entry in kept))

    return prepare


REFUSED = "code that you have not allowed to run"
OPENED = {
    "language": [
        *("sample {stranger}/language --prompt the", "evaluate {stranger}/language {mine}/text.txt"),
        *("heads {stranger}/language", "ablate {stranger}/language", "lens {stranger}/language --text the"),
        *("inspect {stranger}/language --text the --out {stranger}/page.html", "resume {stranger}/language"),
        "language --config {stranger}/language/config.yaml --run {stranger}/again",
        "finetune --from {stranger}/language --train {mine}/ask.tsv --dev {mine}/ask.tsv --run {stranger}/again",
    ],
    "knowledge": [
        *("ask {stranger}/knowledge where?", "evaluate {stranger}/knowledge", "trace {stranger}/knowledge"),
        *("sample {stranger}/knowledge --prompt the", "resume {stranger}/knowledge"),
        "knowledge --config {stranger}/knowledge/config.yaml --run {stranger}/again",
        "pretrain --config {stranger}/knowledge/pretrain/config.yaml --run {stranger}/again",
        "finetune --from {stranger}/knowledge/pretrain --run {stranger}/again",
    ],
    "compare": ["compare --resume --run {stranger}/compare --seeds 2"],
    "sweep": ["sweep --resume --run {stranger}/sweep --seeds 2"],
}
READ = {
    "runs --in {stranger}": 0,
    "runs show {stranger}/NAME": 0,
    "predict {stranger}/NAME --text good": 2,
    "export {stranger}/NAME --to {stranger}/exported": 2,
}
"""Commands that need no model of the run, and commands for classifiers, with their exit codes."""


def opened() -> Iterator[Case]:
    """Every command that opens a run, on one whose configuration names code."""
    for made, commands in OPENED.items():
        for command in commands:
            name = f"{made}: {command.replace('{stranger}/', '')}"
            prepare = interrupted(made) if "resume" in command else Case.prepare
            yield Case(name, [command], prepare, made, told=REFUSED)
        for command, code in READ.items():
            yield Case(f"{made}: {command}", [command.replace("NAME", made)], made=made, codes=(code,))


MODEL = "{stranger}/model"
MODEL_COMMANDS = [
    *(f"models show {MODEL}", f"inspect {MODEL} --text the --out {{stranger}}/page.html", f"heads {MODEL}"),
    f"predict {MODEL} --text good",
    f"classify --model {MODEL} --task {{stranger}}/train.tsv --epochs 1 --device cpu --run {{stranger}}/run",
]


def models() -> Iterator[Case]:
    """Folders of models; "y" and "yes" stand on standard input for whoever asks a question."""
    for name, (prepare, told) in payloads.MODELS.items():
        for command in MODEL_COMMANDS:
            expected = told if command.startswith("classify") else ""
            yield Case(
                f"model: {name}: {command.split()[0]}",
                [command],
                lambda scene, make=prepare: make(scene.stranger),
                told=expected,
                stdin="y\nyes\n1\n",
            )


CASES = [
    *opened(),
    *models(),
    *(
        Case(f"sweep: a trial in {folder!r}", ["sweep --resume --run {stranger}/sweep"], prepare, "sweep", (1, 2), told)
        for folder in ("../../../mine", "..", "/tmp/outside", "a/../../../../mine")
        for prepare, told in [(journal_folder(folder), "names the folder")]
    ),
    *(
        Case(f"run: {name} is a link", ["resume {stranger}/plain"], prepare, "plain", (2,), "is a link to")
        for name, target in (("metrics.jsonl", "letter.txt"), ("figures", "."), ("checkpoints", "new"))
        for prepare in [both(interrupted("plain"), link(f"plain/{name}", target))]
    ),
    Case(
        "run: evaluations is a link",
        ["evaluate {stranger}/plain {mine}/text.txt"],
        link("plain/evaluations", "."),
        "plain",
        (2,),
        "is a link to",
    ),
    *(
        Case(f"run's copy: {command}", [command], without_the_file, "language", (2,), f"attention.py is {REFUSED}")
        for command in OPENED["language"][:1]
    ),
    Case(
        "jobs that are options",
        ["jobs log {stranger}/language", "jobs cancel {stranger}/language"],
        lambda scene: payloads.write_jobs(scene.stranger / "language", "--user=root"),
        "language",
        (2,),
        "a job is not a number",
    ),
    Case(
        "jobs that are paths",
        ["jobs log {stranger}/language"],
        lambda scene: payloads.write_jobs(scene.stranger / "language", "../../../mine/letter.txt"),
        "language",
        (2,),
        "a job is not a number",
    ),
    Case(
        "matrix: a pickle as .npy",
        ["explore attend --keys {stranger}/x.npy --values {stranger}/x.npy"],
        lambda scene: payloads.pickled(scene.stranger / "x.npy"),
        codes=(2,),
        told="x.npy",
    ),
    *(
        Case(f"recipe: {name}", ["language --config {stranger}/r.yaml --run {stranger}/run"], prepare, codes=(2,))
        for name, text in payloads.RECIPES.items()
        for prepare in [lambda scene, text=text: payloads.write(scene.stranger / "r.yaml", text)]
    ),
]
