"""Problem 2: a classifier on [CLS]. The command is in README.md.

Evaluated on dev every logging_steps; the best model is saved, and tested at the end.
"""

from __future__ import annotations

import sys

from attnlab.base.interrupts import one_sentence
from attnlab.training.objectives import Classification
from mymodel import BertForSequenceClassification
from options import parse
from training import Work


def main(words: list[str]) -> None:
    with one_sentence():
        args = parse(words, "classifier.py", joint=False)
        work = Work(args, BertForSequenceClassification)
        if args.do_train:
            work.train(work.sets["train"], Classification())
        else:
            work.evaluate()


if __name__ == "__main__":
    main(sys.argv[1:])
