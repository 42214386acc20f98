"""What is handed in from Python becomes files in the folder of the run: it explains itself, and can be resumed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from attnlab.api.handed import content_of
from attnlab.base import console, trust
from attnlab.base.errors import UserError
from attnlab.base.files import unlike, write_text
from attnlab.config.gpt import GPTSection
from attnlab.config.recipe import Key, find_setting, flag_of, leaves
from attnlab.config.sections import Section, is_path
from attnlab.runs.folder import INPUTS, is_run, may_begin, must_be_free

TEXTS, LABELLED = "texts", "labelled texts"
TASK: Key = ("data", "task")
SPLITS: tuple[Key, ...] = (("data", "dev"), ("data", "test"))


def keys_of(kind: type[Section], settings: Mapping[str, Any]) -> dict[Key, Any]:
    """Settings by the names of their flags (batch_size) or by dotted names (batch.size, batch__size)."""
    flags = {flag_of(key, field)[2:].replace("-", "_"): key for key, (field, _) in leaves(kind).items()}
    return {flags.get(name) or find_setting(kind, name.replace("__", ".")): value for name, value in settings.items()}


class Inputs:
    """The files of one run or experiment, kept here until its configuration has been checked."""

    def __init__(self, run: Path, overwrite: bool) -> None:
        self.run, self.overwrite = run, overwrite
        self.files: dict[str, str] = {}
        self.notes: list[str] = []
        """Sentences for the record: what could not be stored."""

    def add(self, name: str, text: str) -> str:
        """The path that a file with this text will have."""
        stem, dot, suffix = name.rpartition(".")
        taken = [other.rpartition(".")[0] for other, content in self.files.items() if content != text]
        name = f"{unlike(stem, taken)}{dot}{suffix}"
        self.files[name] = text
        return str((self.run / INPUTS / name).absolute())

    def settings(self, kind: type[Section], given: Mapping[Key, Any], stream: bool) -> dict[Key, Any]:
        """The given settings, with objects of Python replaced by files where a file is expected."""
        fields = leaves(kind)
        return {key: self._value(key, value, _content(key, fields), stream) for key, value in given.items()}

    def _value(self, key: Key, value: Any, content: str | None, stream: bool) -> Any:
        if isinstance(value, PathLike):
            return os.fspath(value)
        if getattr(value, "ndim", None) == 0:
            return value.item()  # a number of numpy or torch
        if content is None or value is None:
            return value
        name = key[-1]
        if isinstance(value, str):
            if "\n" in value:
                raise UserError(f"{name} is a text with several lines, and a str is a path: hand in a list, [text].")
            return value
        ending, text = content_of(name, value, stream=stream and name == "corpus", labelled=content == LABELLED)
        return self.add(f"{name}{ending}", text)

    def attention(self, name: str, section: GPTSection) -> str:
        """A class handed in becomes a file of the run; where that is impossible it keeps its name in this process."""
        from attnlab.attention.class_source import NotStorable, class_source
        from attnlab.attention.registry import handed_in, label_of
        from attnlab.models.gpt import shape_of

        build = handed_in(name)
        if build is None:
            return name
        label = label_of(build)
        shape = replace(shape_of(section, vocabulary=1).mixer(), causal=bool(getattr(build, "causal", True)))
        try:
            return self.add(f"{label}.py", class_source(build, shape))
        except NotStorable as why:
            note = (
                f"{label} cannot be stored in the run, since {why}: the run can be loaded and resumed only by handing "
                f"it in again, lab.load(run, attention={label})."
            )
            console.warn(note)
            self.notes.append(note)
            return name

    @contextmanager
    def written(self) -> Iterator[None]:
        """Inside, the files exist; they are removed again if no run began."""
        folder = self.run / INPUTS
        if self.run.exists():
            may_begin(self.run, self.overwrite)
            must_be_free(self.run)
            shutil.rmtree(folder, ignore_errors=True)
        if self.files:
            folder.mkdir(parents=True)
        for name, text in self.files.items():
            write_text(folder / name, text)
            trust.allow_named(folder / name)
        try:
            yield
        except BaseException:
            if not is_run(self.run):
                shutil.rmtree(folder, ignore_errors=True)
                if self.run.is_dir() and not any(self.run.iterdir()):
                    self.run.rmdir()
            raise


def _content(key: Key, fields: Mapping[Key, Any]) -> str | None:
    """What a setting holds that is the path of a file: texts or labelled texts; None for another setting."""
    if key == TASK or (TASK in fields and key in SPLITS):
        return LABELLED
    return TEXTS if is_path(fields[key][0]) else None
