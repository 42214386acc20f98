"""What an attention variant is, all of them by name, and one from a user's own file.

A mixer is an `nn.Module` built from one `MixerShape` that maps tokens (B, T, C) to (B, T, C):

    forward(x, padding=None, cache=None)

`padding` (B, T) is True for real tokens, which come first in each row. With a `Cache`, which is for causal
mixers, the call continues the sequence in the cache; the outputs are those of one pass over the whole.

A user's file has one class, built from a MixerShape. The class may describe itself in class attributes named like the
fields of `Variant` (`equation`, `paper`, `time`, `memory`, `positions`, `causal`, `bidirectional`). Its forward takes x
and, if it needs them, `padding` and `cache`; without `cache`, decoding replays the sequence for it.

A file is executed only if the user has allowed it (`attnlab.base.trust`). A class handed in from Python has the name
`own:CLASS` as long as the process lives.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import torch
from torch import Tensor, nn

from attnlab.attention.parts.cache import Cache
from attnlab.base.errors import UserError, unknown
from attnlab.base.files import unlike
from attnlab.base.trust import read_allowed

POSITIONS = ("none", "learned", "sinusoidal", "rotary", "alibi")
INSIDE = frozenset({"rotary", "alibi"})
"""Positions that act inside attention. Those that act on embeddings work with every variant."""


@dataclass(frozen=True)
class MixerShape:
    """How large a mixer is and what it may see: the one argument of every mixer's constructor."""

    width: int
    """C, the size of a token's vector."""
    heads: int
    """H, into how many parts of width C/H a vector is split."""
    context: int
    """The longest sequence that a mixer with a table of positions is built for."""
    causal: bool = True
    """Position t sees positions up to t; False: every position sees all."""
    dropout: float = 0.0
    positions: str = "none"
    """How the model encodes order. Mixers act on "rotary" and "alibi"; the others act on embeddings."""
    qk_norm: bool = False
    """Normalise queries and keys before their dot product."""
    bias: bool = True
    """Give the linear projections a bias."""

    def __post_init__(self) -> None:
        for name in ("width", "heads", "context"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} is {getattr(self, name)}: it must be at least 1.")
        if self.width % self.heads:
            raise UserError(f"width {self.width} cannot be split into {self.heads} heads: make it a multiple.")
        if not 0.0 <= self.dropout < 1.0:
            raise UserError(f"dropout is {self.dropout}: give a number from 0 up to, not including, 1.")

    @property
    def head_width(self) -> int:
        """D = C / H."""
        return self.width // self.heads


@dataclass(frozen=True)
class Variant:
    """A kind of mixer by name, with what it promises."""

    name: str
    build: Callable[[MixerShape], nn.Module]
    equation: str = ""
    paper: str = ""
    time: float | None = None
    """The promised exponent of T in the time of a full pass; None: no promise."""
    memory: float | None = None
    """The same for memory."""
    positions: frozenset[str] = frozenset()
    """Which of the positions inside attention it can use."""
    causal: bool = True
    bidirectional: bool = True


VARIANTS: dict[str, Variant] = {}

Builder = Callable[[MixerShape], nn.Module]


def variant(
    name: str, *, equation: str, paper: str, time: float, memory: float, positions: frozenset[str] = frozenset()
) -> Callable[[Builder], Builder]:
    """Register the decorated builder under its name."""

    def register(build: Builder) -> Builder:
        VARIANTS[name] = Variant(name, build, equation, paper, time, memory, positions)
        return build

    return register


def find_variant(name: str) -> Variant:
    """The variant of that name, or the one in a user's file when the name ends in .py."""
    if name.endswith(".py"):
        return load_variant(name)
    if name.startswith(OWN):
        return _handed_in(name)
    if name not in VARIANTS:
        raise UserError(
            unknown("attention", name, VARIANTS) + " `attnlab attention` lists all; for your own, give a .py file."
        )
    return VARIANTS[name]


def build_mixer(name: str, shape: MixerShape) -> nn.Module:
    """The mixer of that name, or of that file, in that shape."""
    variant = find_variant(name)
    check_positions(shape.positions)
    if shape.positions in INSIDE - variant.positions:
        raise UserError(
            f"attention {name!r} does not support {shape.positions} positions: "
            "use learned, sinusoidal or none, which act on the embeddings."
        )
    if shape.causal and not variant.causal:
        raise UserError(f"attention {name!r} cannot be causal: use it in a bidirectional model, or choose another.")
    if not shape.causal and not variant.bidirectional:
        raise UserError(f"attention {name!r} is causal only: choose another for a bidirectional model.")
    return variant.build(shape)


def check_positions(name: str) -> None:
    if name not in POSITIONS:
        raise UserError(unknown("positions", name, POSITIONS))


HELP = "`attnlab new attention NAME` writes a file to start from."

OWN = "own:"
_session: dict[str, Builder] = {}

FAILURES = (Exception, SystemExit)  # a command must not end in silence because a file calls sys.exit
FACTS = ("equation", "paper", "time", "memory", "positions", "causal", "bidirectional")
"""What a class, or a function that builds a module, may state about itself."""


class Copies:
    """Builds copies of one module, whatever the shape; it states what the module's class states."""

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        kind = type(module)
        self.__name__ = kind.__name__
        for field in FACTS:
            if hasattr(kind, field):
                setattr(self, field, getattr(kind, field))

    def __call__(self, shape: MixerShape) -> nn.Module:
        return deepcopy(self.module)


def label_of(build: Builder) -> str:
    """What a user calls it; a partial is called like its function."""
    return str(getattr(build, "__name__", "") or getattr(getattr(build, "func", None), "__name__", "") or "mixer")


def hand_in(build: Builder, name: str = "") -> str:
    """The name under which a class, or a function of a MixerShape, is a variant in this process."""
    name = name or unlike(OWN + label_of(build), [taken for taken, other in _session.items() if other is not build])
    _session[name] = build
    return name


def handed_in(name: str) -> Builder | None:
    """What has that name in this process."""
    return _session.get(name)


def _handed_in(name: str) -> Variant:
    if name not in _session:
        label = name.removeprefix(OWN).partition("-")[0]  # without the number of one that shares its name
        raise UserError(
            f"{name} is a class that was handed in from Python, and this process does not know it: "
            f"hand it in again, lab.load(run, attention={label})."
        )
    return own_variant(_session[name], name)


def load_variant(path: str) -> Variant:
    """The variant in the file at `path`."""
    file = Path(path)
    return own_variant(_one_class(_run(file), file), str(file))


def own_variant(kind: Builder, name: str) -> Variant:
    """A user's class, or function, with the facts that it states about itself."""
    facts = {
        field: getattr(kind, field) for field in FACTS if hasattr(kind, field) and not callable(getattr(kind, field))
    }
    positions = facts.get("positions", ())
    facts["positions"] = frozenset([positions] if isinstance(positions, str) else positions)

    def build(shape: MixerShape) -> nn.Module:
        label = label_of(kind)
        try:
            mixer = kind(shape)
        except UserError:
            raise
        except FAILURES as error:
            raise _in_file(error, Path(name), f"{label}(shape) cannot be built") from error
        if not isinstance(mixer, nn.Module):
            raise UserError(f"{name}: {label}(shape) expected to return a torch.nn.Module, got {type(mixer).__name__}.")
        return OwnMixer(mixer, name)

    return Variant(name=name, build=build, **facts)


class OwnMixer(nn.Module):
    """A user's mixer with the full interface, its output checked."""

    def __init__(self, inner: nn.Module, source: str) -> None:
        super().__init__()
        self.inner = inner
        self.source = source
        self.output = getattr(inner, "output", None)  # the projection a model may start at zero
        self.longest = getattr(inner, "longest", None)
        self.takes = set(inspect.signature(inner.forward).parameters)

    def forward(self, x: Tensor, padding: Tensor | None = None, cache: Cache | None = None) -> Tensor:
        if cache is not None and "cache" not in self.takes:
            return cache.replay(self._whole, x, padding)
        if cache is None:
            return self._whole(x, padding)
        return self._checked(x, {"padding": padding, "cache": cache})

    def _whole(self, x: Tensor, padding: Tensor | None) -> Tensor:
        return self._checked(x, {"padding": padding})

    def _checked(self, x: Tensor, extras: dict[str, object]) -> Tensor:
        try:
            y = self.inner(x, **{name: value for name, value in extras.items() if name in self.takes})
        except (UserError, MemoryError, torch.OutOfMemoryError):
            raise
        except FAILURES as error:
            raise _in_file(error, Path(self.source), "forward fails") from error
        if not isinstance(y, Tensor) or y.shape != x.shape:
            got = tuple(y.shape) if isinstance(y, Tensor) else type(y).__name__
            raise UserError(
                f"{self.source}: {type(self.inner).__name__}.forward expected to return "
                f"(B, T, C) = {tuple(x.shape)}, the shape of its input, got {got}."
            )
        return y


def _run(file: Path) -> ModuleType:
    """The file as a module; what is executed is the content that was checked, not a compiled copy beside it."""
    if not file.is_file():
        raise UserError(f"there is no file {file}: give the path of a .py file with one attention class. {HELP}")
    return run_source(read_allowed(file), file)


def run_source(source: bytes, file: Path) -> ModuleType:
    """The source of a user's file as a module; `file` is its place in messages."""
    module = ModuleType(f"attnlab_own_{file.stem}")
    module.__file__ = str(file)
    try:
        exec(compile(source, str(file), "exec", dont_inherit=True), module.__dict__)
    except SyntaxError as error:
        raise UserError(f"{file}, line {error.lineno}: {error.msg}.") from error
    except FAILURES as error:
        raise _in_file(error, file, "cannot be loaded") from error
    return module


def _one_class(module: ModuleType, file: Path) -> type[nn.Module]:
    """The file's one module class; with helpers beside it, the one that the file names Mixer."""
    classes = {
        thing: None
        for thing in vars(module).values()
        if inspect.isclass(thing) and issubclass(thing, nn.Module) and thing.__module__ == module.__name__
    }
    chosen = [*classes] if len(classes) == 1 else [kind for kind in classes if vars(module).get("Mixer") is kind]
    if len(chosen) == 1:
        return chosen[0]
    if not classes:
        raise UserError(f"{file} contains no torch.nn.Module class: write one that maps (B, T, C) to (B, T, C). {HELP}")
    names = ", ".join(kind.__name__ for kind in classes)
    raise UserError(f"{file} contains {len(classes)} module classes ({names}): keep one, or name the attention Mixer.")


def _in_file(error: BaseException, file: Path, what: str) -> UserError:
    """One sentence with the line of the user's file that failed."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).name == file.name]
    line = f", line {frames[-1].lineno}" if frames else ""
    why = "it calls sys.exit" if isinstance(error, SystemExit) else f"{type(error).__name__}: {error}"
    return UserError(f"{file}{line}: {what}: {why}")
