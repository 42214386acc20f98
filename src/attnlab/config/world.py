"""The synthetic world, used when no file is given."""

from __future__ import annotations

from typing import ClassVar

from attnlab.config.sections import Section, option


class WorldSection(Section):
    """The synthetic world, used when no file is given."""

    topic: ClassVar[str] = "Synthetic world"
    common: ClassVar[tuple[str, ...] | None] = ("people", "places", "documents", "paraphrases", "world_seed")

    people: int = option(400, "People in the synthetic world.", ge=4)
    places: int = option(60, "Birthplaces in the synthetic world.", ge=2)
    skew: float = option(0.5, "Place number k has weight 1/k^skew; 0 is uniform.", ge=0)
    documents: int = option(4, "Documents per person.", ge=1)
    sentences: int = option(2, "Sentences per document, one of them on the birthplace.", ge=1)
    paraphrases: int = option(4, "Wordings of the birthplace per person, over all documents.", ge=1)
    name_first: bool = option(False, "Only wordings that name the person before the place.")
    shuffled: bool = option(True, "Sentences of a document in random order; otherwise the birthplace is first.")
    train_people: float = option(0.5, "Share of people in fine-tuning questions.", gt=0, lt=1)
    dev_people: float = option(0.2, "Share of people in dev questions.", ge=0, lt=1)
    test_people: float = option(0.3, "Share of people in test questions.", ge=0, lt=1)
    world_seed: int = option(0, "Seed of the world.", ge=0)
