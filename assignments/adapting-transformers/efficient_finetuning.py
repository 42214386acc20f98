"""§3.2, parameter-efficient fine-tuning: all weights, the head alone, or a prefix and the head.

    python efficient_finetuning.py --type prefix --lr 1e-4 --num_epochs 20 --batch_size 64

Without --type all three are trained and compared. Models, training, run folders and scores are the lab's.
"""

from __future__ import annotations

import sys

from attnlab.base import console
from attnlab.base.interrupts import one_sentence
from attnlab.jobs.study.options import Parser, one_of
from attnlab.jobs.study.questions import draw_bars, draw_panels, say
from attnlab.jobs.study.study import Experiment, Study, run_study

PREFIX = 128
TYPES = {"full": "full", "head": "head", "prefix": "prompt"}
"""The document's names. Its prefix is 128 embeddings before the text, 128·d parameters: the lab's prompt."""


def efficient(study: Study) -> None:
    """Every type with the same settings: tuned parameters, scores, accuracy by epoch."""
    study.only_one("model", "lr", "num_epochs")
    outcomes = {}
    for type in [study.asked.type] if study.asked.type else list(TYPES):
        config = study.config(model={"head": "linear"}, tuning={"method": TYPES[type], "length": PREFIX})
        outcomes[type] = outcome = study.train(type, config)
        tuned = outcome.record["learning_parameters"]
        console.result(f"{type}: {tuned:,} tuned parameters{formula(type, tuned, len(study.data.classes))}")
        console.result(f"lr={study.rates[0]:g}, num_epochs={study.epochs[0]}, batch_size={study.batch_size}")
        say(outcome)
    draw_panels(study, outcomes)
    draw_bars(study, outcomes, "-compared")


def formula(type: str, count: int, classes: int) -> str:
    """The number in terms of the width d, where it is one: a head has classes·(d + 1), a prefix 128·d more."""
    rows = {"head": classes, "prefix": classes + PREFIX}.get(type)
    if not rows or (count - classes) % rows:
        return ""
    return f" = {rows}d + {classes} with d = {(count - classes) // rows}"


EFFICIENT = Experiment("full, head and prefix tuning", efficient, batch_size=64)


def make_parser() -> Parser:
    parser = Parser("efficient_finetuning.py", __doc__)
    parser.add_argument("--type", type=one_of(TYPES), metavar="|".join(TYPES), help="which parameters are tuned (all)")
    return parser


def main(words: list[str]) -> None:
    with one_sentence():
        asked = make_parser().parse_args(words)
        run_study("efficient", EFFICIENT, asked)


if __name__ == "__main__":
    main(sys.argv[1:])
