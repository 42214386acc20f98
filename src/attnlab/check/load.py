"""Run a person's file the way a notebook runs: statement by statement, and on after an error.

The top level of such a file holds more than functions: demos that print, cells that train for an hour,
imports of packages that are not here. None of these may stand in the way of the functions, so what fails or
takes too long is noted and passed over.
"""

from __future__ import annotations
import __future__

import ast
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

from attnlab.check.clock import TimeLimit, time_limit
from attnlab.check.hints import first_line
from attnlab.check.results import Remark

MODULE = "checked_file"  # not "__main__": what a file does as a program is not asked for
IMPORT_SECONDS = 60.0
IMPORTS = ast.Import | ast.ImportFrom
DEFINITIONS = ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign


class Notebook:
    """Stands in for IPython in downloaded notebooks: `get_ipython().system(...)` does nothing."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *args, **kwargs: None


def load(
    text: str,
    filename: str,
    seconds: float,
    skip_lines: list[int],
    before: Callable[[int, float], None],
    remark: Callable[[Remark], None],
) -> ModuleType:
    """The file as a module; `before` hears each statement's line and limit, `remark` what was passed over."""
    module = ModuleType(MODULE)
    module.__file__ = filename
    module.__dict__.update(get_ipython=Notebook, display=print)
    sys.modules[MODULE] = module
    tree = ast.parse(text)
    flags = _future_flags(tree)
    for_demos = seconds  # shared by all demos: a notebook may hold many slow cells
    for statement in tree.body:
        is_demo = not isinstance(statement, DEFINITIONS | IMPORTS)
        limit = IMPORT_SECONDS if isinstance(statement, IMPORTS) else for_demos if is_demo else seconds
        if statement.lineno in skip_lines or limit <= 0:
            continue
        before(statement.lineno, limit)
        started = time.monotonic()
        if problem := _run(statement, module.__dict__, filename, flags, limit):
            remark(Remark(f"this statement was passed over ({problem})", statement.lineno))
        for_demos -= is_demo * (time.monotonic() - started)
    return module


def _run(statement: ast.stmt, names: dict[str, Any], filename: str, flags: int, seconds: float) -> str | None:
    """None, or why the statement did not run to its end."""
    code = compile(ast.Module([statement], []), filename, "exec", flags=flags, dont_inherit=True)
    try:
        with time_limit(seconds):
            exec(code, names)
    except TimeLimit:
        return f"cut off after {seconds:.2g} s"
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return first_line(error)
    return None


def _future_flags(tree: ast.Module) -> int:
    """`from __future__ import annotations` holds for the whole file, also when it is compiled in pieces."""
    names = [
        alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module == "__future__"
        for alias in node.names
    ]
    flags = 0
    for name in names:
        flags |= getattr(__future__, name).compiler_flag
    return flags
