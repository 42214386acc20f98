"""A run's own attention, handed in again: it must be what the run was trained with, and is allowed by that."""

from __future__ import annotations

import inspect
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from attnlab.api.gpt import attention_name
from attnlab.base import trust
from attnlab.base.errors import UserError
from attnlab.config.gpt import GPTSection
from attnlab.config.recipe import check
from attnlab.config.sections import split_list
from attnlab.runs.folder import INPUTS, read_config
from attnlab.runs.own_attention import COPY, TEXT

if TYPE_CHECKING:
    from attnlab.api.gpt import Attention
    from attnlab.attention.registry import Builder


def hand_in_again(run: Path, attention: Attention) -> None:
    """Allow the run's copy of this attention, or give the class the name by which the run knows it."""
    from attnlab.attention.class_source import class_text
    from attnlab.attention.registry import OWN, hand_in, handed_in

    name = attention_name(attention)
    build = handed_in(name)
    saved = _names(run)
    copies = [file for file in (run / COPY, run / "pretrain" / COPY, *(run / INPUTS).glob("*.py")) if file.is_file()]
    texts = [file for pattern in (TEXT, f"pretrain/{TEXT}", f"cells/*/*/{TEXT}") for file in run.glob(pattern)]
    if not saved and not copies:
        raise UserError(f"{run} was not trained with an attention of your own: leave attention out.")
    contents = _contents(build, run) if build is not None else [Path(name).read_bytes()] if Path(name).is_file() else []
    for copy in copies:
        if copy.read_bytes() in contents:
            trust.allow(copy)
            return
    known = [other for other in saved if other.startswith(OWN)]
    if build is not None and known:
        same = not texts or any(class_text(build) == file.read_text(encoding="utf-8") for file in texts)
        wanted = name if name in known or len(known) != 1 else known[0]
        if same and wanted in known:
            hand_in(build, wanted)
            return
    if not copies and build is None and str(Path(name).expanduser().absolute()) in saved:
        return  # a run of an earlier version, without a copy
    versions = [*copies, *texts]
    seen = f": {versions[0]} is the version of the run" if versions else ""
    raise UserError(f"{name} differs from the attention that {run} was trained with{seen}.")


def _names(run: Path) -> list[str]:
    """The files and classes that the configuration of a run or of a comparison names."""
    from attnlab.attention.registry import OWN

    config = read_config(run)
    listed = [*split_list(config.get("compare", {}).get("attention", "")), config.get("model", {}).get("attention", "")]
    return [str(name) for name in listed if str(name).endswith(".py") or str(name).startswith(OWN)]


def _contents(build: Builder, run: Path) -> list[bytes]:
    """What a class may have been stored as: the file in which it is defined, or its source with what it uses."""
    from attnlab.attention.class_source import NotStorable, class_source
    from attnlab.models.gpt import shape_of

    contents = []
    with suppress(OSError, TypeError):  # a class of a notebook has no file
        contents.append(Path(inspect.getsourcefile(build) or "").read_bytes())
    section = {name: value for name, value in read_config(run).get("model", {}).items() if name != "attention"}
    shape = shape_of(check(GPTSection, section), vocabulary=1).mixer()
    with suppress(NotStorable):
        source = class_source(build, replace(shape, causal=bool(getattr(build, "causal", True))))
        contents.append(source.encode())
    return contents
