"""Joint training of a classifier: labelled texts beside unlabelled ones whose masked words are learned as well."""

from __future__ import annotations

from pathlib import Path

from attnlab.data.corpus import read_corpus
from attnlab.data.joint import EncodedExamples, JointExamples
from attnlab.data.masking import MaskedExamples, Masking
from attnlab.data.tasks.named import TASKS
from attnlab.errors import UserError
from attnlab.jobs.configs import ClassifyConfig, JointSection
from attnlab.objectives import Joint, MaskedWords, Objective
from attnlab.pretrained.load import Loaded
from attnlab.pretrained.masked import HubPieces, JointClassifier, with_masked_words
from attnlab.training.snapshot import random_untouched


def objective(section: JointSection, main: Objective) -> Joint:
    """L = L_class + w·L_masked."""
    return Joint(main, MaskedWords("masked_labels"), section.weight, section.schedule)


def model(config: ClassifyConfig, loaded: Loaded) -> JointClassifier:
    """The classifier with a second head; what is missing is noted in `loaded`."""
    if config.tuning.method == "head":
        raise UserError("--joint-mlm: with --tune head the body learns nothing from masked words: tune more than that.")
    with random_untouched():  # the rest of the run draws the same numbers as without the second head
        both, note = with_masked_words(loaded)
    if note:
        loaded.notes.append(note)
    both.given = frozenset(f"classifier.{name}" for name in loaded.model.given)
    return both


def examples(config: ClassifyConfig, loaded: Loaded, labelled: EncodedExamples) -> JointExamples:
    """Each labelled text with an unlabelled one beside it."""
    section, seed = config.joint, config.training.seed
    assert section.mlm is not None
    pieces = HubPieces(loaded.tokenizer)
    masking = Masking(pieces, share=section.share, whole_words=section.whole_words, seed=seed)
    longest = min(config.data.max_tokens, loaded.longest)
    clean = TASKS[config.data.task].clean if config.data.task in TASKS else str
    texts = [clean(text) for text in read_corpus(Path(section.mlm))]
    masked = MaskedExamples(texts, masking, longest)
    if masked.cut:
        loaded.notes.append(f"{masked.cut:,} of {len(texts):,} unlabelled texts were cut at {longest} tokens.")
    return JointExamples(labelled, masked, seed)
