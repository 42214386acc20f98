"""What a comparison and a sweep have in common: many runs of one job, with several seeds. Free of torch."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from pydantic import create_model, field_validator

from attnlab.base.errors import RunFailed, UserError, unknown
from attnlab.base.machine.peak import is_out_of_memory
from attnlab.config import Section, leaves, value_of
from attnlab.config.axes import parse_axes
from attnlab.config.recipe import Key
from attnlab.jobs.registry import KINDS, config_of


def comparable() -> list[str]:
    """The kinds of jobs that say by what their runs are judged."""
    return [kind for kind in KINDS if config_of(kind).headlines]


class ManyRuns(Section):
    """Says which `job` is run many times, and which of its settings `vary`."""

    @field_validator("job", check_fields=False)
    @classmethod
    def _job(cls, value: str) -> str:
        if value not in comparable():
            raise ValueError(unknown("job", value, comparable()))
        return value

    @field_validator("vary", mode="before", check_fields=False)
    @classmethod
    def _axes(cls, value: Any) -> Any:
        return parse_axes(value)


def beside(job: str, name: str, section: Section) -> type[Any]:
    """A job's own settings with a section beside them that says what is done with many such runs."""
    fields: dict[str, Any] = {each: (field.annotation, field) for each, field in config_of(job).model_fields.items()}
    fields[name] = (type(section), section)
    return create_model(f"{name.capitalize()}{job.capitalize()}Config", __base__=Section, **fields)


def seed_key(job: str) -> Key:
    """Where a job is told its seed."""
    return next(key for key in leaves(config_of(job)) if key[-1] == "seed")


def must_not_name_a_seed(config: Any, job: str, what: str) -> None:
    """Every run is made with each of the seeds."""
    if value_of(config, seed_key(job)) != 0:
        raise UserError(f"a {what} runs the seeds 0, 1, ...: give their number with --seeds, and no seed.")


def must_fix_the_batch(config: Any) -> None:
    """What each run would settle for itself is no setting for all."""
    for key in leaves(type(config)):
        if key[-2:] == ("batch", "size") and value_of(config, key) == "auto":
            raise UserError("--batch-size auto would give each run a batch of its own: name a number.")


def unlike(name: str, taken: Collection[str]) -> str:
    """Two things of the same name are two: the second gets a number."""
    return next(each for n in range(1, 100_000) if (each := name if n == 1 else f"{name}-{n}") not in taken)


def folder_name(label: str, taken: Collection[str]) -> str:
    """A label as the name of a folder no other has."""
    return unlike(re.sub(r"[^\w.-]+", "-", label)[:100], taken)


def reason_of(failure: Exception) -> str:
    """Why one run could not be made, for the row it has in a table."""
    if is_out_of_memory(failure):
        return "it ran out of memory: take a smaller batch, shorter texts or a smaller model."
    told = isinstance(failure, UserError | RunFailed)
    return str(failure) if told else f"{type(failure).__name__}: {failure}"
