"""Problem 3: the same classifier trained jointly with masked words of unlabelled text: L = L_cls + mlm_alpha * L_mlm.

Every labelled text of a batch is paired with an unlabelled one, masked differently each time; the order of these
continues from epoch to epoch, so that all are seen in turn.
"""

from __future__ import annotations

import sys
from pathlib import Path

from attnlab.base.files import sha256
from attnlab.base.interrupts import one_sentence
from attnlab.data.encoded import JointExamples
from attnlab.training.objectives import Classification, Joint, MaskedWords
from mlm_utils import load_and_cache_unlabeled_examples
from mymodel import BertForCLSMLM
from options import parse
from training import Work


def main(words: list[str]) -> None:
    with one_sentence():
        args = parse(words, "classifier_mlm.py", joint=True)
        work = Work(args, BertForCLSMLM)
        if not args.do_train:
            work.evaluate()
            return
        unlabelled = load_and_cache_unlabeled_examples(args, work.tokenizer)
        work.train(
            JointExamples(work.sets["train"], unlabelled, args.seed),
            Joint(Classification(), MaskedWords("masked_labels"), args.mlm_alpha),
            unlabelled=len(unlabelled),
            unlabelled_cut=unlabelled.cut,
            unlabelled_sha256=sha256(Path(args.train_data_file)),
            block_size=args.block_size,
            mlm_alpha=args.mlm_alpha,
            mlm_probability=args.mlm_probability,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
