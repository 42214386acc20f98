"""The typed sections a configuration is made of. A field's description is its help text.

Every leaf becomes a flag of the command line, by the field's name or by `flag`. Values are checked here only, whether
they come from a recipe or from a flag.
"""

from __future__ import annotations

import os
import re
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic.fields import FieldInfo

from attnlab.base.errors import unknown


def option(default: Any, help: str, flag: str | None = None, **limits: Any) -> Any:
    """A field with its help text and, if it differs from the field's name, the name of its flag."""
    return Field(default, description=help, json_schema_extra={"flag": flag} if flag else None, **limits)


def _absolute(path: str | None) -> str | None:
    """An absolute path: a run may be resumed from another folder than it was started in."""
    return None if path is None else os.path.abspath(os.path.expanduser(path))


FilePath = Annotated[str | None, AfterValidator(_absolute)]


def is_path(field: FieldInfo) -> bool:
    """Whether a setting names a file or a folder."""
    return any(getattr(validator, "func", None) is _absolute for validator in field.metadata)


def split_list(value: Any) -> list[str]:
    """The parts of 'a, b,c', or of a list in a recipe, as texts."""
    parts = value if isinstance(value, list | tuple) else str(value).split(",")
    return [text for part in parts if (text := str(part).strip())]


class Section(BaseModel):
    """A group of settings. Unknown keys, wrong types and impossible combinations are errors."""

    model_config = ConfigDict(extra="forbid", validate_default=True, allow_inf_nan=False)

    topic: ClassVar[str] = "Options"
    # The settings that --help shows; the others appear with --help-all. None: all are common.
    common: ClassVar[tuple[str, ...] | None] = None
    # Sections of a configuration whose flags come after the others in help.
    listed_last: ClassVar[tuple[str, ...]] = ()
    # Fields of which at most one may be set: a flag for one replaces a recipe's value for the others.
    exclusive: ClassVar[tuple[tuple[str, ...], ...]] = ()

    @model_validator(mode="before")
    @classmethod
    def _empty_is_default(cls, values: Any) -> Any:
        """`optimizer:` with nothing under it means the defaults."""
        return {} if values is None else values

    @field_validator("*", mode="before")
    @classmethod
    def _true_is_not_one(cls, value: Any, info: Any) -> Any:
        """`seed: yes` is a boolean in YAML, which Python would silently convert to 1."""
        if isinstance(value, bool):
            annotation = cls.model_fields[info.field_name].annotation
            if annotation is not bool and bool not in get_args(annotation):
                raise ValueError(f"expected {_plain_type(annotation)}, got {str(value).lower()}")
        return value

    @field_validator("*")
    @classmethod
    def _fits_64_bits(cls, value: Any) -> Any:
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise ValueError("expected a whole number below 2^63")
        return value

    @model_validator(mode="after")
    def _at_most_one(self) -> Section:
        for names in self.exclusive:
            given = [name for name in names if getattr(self, name) is not None]
            if len(given) > 1:
                raise ValueError(f"{' and '.join(given)} exclude each other: give only one")
        return self


def _plain_type(annotation: Any) -> str:
    names = {int: "a whole number", float: "a number", str: "a text"}
    return next(
        (name for kind, name in names.items() if kind is annotation or kind in get_args(annotation)), "another type"
    )


OPTIMIZERS = (
    "adamw",
    "adam",
    "sgd",
    "adagrad",
    "rmsprop",
    "adadelta",
    "adamax",
    "nadam",
    "radam",
    "asgd",
    "adafactor",
    "muon",
)
SCHEDULES = ("constant", "linear", "cosine", "wsd", "wave")


class OptimizerSection(Section):
    topic: ClassVar[str] = "Optimizer"
    common: ClassVar[tuple[str, ...] | None] = ("name", "lr", "weight_decay")

    name: str = option("adamw", f"Optimizer: {', '.join(OPTIMIZERS)}.", "--optimizer")
    lr: float = option(1e-3, "Peak learning rate.", gt=0)
    matrix_lr: float = option(0.02, "Peak learning rate of Muon for the matrices (--lr is for the rest).", gt=0)
    weight_decay: float = option(0.1, "Weight decay of matrices; biases, norms and embeddings have none.", ge=0)
    beta1: float = option(0.9, "Decay of the first moment (Adam family).", ge=0, lt=1)
    beta2: float = option(0.95, "Decay of the second moment (Adam family).", ge=0, lt=1)
    momentum: float = option(0.9, "Momentum (SGD, RMSprop).", ge=0, lt=1)
    layer_decay: float = option(
        1.0, "Learning rate of a layer as a share of the layer above it; below 1, low layers change least.", gt=0, le=1
    )
    clip: float | None = option(1.0, "Largest gradient norm; 'none' disables clipping.", gt=0)

    @field_validator("name")
    @classmethod
    def _known(cls, name: str) -> str:
        if name.lower() not in OPTIMIZERS:
            raise ValueError(unknown("optimizer", name, OPTIMIZERS))
        return name.lower()


class ScheduleSection(Section):
    topic: ClassVar[str] = "Schedule"
    common: ClassVar[tuple[str, ...] | None] = ("name", "warmup_ratio")
    exclusive: ClassVar[tuple[tuple[str, ...], ...]] = (("warmup_steps", "warmup_tokens", "warmup_ratio"),)

    name: str = option("cosine", f"Learning rate over time: {', '.join(SCHEDULES)}.", "--schedule")
    warmup_steps: int | None = option(None, "Steps over which the rate rises from zero.", ge=0)
    warmup_tokens: int | None = option(None, "Tokens over which the rate rises from zero.", ge=0)
    warmup_ratio: float | None = option(None, "Share of all steps over which the rate rises from zero.", ge=0, lt=1)
    decay_ratio: float = option(0.2, "Share of all steps over which 'wsd' decays at the end.", gt=0, le=1)
    wave_steps: int | None = option(None, "Steps in which 'wave' falls from the peak (default: all).", ge=1)
    final: float = option(0.0, "Final rate as a share of the peak.", ge=0, le=1, flag="--final-lr")

    @field_validator("name")
    @classmethod
    def _known(cls, name: str) -> str:
        if name.lower() not in SCHEDULES:
            raise ValueError(unknown("schedule", name, SCHEDULES))
        return name.lower()

    @model_validator(mode="after")
    def _fits(self) -> ScheduleSection:
        if self.name == "wsd" and (self.warmup_ratio or 0) + self.decay_ratio > 1:
            raise ValueError("warmup_ratio and decay_ratio add up to more than 1")
        return self


AUTO_STEPS = 25
"""Steps per epoch that a batch size of 'auto' leaves at least: with one or two, a model hardly learns."""


class BatchSection(Section):
    topic: ClassVar[str] = "Batches"
    common: ClassVar[tuple[str, ...] | None] = ("size", "tokens")
    exclusive: ClassVar[tuple[tuple[str, ...], ...]] = (("size", "tokens"),)
    default_size: ClassVar[int | None] = 32

    size: int | Literal["auto", "largest"] | None = option(
        None,
        f"Examples per batch (default: 32), 'auto' for the most that fit and leave {AUTO_STEPS} steps per epoch, or "
        "'largest' for the most that fit.",
        "--batch-size",
    )
    tokens: int | None = option(
        None, "Tokens per batch, padding included, instead of a number of examples.", "--batch-tokens", gt=0
    )
    by_length: bool = option(True, "Batch examples of similar length together, so little is padding.")
    accumulate: int = option(1, "Number of batches whose gradients are added up before each step.", ge=1)
    pieces: int = option(
        1,
        "Split each batch into this many pieces of similar length whose gradients are added up: the same step with "
        "less padding and less memory.",
        "--batch-pieces",
        ge=1,
    )
    workers: int = option(
        0, "Processes that build batches ahead of the training; 0: the training process builds them.", ge=0
    )
    memory: float | None = option(
        None,
        "Memory that 'auto' and 'largest' may use, in GiB (default: half of the free memory).",
        "--batch-memory",
        gt=0,
    )

    @model_validator(mode="after")
    def _positive(self) -> BatchSection:
        if isinstance(self.size, int) and self.size < 1:
            raise ValueError("expected a batch size of at least 1")
        if self.size is None and self.tokens is None:
            self.size = self.default_size
        return self


_EVERY = re.compile(r"^(\d+)\s*(steps?|epochs?)?$")


def parse_every(text: str) -> tuple[int, str]:
    """'100', '100 steps' or '1 epoch' as (100, 'steps') or (1, 'epochs'); 0 means never."""
    found = _EVERY.match(text.strip())
    if not found:
        raise ValueError(f"expected '100 steps' or '1 epoch', got {text!r}")
    unit = (found[2] or "steps").rstrip("s") + "s"
    return int(found[1]), unit


class StepsSection(Section):
    """How long to train, and how often to evaluate, save and log."""

    topic: ClassVar[str] = "Training"
    common: ClassVar[tuple[str, ...] | None] = ("epochs", "steps", "evaluate_every", "patience")
    exclusive: ClassVar[tuple[tuple[str, ...], ...]] = (("epochs", "steps"),)

    epochs: int | None = option(None, "Number of passes over the training set.", ge=1)
    steps: int | None = option(None, "Number of optimizer steps, instead of epochs.", ge=1)
    evaluate_every: str = option("1 epoch", "How often to evaluate on dev: '200 steps', '1 epoch', 0: never.")
    save_every: str = option("1 epoch", "How often to write a checkpoint: '200 steps', '1 epoch', 0: at the end.")
    log_every: int = option(10, "Steps between two lines of training metrics.", ge=1)
    keep: int = option(2, "Number of last checkpoints to keep (the best on dev is kept as well).", ge=1)
    patience: int | None = option(None, "Stop after this many evaluations without improvement.", ge=1)

    @field_validator("evaluate_every", "save_every", mode="before")
    @classmethod
    def _every(cls, value: Any) -> str:
        count, unit = parse_every(str(value))
        return f"{count} {unit if count != 1 else unit[:-1]}"


class TrainingSection(StepsSection):
    common: ClassVar[tuple[str, ...] | None] = ("epochs", "steps", "evaluate_every", "patience", "seed")

    seed: int = option(0, "Seed of everything random.", ge=0)


class MachineSection(Section):
    topic: ClassVar[str] = "Machine"
    common: ClassVar[tuple[str, ...] | None] = ("device", "precision", "processes")

    device: str = option("auto", "auto, cpu, cuda, cuda:1, mps.")
    precision: Literal["auto", "fp32", "bf16", "fp16"] = option(
        "auto", "fp32, bf16, fp16, or auto: the fastest that works, on a CPU measured with the model itself."
    )
    threads: int | Literal["auto"] = option(
        "auto", "CPU threads; auto: OMP_NUM_THREADS if it is set, else all cores available to this process."
    )
    compile: Literal["off", "on", "auto"] = option(
        "off", "Use torch.compile in training: off, on, or auto, which measures both if the run is long enough."
    )

    processes: int = option(
        1, "Number of processes that share every batch, here or on each of --nodes; the result is that of one.", ge=1
    )

    sharding: Literal["ddp", "fsdp"] = option(
        "ddp", "With several processes: ddp (each has the whole model) or fsdp (the model is sharded across them)."
    )

    @field_validator("compile", mode="before")
    @classmethod
    def _words(cls, value: Any) -> Any:
        """`compile: off` is a boolean in YAML."""
        return {False: "off", True: "on"}[value] if isinstance(value, bool) else value

    @field_validator("threads")
    @classmethod
    def _some(cls, value: int | str) -> int | str:
        if isinstance(value, int) and value < 1:
            raise ValueError("expected at least 1 thread")
        return value


def machine_of(config: Section) -> MachineSection:
    """What a run of any kind says of the machine it uses."""
    machine = getattr(config, "machine", None)
    assert isinstance(machine, MachineSection)
    return machine
