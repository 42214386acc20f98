"""Whether a resumed run is the one that was started: same data, files and settings, or changes that are recorded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attnlab.base.errors import UserError
from attnlab.config.recipe import Key, leaves, value_of
from attnlab.config.sections import Section
from attnlab.jobs.prepared import Prepared
from attnlab.runs import RunFolder, read_config, read_record
from attnlab.runs.settings import CONFIG, MAY_GROW, edited_settings, flat, grows, text_checksum

SENTENCES = ("notes", "fast_encoder")
"""Facts about the data that are sentences: another version may word them differently."""
TRAINED_ANEW = {"start_sha256": "the weights it starts from"}
"""Facts that are checksums, as they are called in a sentence."""


def must_match(path: Path, prepared: Prepared) -> None:
    """Raise if the data changed since the run started: it could not be continued exactly."""
    record, facts = read_record(path), prepared.parts.facts
    for name, before in record.get("data", {}).items():
        if name in facts and facts[name] != before and name not in SENTENCES:
            if name in TRAINED_ANEW:
                raise UserError(
                    f"{path}: {TRAINED_ANEW[name]} have changed since the run started: "
                    "put the old ones back or start a new run."
                )
            raise UserError(
                f"{path}: {name} has changed since the run started ({before} then, {facts[name]} now): "
                "restore the old data or start a new run."
            )
    for name, before in record.get("files", {}).items():
        text = prepared.parts.files.get(name)
        if text is None or text_checksum(text) != before:
            raise UserError(f"{path}: {name} differs from the one the run started with: start a new run.")
    steps, settings = record.get("steps", prepared.steps), record.get("settings") or read_config(path)
    if steps != prepared.steps and not more_steps(settings, prepared.config):
        raise UserError(
            f"{path} started with {steps} steps, and its configuration now has {prepared.steps}: "
            f"put {CONFIG} back or start a new run."
        )


def more_steps(settings: Mapping[str, Any], config: Section) -> dict[Key, int]:
    """The numbers of steps or epochs that are larger in a configuration than in these settings; empty without any."""
    saved, keys = flat(settings), {name: tuple(name.split(".")) for name in MAY_GROW}
    given = {name: value_of(config, key) for name, key in keys.items() if key in leaves(type(config))}
    return {keys[name]: value for name, value in given.items() if grows(saved.get(name), value)}


def record_changes(run: RunFolder, prepared: Prepared) -> None:
    """Note the settings that are not those the run started with, and keep them."""
    values = read_config(run.path)
    if more := more_steps(values, prepared.config):
        for section, name in more:
            values[section][name] = more[section, name]
        run.write_config(values)
    edited = edited_settings(run.path)
    for name, (then, now) in edited.items():
        run.note_change(f"{name} is {now} since the run was resumed, and was {then} before.")
    if edited:
        run.update_record(settings=read_config(run.path), steps=prepared.steps)
