"""The audit of a user's own file, in a process that may end or hang without harm.

A file that calls `sys.exit`, loops for ever or takes all memory must not end the audit in silence. So it is audited
in a child with limits; the findings come back as JSON in a file of their own, whatever the file prints, and whatever
processes it leaves behind: these are ended.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import warnings
from contextlib import suppress
from dataclasses import asdict

from attnlab.attention.audit.mixer import Finding
from attnlab.attention.audit.run import Audit, audit
from attnlab.attention.registry import MixerShape
from attnlab.base import console
from attnlab.base.children import MODULE
from attnlab.base.console import Verbosity
from attnlab.base.errors import UserError

SECONDS = 600
GIB = 2**30
MEMORY = 16 * GIB


def audit_file(path: str, shape: MixerShape, cost: bool = True, half: bool = True, seconds: float = SECONDS) -> Audit:
    """All checks on the mixer in a file; raises if they cannot be completed."""
    verbose = console.verbosity() is Verbosity.VERBOSE
    request = json.dumps({"path": path, "shape": asdict(shape), "cost": cost, "half": half, "verbose": verbose})
    with tempfile.TemporaryFile() as results:
        command = [*MODULE, "attnlab.attention.audit.child", str(results.fileno()), request]
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=(results.fileno(),),
            start_new_session=True,
        )
        try:
            code = child.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise UserError(
                f"{path} did not finish its audit within {seconds:g} seconds: does its forward end for every input?"
            ) from None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        results.seek(0)
        return _result(path, results.read(), code)


def _result(path: str, written: bytes, code: int) -> Audit:
    try:
        answer = json.loads(written)
        if "error" in answer:
            raise UserError(answer["error"])
        return Audit(path, [Finding(**finding) for finding in answer["findings"]])
    except (ValueError, TypeError, KeyError):  # nothing, or also what a second process wrote
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        raise UserError(
            f"{path} ended the process in the middle of its audit ({how}): it must return an output instead."
        ) from None


def _main(results: int, request: dict[str, object]) -> None:
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    memory = MEMORY if hard == resource.RLIM_INFINITY else min(MEMORY, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    warnings.simplefilter("default" if request["verbose"] else "ignore")
    path, shape = str(request["path"]), MixerShape(**request["shape"])  # type: ignore[arg-type]
    try:
        result = audit(path, shape, bool(request["cost"]), bool(request["half"]))
        answer: dict[str, object] = {"findings": [asdict(finding) for finding in result.findings]}
    except UserError as error:
        answer = {"error": str(error)}
    except MemoryError:
        answer = {"error": f"{path} needs more than {MEMORY // GIB} GiB for sequences of {shape.context} tokens."}
    except Exception:
        raise
    except BaseException as error:
        answer = {"error": f"{path} raises {type(error).__name__}: it must return an output instead."}
    with os.fdopen(results, "w", encoding="utf-8") as file:
        file.write(json.dumps(answer))


if __name__ == "__main__":
    import attnlab.attention  # registers all variants  # noqa: F401

    _main(int(sys.argv[1]), json.loads(sys.argv[2]))
