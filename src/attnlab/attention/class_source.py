"""The source of a class that was defined in a notebook or a script, as a file that can be executed on its own.

The file holds the class and what its code uses, in an order in which it can be executed: modules as imports, objects
of other modules as `from m import n`, functions and classes of the same module or notebook as their source, plain
constants by their value. Whatever cannot be written down this way, such as a tensor or a variable of a surrounding
function, makes it impossible, and the reason is told.
"""

from __future__ import annotations
import __future__

import ast
import linecache
import math
import symtable
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import torch
from torch import Tensor

from attnlab.attention.registry import Builder, Copies, MixerShape, label_of, own_variant, run_source
from attnlab.base.errors import UserError

ANNOTATIONS = __future__.annotations.compiler_flag


class NotStorable(Exception):
    """The class cannot be written to a file of its own; the message is a clause with the reason."""


def class_source(kind: Builder, shape: MixerShape) -> str:
    """The file of a class; executing it gave a mixer of that shape with the same weights and outputs."""
    if isinstance(kind, Copies):
        raise NotStorable("it is a module that is built already")
    if not isinstance(kind, type):
        raise NotStorable("it is a function or another object, and only a class can be stored")
    name = kind.__name__
    collected = _Collected(kind.__module__)
    collected.add(name, kind)
    lines = [f'"""{name}, and what it uses, written by attnlab from the session that trained with it."""', ""]
    if collected.postponed:
        lines += ["from __future__ import annotations", ""]
    lines += [*sorted(collected.imports), *collected.texts]
    if name != "Mixer":
        lines += ["\n", f"Mixer = {name}"]
    source = "\n".join(lines) + "\n"
    _must_do_the_same(kind, source, shape)
    return source


def class_text(kind: Builder) -> str:
    """The text of a class or a function, for reading and for noticing a change; its name where there is no text."""
    if isinstance(kind, Copies):
        parts = "".join(f"# {line}\n" for line in repr(kind.module).splitlines())
        return f"{class_text(type(kind.module))}# every layer has a copy of one module:\n{parts}"
    try:
        text = _definition(kind)[0]
    except NotStorable:
        text = f"# the source of {label_of(kind)} is not available"
    values: dict[str, Any] = {}
    for function in _functions(kind):
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        values |= {name: cell.cell_contents for name, cell in cells if name != "__class__"}
    return "\n".join([text, *(f"# {name} = {_described(value)}" for name, value in sorted(values.items()))]) + "\n"


class _Collected:
    """Imports, and the definitions in an order in which they can be executed."""

    def __init__(self, module: str) -> None:
        self.module = module
        self.imports: set[str] = set()
        self.texts: list[str] = []
        self.postponed = False
        self._seen: set[str] = set()

    def add(self, name: str, thing: Any) -> None:
        if name in self._seen:
            return
        self._seen.add(name)
        if isinstance(thing, ModuleType):
            self.imports.add(_import_of(name, thing))
        elif isinstance(thing, type | FunctionType) and thing.__module__ in (self.module, "__main__"):
            self._define(name, thing)
        elif (home := _importable(thing)) is not None:
            self.imports.add(f"from {home} import {thing.__name__}" + ("" if name == thing.__name__ else f" as {name}"))
        else:
            self.texts.append(f"\n{name} = {_constant(name, thing)}")

    def _define(self, name: str, thing: type | FunctionType) -> None:
        source, namespace = _definition(thing)
        for function in _functions(thing):
            if inside := [free for free in function.__code__.co_freevars if free != "__class__"]:
                raise NotStorable(f"it uses {', '.join(inside)} of the function in which it was defined")
            self.postponed |= bool(function.__code__.co_flags & ANNOTATIONS)
        for free in sorted(_global_names(source)):
            if free in namespace and free != thing.__name__ and not free.startswith("__"):
                self.add(free, namespace[free])
        self.texts.append(f"\n\n{source}" + (f"\n{name} = {thing.__name__}" if name != thing.__name__ else ""))


def _import_of(name: str, module: ModuleType) -> str:
    if module.__name__ == "__main__" or module.__name__ not in sys.modules:
        raise NotStorable(f"it uses the module {name}, which cannot be imported")
    return f"import {module.__name__}" + ("" if name == module.__name__ else f" as {name}")


def _importable(thing: Any) -> str | None:
    """The module from which a thing can be imported by its name."""
    home, name = getattr(thing, "__module__", None), getattr(thing, "__name__", None)
    if not isinstance(home, str) or not isinstance(name, str):
        return None
    return home if getattr(sys.modules.get(home), name, None) is thing else None


def _constant(name: str, value: Any) -> str:
    """A value as an expression; only plain values have one that is the same in every process."""
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if type(value) in (set, frozenset):
        inside = ", ".join(sorted(_constant(name, part) for part in value))
        return f"{type(value).__name__}([{inside}])"
    try:
        same = ast.literal_eval(repr(value)) == value
    except (ValueError, SyntaxError, TypeError):
        same = False
    if not same:
        raise NotStorable(f"it uses {name}, which is a {type(value).__name__} and not a plain constant")
    return repr(value)


def _described(value: Any) -> str:
    """A plain value, or the type of another."""
    try:
        return _constant("", value)
    except NotStorable:
        return type(value).__name__


def _functions(thing: Any) -> Iterator[FunctionType]:
    """The function itself, or the methods that a class itself defines."""
    if isinstance(thing, FunctionType):
        yield thing
        return
    for member in vars(thing).values() if isinstance(thing, type) else ():
        for function in (getattr(member, "__func__", member), getattr(member, "fget", None)):
            if isinstance(function, FunctionType) and function.__qualname__.startswith(f"{thing.__qualname__}."):
                yield function


def _definition(thing: Any) -> tuple[str, dict[str, Any]]:
    """The text of a function or a class, and the global names where it was defined.

    `inspect.getsource` finds no class of a notebook, whose module has no file; the code of its methods leads there.
    """
    if not isinstance(thing, type | FunctionType):
        raise NotStorable("it has no source of its own")
    module = sys.modules.get(thing.__module__)
    namespace = thing.__globals__ if isinstance(thing, FunctionType) else dict(vars(module)) if module else {}
    for function in _functions(thing):
        lines = linecache.getlines(function.__code__.co_filename, namespace)
        if node := _node(lines, thing, function.__code__):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            return textwrap.dedent("".join(lines[first - 1 : node.end_lineno])).rstrip(), namespace
    raise NotStorable("its source is not available")


def _node(lines: list[str], thing: Any, code: CodeType) -> ast.ClassDef | ast.FunctionDef | None:
    """The definition that has the name of the thing and contains the line of its code."""
    try:
        tree = ast.parse("".join(lines))
    except SyntaxError:  # a cell with a line such as %matplotlib, which is no Python
        return None
    kind = ast.ClassDef if isinstance(thing, type) else ast.FunctionDef
    for node in ast.walk(tree):
        if isinstance(node, kind) and node.name == thing.__name__:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            if first <= code.co_firstlineno <= (node.end_lineno or first):
                return node
    return None


def _global_names(source: str) -> set[str]:
    """The names that a piece of source takes from its module: not its own variables, whatever they are called."""
    names: set[str] = set()

    def visit(table: symtable.SymbolTable) -> None:
        top = table.get_type() == "module"
        for symbol in table.get_symbols():
            if symbol.is_referenced() and (symbol.is_global() or (top and not symbol.is_assigned())):
                names.add(symbol.get_name())
        for inner in table.get_children():
            visit(inner)

    visit(symtable.symtable(source, "source", "exec"))
    return names


def _must_do_the_same(kind: Builder, source: str, shape: MixerShape) -> None:
    """Execute the file, build the mixer twice, from the class and from the file, and compare weights and outputs."""
    expected = _weights_and_outputs(kind, shape)  # what is wrong with the class itself is the user's to know
    try:
        stored = vars(run_source(source.encode(), Path(f"{label_of(kind)}.py")))["Mixer"]
        got = _weights_and_outputs(stored, shape)
    except UserError as error:
        raise NotStorable(f"its stored source fails ({error})") from None
    if len(got) != len(expected) or not all(map(torch.equal, got, expected)):
        raise NotStorable("its stored source gives other outputs than the class itself")


@torch.no_grad()
def _weights_and_outputs(kind: Builder, shape: MixerShape) -> list[Tensor]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        mixer = own_variant(kind, label_of(kind)).build(shape).eval()
        x = torch.randn(2, min(8, shape.context), shape.width)
        return [*mixer.state_dict().values(), mixer(x)]
