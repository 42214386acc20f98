"""Problem 3: the classifier trained jointly with masked words of unlabelled text, L = L_cls + mlm_alpha · L_mlm.

Every batch of labelled texts goes with one of as many unlabelled ones, masked anew each time. Both streams have their
own order, so that all unlabelled texts are seen in turn, however few labelled ones there are.
"""

from __future__ import annotations

import sys

from torch import Tensor

from batches import Loader
from errors import note, one_sentence
from mlm_utils import load_and_cache_unlabeled_examples, mask_tokens
from mymodel import BertForCLSMLM
from options import parse
from training import Losses
from work import Work


def joint(work: Work) -> Losses:
    """The losses of batch number n: of the stars, of the masked words, and their weighted sum."""
    args, tokenizer = work.args, work.tokenizer
    texts = load_and_cache_unlabeled_examples(args, tokenizer)
    work.facts["unlabelled"] = {"texts": len(texts), "cut": texts.cut}
    if texts.cut:
        note(f"{texts.cut} of {len(texts)} unlabelled texts are cut to {args.block_size} pieces.")
    labelled = Loader(work.sets["train"], args.per_gpu_train_batch_size, args.seed, work.device)
    unlabelled = Loader(texts, args.per_gpu_train_batch_size, args.seed, work.device)

    def losses(number: int) -> dict[str, Tensor]:
        classes, words = labelled[number], unlabelled[number]
        masked, targets = mask_tokens(words["input_ids"], tokenizer, args)
        output = work.model(
            **classes, masked_input_ids=masked, masked_attention_mask=words["attention_mask"], masked_labels=targets
        )
        return {"loss": output.loss, "cls_loss": output.cls_loss, "mlm_loss": output.mlm_loss}

    return losses


def main(words: list[str]) -> None:
    with one_sentence():
        args = parse(words, "classifier_mlm.py", joint=True)
        work = Work(args, BertForCLSMLM, mlm_alpha=args.mlm_alpha)
        if args.do_train:
            work.train(joint)
        if args.do_eval:
            work.evaluate()


if __name__ == "__main__":
    main(sys.argv[1:])
