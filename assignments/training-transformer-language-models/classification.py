"""The command of the assignments on fine-tuning: `python classification.py --experiment overfit ...`.

    python classification.py --experiment "overfit" --small_subset True --device cuda \
        --model "distilbert-base-uncased" --batch_size "64" --lr 1e-4 --num_epochs 20

Options have the course's names; models, training and scores are the lab's.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from attnlab.base.errors import UserError, nearest
from attnlab.base.interrupts import one_sentence
from experiments import EXPERIMENTS, TYPES, Asked, run_experiment


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message} ('python classification.py --help' lists the options).")


def make_parser() -> Parser:
    parser = Parser(
        prog="python classification.py",
        description=__doc__,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--experiment",
        type=one_of(EXPERIMENTS),
        required=True,
        metavar="NAME",
        help="; ".join(f"{name}: {each.about}" for name, each in EXPERIMENTS.items()),
    )
    parser.add_argument("--task", default=None, help="boolq (default), sst2 (default of optimizers), or a file")
    parser.add_argument(
        "--model",
        type=listed(str),
        metavar="NAME[,NAME]",
        help="from the hub, minilm, or a folder (default: those of the document)",
    )
    parser.add_argument("--small_subset", type=truth, metavar="True|False", help="train on 10 instances only")
    parser.add_argument("--type", type=one_of(TYPES), metavar="|".join(TYPES), help="which parameters are tuned")
    parser.add_argument("--batch_size", type=batch_size, metavar="N|auto", help="auto: the largest that fits")
    parser.add_argument("--lr", type=listed(float), metavar="RATE[,RATE]", help="learning rate, or several to try")
    parser.add_argument("--num_epochs", type=listed(int), metavar="N[,N]", help="epochs, or several to try")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1 or mps (auto)")
    parser.add_argument("--seed", type=int, default=0, help="of everything random (0)")
    parser.add_argument(
        "--output", type=Path, metavar="FOLDER", help="folder for runs and figures; an interrupted one is resumed"
    )
    return parser


def truth(text: str) -> bool:
    """The course's parser takes the words True and False."""
    if text.lower() not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"expected True or False, got {text!r}")
    return text.lower() == "true"


def batch_size(text: str) -> int | str:
    if text != "auto" and not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"expected a whole number from 1, or auto, got {text!r}")
    return text if text == "auto" else int(text)


def listed(kind: type) -> Callable[[str], list[Any]]:
    def parse(text: str) -> list[Any]:
        try:
            values = [kind(part.strip()) for part in text.split(",") if part.strip()]
        except ValueError:
            raise argparse.ArgumentTypeError(f"expected a list of numbers such as 1 or 5,7,9, got {text!r}") from None
        if not values or (kind is not str and min(values) <= 0):
            raise argparse.ArgumentTypeError(f"expected at least one value above 0, got {text!r}")
        return list(dict.fromkeys(values))

    return parse


def one_of(names: Any) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in names:
            close = nearest(text, names)
            hint = f"did you mean {close!r}?" if close else f"choose from {', '.join(names)}"
            raise argparse.ArgumentTypeError(f"{text!r} is unknown: {hint}")
        return text

    return parse


def main(words: list[str]) -> None:
    with one_sentence():
        run_experiment(Asked(**vars(make_parser().parse_args(words))))


if __name__ == "__main__":
    main(sys.argv[1:])
