"""Joint training of a classifier: on labelled texts, and on masked words of unlabelled ones."""

from __future__ import annotations

from pathlib import Path

from attnlab.config.classify import ClassifyConfig, JointSection
from attnlab.data.encoded import EncodedExamples, JointExamples
from attnlab.data.tasks.catalog import TASKS
from attnlab.data.text.masking import MaskedExamples, Masking
from attnlab.data.text.reading import read_corpus
from attnlab.models.pretrained.load import LoadedClassifier
from attnlab.models.pretrained.masked import HubPieces
from attnlab.training.objectives import Joint, MaskedWords, Objective


def objective(section: JointSection, main: Objective) -> Joint:
    """L = L_class + w·L_masked."""
    return Joint(main, MaskedWords("masked_labels"), section.weight, section.schedule)


def examples(config: ClassifyConfig, loaded: LoadedClassifier, labelled: EncodedExamples) -> JointExamples:
    """Each labelled text paired with an unlabelled one."""
    section, seed = config.joint, config.training.seed
    assert section.mlm is not None
    pieces = HubPieces(loaded.tokenizer)
    masking = Masking(pieces, share=section.share, whole_words=section.whole_words, seed=seed)
    longest = min(config.data.max_tokens or loaded.longest, loaded.longest)
    clean = TASKS[config.data.task].clean if config.data.task in TASKS else str
    texts = [clean(text) for text in read_corpus(Path(section.mlm))]
    masked = MaskedExamples(texts, masking, longest)
    if masked.cut:
        loaded.notes.append(f"{masked.cut:,} of {len(texts):,} unlabelled texts were cut at {longest} tokens.")
    return JointExamples(labelled, masked, seed)
