"""The options of a script, under the names of the courses; a mistake is one sentence."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection
from pathlib import Path
from typing import NoReturn, TypeVar

from attnlab.base.errors import UserError, nearest

T = TypeVar("T")
Pair = tuple[float, int]
"""A learning rate and a number of epochs."""


class Parser(argparse.ArgumentParser):
    """With the options that all scripts share; each adds its own.

    Messages of the lab name options as `attnlab classify` has them, so those have these names as well.
    """

    def __init__(self, program: str, description: str) -> None:
        super().__init__(
            prog=f"python {program}",
            description=description,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        add = self.add_argument
        add("--task", help="boolq, sst2, sentiment, or a file")
        add("--data-folder", metavar="FOLDER", help="of the tasks (default: the folder in ATTNLAB_DATA)")
        add("--model", type=listed(str), metavar="NAME[,NAME]", help="from the hub, minilm, or a folder")
        add("--small_subset", type=truth, metavar="True|False", help="train on 10 instances only")
        add("--examples", type=whole, metavar="N", help="train on N instances, each class in its proportion")
        add("--eval_examples", type=whole, metavar="N", help="score at most N instances of train, dev and test")
        add(
            "--max_length",
            "--max-tokens",
            type=whole,
            metavar="N",
            help="tokens per instance; longer passages are cut (128)",
        )
        add(
            "--batch_size",
            type=batch_size,
            metavar="N|auto|largest",
            help="auto: the most that fit and leave 25 steps per epoch; largest: the most that fit",
        )
        add("--lr", type=listed(rate), metavar="RATE[,RATE]", help="learning rate, or several to try")
        add("--num_epochs", "--epochs", type=listed(whole), metavar="N[,N]", help="epochs, or several to try")
        add("--device", default="auto", help="auto, cpu, cuda, cuda:1 or mps (auto)")
        add("--seed", type=int, default=0, help="of everything random (0)")
        add("--output", type=Path, metavar="FOLDER", help="for runs and figures; an interrupted one is resumed")

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message} ('{self.prog} --help' lists the options).")


def truth(text: str) -> bool:
    """The courses write True and False."""
    if text.lower() not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"expected True or False, got {text!r}")
    return text.lower() == "true"


def whole(text: str) -> int:
    if not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"expected a whole number from 1, got {text!r}")
    return int(text)


def rate(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number above 0 such as 1e-4, got {text!r}")
    return value


def batch_size(text: str) -> int | str:
    if text in ("auto", "largest"):
        return text
    try:
        return whole(text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{error}: give a number, auto or largest") from None


def pair(text: str) -> Pair:
    """A learning rate with its number of epochs, as in 5e-4/7."""
    first, slash, second = text.partition("/")
    if not slash:
        raise argparse.ArgumentTypeError(f"expected a learning rate and epochs such as 5e-4/7, got {text!r}")
    return rate(first), whole(second)


def listed(kind: Callable[[str], T]) -> Callable[[str], list[T]]:
    """Values separated by commas, each once."""

    def parse(text: str) -> list[T]:
        values = [kind(part.strip()) for part in text.split(",") if part.strip()]
        if not values:
            raise argparse.ArgumentTypeError(f"expected at least one value, got {text!r}")
        return list(dict.fromkeys(values))

    return parse


def one_of(names: Collection[str]) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in names:
            close = nearest(text, names)
            hint = f"did you mean {close!r}?" if close else f"choose from {', '.join(names)}"
            raise argparse.ArgumentTypeError(f"{text!r} is unknown: {hint}")
        return text

    return parse
