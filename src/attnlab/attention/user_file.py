"""A variant from a user's Python file: one class, built from a MixerShape, (B, T, C) to (B, T, C).

The class may describe itself in class attributes with the names of the fields of `Variant`
(`equation`, `paper`, `time`, `memory`, `positions`, `causal`, `bidirectional`). Its forward takes x and,
optionally, `padding` and `cache`; without `cache`, decoding runs the whole sequence for each token.
"""

from __future__ import annotations

import importlib.util
import inspect
import traceback
from pathlib import Path
from types import ModuleType

import torch
from torch import Tensor, nn

from attnlab.attention.parts.cache import Cache
from attnlab.attention.variant import MixerShape, Variant
from attnlab.base.errors import UserError

HELP = "`attnlab new attention NAME` writes a file to start from."


def load_variant(path: str) -> Variant:
    """The variant in the file at `path`."""
    file = Path(path)
    kind = _one_class(_run(file), file)
    facts = {
        field: getattr(kind, field)
        for field in ("equation", "paper", "time", "memory", "positions", "causal", "bidirectional")
        if hasattr(kind, field) and not callable(getattr(kind, field))
    }
    positions = facts.get("positions", ())
    facts["positions"] = frozenset([positions] if isinstance(positions, str) else positions)

    def build(shape: MixerShape) -> nn.Module:
        try:
            return OwnMixer(kind(shape), str(file))
        except UserError:
            raise
        except Exception as error:
            raise _in_file(error, file, f"{kind.__name__}(shape) cannot be built") from error

    return Variant(name=str(file), build=build, **facts)


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
        except Exception as error:
            raise _in_file(error, Path(self.source), "forward fails") from error
        if not isinstance(y, Tensor) or y.shape != x.shape:
            got = tuple(y.shape) if isinstance(y, Tensor) else type(y).__name__
            raise UserError(
                f"{self.source}: {type(self.inner).__name__}.forward expected to return "
                f"(B, T, C) = {tuple(x.shape)}, the shape of its input, got {got}."
            )
        return y


def _run(file: Path) -> ModuleType:
    if not file.is_file():
        raise UserError(f"there is no file {file}: give the path of a .py file with one attention class. {HELP}")
    spec = importlib.util.spec_from_file_location(f"attnlab_own_{file.stem}", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise UserError(f"{file}, line {error.lineno}: {error.msg}.") from error
    except Exception as error:
        raise _in_file(error, file, "cannot be loaded") from error
    return module


def _one_class(module: ModuleType, file: Path) -> type[nn.Module]:
    """The file's one module class; with helpers beside it, the one named Mixer."""
    classes = [
        thing
        for thing in vars(module).values()
        if inspect.isclass(thing) and issubclass(thing, nn.Module) and thing.__module__ == module.__name__
    ]
    chosen = classes if len(classes) == 1 else [kind for kind in classes if kind.__name__ == "Mixer"]
    if len(chosen) == 1:
        return chosen[0]
    if not classes:
        raise UserError(f"{file} contains no torch.nn.Module class: write one that maps (B, T, C) to (B, T, C). {HELP}")
    names = ", ".join(kind.__name__ for kind in classes)
    raise UserError(f"{file} contains {len(classes)} module classes ({names}): keep one, or name the attention Mixer.")


def _in_file(error: Exception, file: Path, what: str) -> UserError:
    """One sentence with the line of the user's file that failed."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).name == file.name]
    line = f", line {frames[-1].lineno}" if frames else ""
    return UserError(f"{file}{line}: {what}: {type(error).__name__}: {error}")
