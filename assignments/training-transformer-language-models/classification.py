"""The programming part of Homework 6, as its starter code is called.

    python classification.py --experiment "overfit" --small_subset True --device cuda \
        --model "distilbert-base-uncased" --batch_size "64" --lr 1e-4 --num_epochs 20

Options have the course's names; models, training, run folders and scores are the lab's.
"""

from __future__ import annotations

import re
import sys

import torch

from attnlab.base import console
from attnlab.base.interrupts import one_sentence
from attnlab.jobs.study.options import Parser, one_of
from attnlab.jobs.study.study import run_study
from experiments import EXPERIMENTS


def make_parser() -> Parser:
    parser = Parser("classification.py", __doc__)
    parser.add_argument(
        "--experiment",
        type=one_of(EXPERIMENTS),
        required=True,
        metavar="NAME",
        help="; ".join(f"{name}: {each.about}" for name, each in EXPERIMENTS.items()),
    )
    return parser


def device_or_cpu(asked: str) -> tuple[str, list[str]]:
    """The document's commands name a GPU; without any they run on the CPU, which is printed and recorded."""
    if re.fullmatch(r"cuda(:\d+)?", asked) and not torch.cuda.is_available():
        return "cpu", [f"--device {asked}: there is no GPU on this machine, so the CPU is used."]
    return asked, []


def main(words: list[str]) -> None:
    with one_sentence():
        asked = make_parser().parse_args(words)
        asked.device, changes = device_or_cpu(asked.device)
        for change in changes:
            console.warn(change)
        run_study(asked.experiment, EXPERIMENTS[asked.experiment], asked, changes)


if __name__ == "__main__":
    main(sys.argv[1:])
