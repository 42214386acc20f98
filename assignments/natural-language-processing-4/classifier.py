"""Problem 2: a classifier on [CLS]. The command is in README.md.

Dev is evaluated every logging_steps and the best model saved; at the end that model is tested.
"""

from __future__ import annotations

import sys

from batches import Loader
from errors import one_sentence
from mymodel import BertForSequenceClassification
from options import parse
from training import Losses
from work import Work


def classification(work: Work) -> Losses:
    """The loss of batch number n: cross-entropy of the stars."""
    args = work.args
    labelled = Loader(work.sets["train"], args.per_gpu_train_batch_size, args.seed, work.device)
    return lambda number: {"loss": work.model(**labelled[number]).loss}


def main(words: list[str]) -> None:
    with one_sentence():
        args = parse(words, "classifier.py", joint=False)
        work = Work(args, BertForSequenceClassification)
        if args.do_train:
            work.train(classification)
        if args.do_eval:
            work.evaluate()


if __name__ == "__main__":
    main(sys.argv[1:])
