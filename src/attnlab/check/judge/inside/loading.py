"""Load a person's file the way a notebook runs: statement by statement, continuing after an error.

The top level of such a file contains more than functions: demos that print, cells that train for an hour,
imports of packages that are not installed. None of these may prevent the functions from being checked, so a
statement that fails or takes too long is reported and skipped.
"""

from __future__ import annotations
import __future__

import ast
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

from .errors import error_summary
from .time_limit import TimeLimitExceeded, time_limit

MODULE = "checked_file"  # not "__main__": code under `if __name__ == "__main__"` must not run
IMPORT_SECONDS = 60.0
IMPORTS = ast.Import | ast.ImportFrom
DEFINITIONS = ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign


class IPythonStub:
    """Replaces IPython in downloaded notebooks: `get_ipython().system(...)` does nothing."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *args, **kwargs: None


def load_module(
    text: str,
    filename: str,
    seconds: float,
    skip_lines: list[int],
    before: Callable[[int, float], None],
    remark: Callable[[str, int], None],
) -> ModuleType:
    """The file as a module; `before` is called with each statement's line and limit, `remark` for what is skipped."""
    module = ModuleType(MODULE)
    module.__file__ = filename
    module.__dict__.update(get_ipython=IPythonStub, display=print)
    sys.modules[MODULE] = module
    tree = ast.parse(text)
    flags = _future_flags(tree)
    demo_seconds = seconds  # shared by all demos: a notebook may have many slow cells
    for statement in tree.body:
        is_demo = not isinstance(statement, DEFINITIONS | IMPORTS)
        limit = IMPORT_SECONDS if isinstance(statement, IMPORTS) else demo_seconds if is_demo else seconds
        if statement.lineno in skip_lines or limit <= 0:
            continue
        before(statement.lineno, limit)
        started = time.monotonic()
        if problem := _run(statement, module.__dict__, filename, flags, limit):
            remark(f"this statement was skipped ({problem})", statement.lineno)
        demo_seconds -= is_demo * (time.monotonic() - started)
    return module


def _run(statement: ast.stmt, names: dict[str, Any], filename: str, flags: int, seconds: float) -> str | None:
    """None, or why the statement did not finish."""
    code = compile(ast.Module([statement], []), filename, "exec", flags=flags, dont_inherit=True)
    try:
        with time_limit(seconds):
            exec(code, names)
    except TimeLimitExceeded:
        return f"stopped after {seconds:.2g} s"
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return error_summary(error)
    return None


def _future_flags(tree: ast.Module) -> int:
    """`from __future__ import annotations` applies to the whole file, although it is compiled in pieces."""
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
