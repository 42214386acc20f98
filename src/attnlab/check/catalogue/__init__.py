"""Known wrong implementations of each piece, so that a wrong answer can be traced to its likely mistake.

A mistake is found by running the wrong implementations on the input of the check: the one that gives exactly
the student's answer, or raises exactly the student's error, names it. A mistake in a piece is also a mistake in
`self_attention`: the wrong piece is put into an otherwise right `Assembly`.
"""

from attnlab.check.catalogue.heads import MERGE, SPLIT, SPLIT_QKV
from attnlab.check.catalogue.masks import APPLY, MASK
from attnlab.check.catalogue.mistake import Function, Mistake
from attnlab.check.catalogue.scores import OUTPUTS, PAIRWISE, SCALED, SOFTMAX
from attnlab.check.catalogue.self_attention import SELF_ATTENTION, USAGE, WHOLE, WholeMistake, pairs_of_mistakes

CATALOGUE: dict[str, tuple[Mistake, ...]] = {
    "pairwise_similarities": PAIRWISE,
    "attn_scaled": SCALED,
    "attn_softmax": SOFTMAX,
    "compute_outputs": OUTPUTS,
    "make_causal_mask": MASK,
    "apply_causal_mask": APPLY,
    "split_heads": SPLIT,
    "split_heads_qkv": SPLIT_QKV,
    "merge_heads": MERGE,
    "self_attention": SELF_ATTENTION,
}

__all__ = ["CATALOGUE", "USAGE", "WHOLE", "Function", "Mistake", "WholeMistake", "pairs_of_mistakes"]
