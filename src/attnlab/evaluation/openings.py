"""How the texts of a run's training begin and end: where a sample without a prompt starts, and where it stops.

The models have no token for the beginning of a text, so a sample starts from the first token of a line that the model
was trained on.
"""

from __future__ import annotations

from attnlab.base.errors import UserError
from attnlab.data.tokenizers.vocabulary import MASK_CHAR
from attnlab.evaluation.sources import ancestry, find_sources
from attnlab.models.loading import TrainedGPT
from attnlab.models.sampling import seeded
from attnlab.runs import read_config


def openings(trained: TrainedGPT, number: int, seed: int = 0) -> list[str]:
    """The first tokens of `number` lines of the training text, drawn at random; without any text, of its questions."""
    sources, vocabulary = find_sources(trained.run), trained.vocabulary
    lines = [line.text for line in sources.pretraining.lines] if sources.pretraining else []
    lines = lines or [question for question, _ in sources.trained_on]
    if not lines:
        raise UserError(f"{trained.run}: its training text is missing, so no beginning can be drawn: give a prompt.")
    drawn = [int(seeded(seed, n, "opening").integers(len(lines))) for n in range(number)]
    return [vocabulary.decode(vocabulary.encode(lines[line])[:1]) for line in drawn]


def ending(trained: TrainedGPT, prompt: str = "") -> int | None:
    """The token that ends a sample: the mark, after a question with one, and where a document has no other mark."""
    objectives = {read_config(run).get("objective", {}).get("name") for run in ancestry(trained.run)}
    return trained.vocabulary.mask if MASK_CHAR in prompt or "causal" in objectives else None
