"""The settings of `run.py`: the course's, and `--preset fast`, which needs a twentieth of the course's reading.

`course` is what the document and its code prescribe. `fast` keeps the model's size, the characters, and reading
first and asking afterwards; it changes what is hidden, the positions, the optimizer and the batches. Each can be
taken back alone, to see what it is worth: `--set optimizer=adamw`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from math import inf, nextafter
from typing import get_args, get_type_hints

from attnlab.base.errors import UserError, unknown
from dataset import Reading
from trainer import TrainerConfig


@dataclass(frozen=True)
class Preset:
    reading: Reading | None
    """What is hidden in pretraining; None: a span anywhere, as in the course."""
    rotary: bool
    """Rotary positions (with vanilla attention)."""
    dropout: float
    pretrain: TrainerConfig
    finetune: TrainerConfig
    """After pretraining."""
    scratch: TrainerConfig
    """Fine-tuning of new weights."""


WARMUP = 512 * 20  # tokens, as in the course's code
COURSE_FINETUNE = TrainerConfig(max_epochs=10, batch_size=256, learning_rate=6e-4, lr_decay=True, warmup_tokens=WARMUP)
FAST_FINETUNE = TrainerConfig(
    max_epochs=3,
    batch_size=50,
    learning_rate=1e-4,
    matrix_rate=1e-3,
    weight_decay=0.0,
    lr_decay=True,
    optimizer="muon",
    decay="wsd",
    precision="auto",
    pieces=1,
)
PRESETS = {
    "course": Preset(
        reading=None,
        rotary=False,
        dropout=0.1,
        pretrain=TrainerConfig(max_epochs=650, batch_size=128, learning_rate=6e-3, lr_decay=True, warmup_tokens=WARMUP),
        finetune=COURSE_FINETUNE,
        scratch=replace(COURSE_FINETUNE, max_epochs=75),
    ),
    "fast": Preset(
        reading=Reading(),
        rotary=True,
        dropout=0.0,
        pretrain=TrainerConfig(
            max_epochs=112,
            batch_size=80,
            learning_rate=2e-3,
            matrix_rate=0.02,
            lr_decay=True,
            optimizer="muon",
            decay="wsd",
            precision="auto",
            pieces=3,
        ),
        finetune=FAST_FINETUNE,
        scratch=replace(FAST_FINETUNE, max_epochs=12, learning_rate=1e-3, matrix_rate=1e-2),
    ),
}


NOT_HERE = ("betas", "ckpt_path", "device", "seed", "max_epochs", "final_tokens")
"""Settings that options of their own decide (`--epochs` the last two), or that are no single value."""
ABOVE_ZERO = nextafter(0.0, 1.0)
LEAST = {"batch_size": 1, "pieces": 1, "learning_rate": ABOVE_ZERO, "matrix_rate": ABOVE_ZERO}
"""The smallest value of a setting; of all others 0."""


def changed(preset: Preset, settings: list[str]) -> Preset:
    """The preset with `name=value` settings: of its reading, its model, or all of its trainings."""
    for setting in settings:
        name, equals, text = setting.partition("=")
        known = [*_names(Reading), *_names(TrainerConfig), "rotary", "dropout"]
        if name not in known:
            raise UserError(f"--set {setting}: {unknown('setting', name, known)}")
        if not equals:
            raise UserError(f"--set {setting}: the value is missing: write --set {name}=VALUE.")
        if name in _names(Reading):
            preset = replace(
                preset, reading=replace(preset.reading or Reading(), **{name: _value(Reading, name, text)})
            )
        elif name in ("rotary", "dropout"):
            preset = replace(preset, **{name: _value(Preset, name, text)})
        else:
            value = {name: _value(TrainerConfig, name, text)}
            preset = replace(
                preset,
                pretrain=replace(preset.pretrain, **value),
                finetune=replace(preset.finetune, **value),
                scratch=replace(preset.scratch, **value),
            )
    return preset


def _names(kind: type) -> list[str]:
    return [field.name for field in fields(kind) if field.name not in NOT_HERE]


def _value(kind: type, name: str, text: str) -> object:
    """The text as a value of the field's type."""
    annotation = get_type_hints(kind)[name]
    choices = get_args(annotation)
    if text == "none" and type(None) in choices:
        return None
    types = [each for each in (annotation, *choices) if each in (bool, int, float)]
    if bool in types:
        if text not in ("yes", "no"):
            raise UserError(f"--set {name}={text}: expected yes or no.")
        return text == "yes"
    if types:
        return _number(types[0], name, text)
    words = [each for each in choices if isinstance(each, str)]
    if words and text not in words:
        raise UserError(f"--set {name}={text}: {unknown('value', text, words)}")
    return text


def _number(kind: type, name: str, text: str) -> int | float:
    least, below = LEAST.get(name, 0), 1 if name == "dropout" else inf
    try:
        value: int | float = kind(text)
    except ValueError:
        value = -1
    if not least <= value < below:
        what = f"a {'whole ' if kind is int else ''}number {'above 0' if least == ABOVE_ZERO else f'from {least}'}"
        raise UserError(f"--set {name}={text}: expected {what}{'' if below == inf else ', below 1'}.")
    return value
