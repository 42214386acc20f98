"""The command line, thin: parse, call, print. One file per group of commands.

lazy.py imports a command's module when the command is called, and the modules import torch and the
other heavy parts inside their functions, so that `attnlab --help` and shell completion answer at once.
"""

from __future__ import annotations

import os
import warnings
from typing import Annotated

import typer

from attnlab.base import console
from attnlab.base.errors import UserError
from attnlab.base.interrupts import one_sentence
from attnlab.cli.help import LazyGroup
from attnlab.version import __version__

app = typer.Typer(
    name="attnlab",
    cls=LazyGroup,
    help="Attention Lab: take attention apart, put Transformers together, train and compare them honestly.",
    epilog="Every command has --help with an example, and --help-all with its rare options.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(requested: bool) -> None:
    if requested:
        console.result(f"attnlab {__version__}")
        raise typer.Exit


@app.callback()
def lab(
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print results and errors only.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print details as well.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    if quiet and verbose:
        raise UserError("--quiet and --verbose contradict each other: give one of them.")
    if quiet:
        console.set_verbosity(console.Verbosity.QUIET)
    elif verbose:
        warnings.simplefilter("default")
        console.set_verbosity(console.Verbosity.VERBOSE)


def main() -> None:
    """Entry point: every error a user can cause ends here, in one sentence and an exit code."""
    if asked := os.environ.get("OMP_NUM_THREADS", "").split(",")[0]:
        os.environ.setdefault("RAYON_NUM_THREADS", asked)  # the threads of tokenizers, which know no other variable
    with one_sentence():
        app()
