"""`lab.train`, `lab.pretrain`, `lab.finetune` and `lab.knowledge`: the training commands as functions.

All take a description of the model, the data, and settings by the names they have on the command line
(`batch_size=16`) or in a recipe (`**{"batch.size": 16}`, `batch__size=16`). All return a `Run`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnlab.api.arguments import is_path
from attnlab.api.gpt import GPT, attention_name
from attnlab.api.inputs import Inputs, keys_of
from attnlab.api.processes import run_command
from attnlab.api.run import Run
from attnlab.base.errors import UserError
from attnlab.base.files import write_text
from attnlab.config.gpt import GPTSection
from attnlab.config.recipe import Key, load
from attnlab.config.sections import Section, machine_of
from attnlab.jobs.registry import KINDS
from attnlab.runs.folder import INPUTS, ROOT, called_from_python, fresh_path

if TYPE_CHECKING:
    from attnlab.api.handed import Examples
    from attnlab.jobs.job import RunOptions

    Data = Examples | None

ATTENTION: Key = ("model", "attention")
DATA: dict[str, Key] = {
    "language": ("data", "corpus"),
    "pretrain": ("data", "corpus"),
    "knowledge": ("data", "corpus"),
    "finetune": ("data", "train"),
    "classify": ("data", "task"),
}
"""The setting that the data of a call are, by kind of job."""


def train(model: GPT | None, data: Data, **settings: Any) -> Run:
    """Train a GPT on a text read as one stream; see `attnlab language --help-all` for the settings.

    `data` is the path of a file, or a list of texts, which are put one after another. Besides the settings of the job:
    `recipe` (a name or a file), `run` (the folder; a new one in runs/ otherwise) and `overwrite`.
    """
    return start("train", "language", model, data, settings)


def pretrain(model: GPT | None = None, data: Data = None, **settings: Any) -> Run:
    """Pretrain a GPT, or a BERT with objective="mlm", on documents, one per line or per text of a list.

    Without data, on the synthetic world. See `attnlab pretrain --help-all` for the settings, `train` for the others.
    """
    return start("pretrain", "pretrain", model, data, settings)


def finetune(model: GPT | Run | str | Path | None, data: Data = None, **settings: Any) -> Run:
    """Fine-tune a pretrained run, or a new GPT, on questions and answers.

    `data`, `dev` and `test` are tab-separated files or lists of (question, answer) pairs; without them, the questions
    of the synthetic world. See `attnlab finetune --help-all` for the settings, `train` for the others.
    """
    return start("finetune", "finetune", model, data, settings)


def knowledge(model: GPT | None = None, data: Data = None, **settings: Any) -> Run:
    """Pretrain on documents (`data`), fine-tune on questions (`train`, `dev`, `test`) and score, in one run.

    Without data, on the synthetic world. See `attnlab knowledge --help-all` for the settings, `train` for the others.
    """
    return start("knowledge", "knowledge", model, data, settings)


def start(function: str, kind: str, model: Any, data: Any, settings: Mapping[str, Any]) -> Run:
    """What all of them do: check the settings, write what was handed in into the folder, and run the job."""
    options = dict(settings)
    recipe, run, overwrite = folder_settings(options)
    path = run or fresh_path(ROOT, kind)
    inputs = Inputs(path, bool(overwrite))
    section = KINDS[kind].config
    given = model_settings(model, kind) | keys_of(section, options)
    if data is not None:
        given[DATA[kind]] = data
    if ATTENTION in given:
        given[ATTENTION] = attention_name(given[ATTENTION])
    config = load(section, recipe, inputs.settings(section, given, stream=kind == "language"))
    shape = getattr(config, "model", None)
    if isinstance(shape, GPTSection) and (stored := inputs.attention(shape.attention, shape)) != shape.attention:
        shape.attention = stored
    from attnlab.jobs.job import RunOptions

    with called_from_python(call_text(function, model, data, settings)), inputs.written():
        _run(kind, config, RunOptions(path, bool(overwrite), changes=tuple(inputs.notes)))
    return Run(path)


def model_settings(model: Any, kind: str) -> dict[Key, Any]:
    """The settings that the first argument of a call stands for."""
    if model is None:
        return {}
    if isinstance(model, GPT):
        return {("model", name): value for name, value in model.given.items()}
    if kind == "finetune" and isinstance(model, Run | str | Path):
        return {("start", "run"): os.fspath(model)}
    expected = "lab.GPT(...), a run or None" if kind == "finetune" else "lab.GPT(...) or None"
    raise UserError(f"the model: expected {expected}, got {type(model).__name__}.")


def folder_settings(options: dict[str, Any]) -> tuple[Path | None, Path | None, bool]:
    """Takes `recipe`, `run` and `overwrite` from the settings of a call."""
    paths: list[Path | None] = []
    for name in ("recipe", "run"):
        given = options.pop(name, None)
        if given is not None and not is_path(given):
            raise UserError(f"{name}: expected a path, got {given!r:.60}.")
        paths.append(None if given is None else Path(given))
    recipe, run = paths
    return recipe, run, bool(options.pop("overwrite", False))


def _run(kind: str, config: Section, options: RunOptions) -> None:
    if machine_of(config).processes == 1:
        KINDS[kind].job()(config).run(options)
    else:
        _run_several(kind, config, options)


def _run_several(kind: str, config: Section, options: RunOptions) -> None:
    """Several processes cannot share this one's objects: each runs the command with what is in the folder."""
    import yaml

    from attnlab.attention.registry import OWN

    path, shape = options.path, getattr(config, "model", None)
    assert path is not None
    if isinstance(shape, GPTSection) and shape.attention.startswith(OWN):
        raise UserError(f"{shape.attention} cannot be stored, and several processes cannot share it: use processes=1.")
    recipe = path / INPUTS / "settings.yaml"
    recipe.parent.mkdir(parents=True, exist_ok=True)
    write_text(recipe, yaml.safe_dump(config.model_dump(mode="json", exclude_unset=True), sort_keys=False))
    words = [kind, f"--config={recipe}", f"--run={path}", *["--overwrite"] * options.overwrite]
    run_command(words, machine_of(config), path)


def call_text(function: str, model: Any, data: Any, settings: Mapping[str, Any]) -> str:
    """The call as it was written, with large objects abbreviated."""
    words = [_brief(part) for part in (model, data)] + [f"{name}={_brief(value)}" for name, value in settings.items()]
    return f"lab.{function}({', '.join(words)})"


def _brief(value: Any) -> str:
    if isinstance(value, type) or (callable(value) and not isinstance(value, GPT)):
        return str(getattr(value, "__name__", type(value).__name__))
    text = repr(str(value) if isinstance(value, Path) else value)
    return text if len(text) <= 200 else f"{text[:80]}…"
