"""Labelled texts two by two: each with another of its class, for an encoder that learns which texts belong together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from attnlab.data.encoded import EncodedExamples


class SameClassPairs:
    """One example per text: the text, and another of its class that is drawn anew in every epoch.

    A batch of n examples is 2n texts, so every text in it has at least one of its class beside it. The only text of
    a class goes with itself; dropout then makes the two differ (Gao et al. 2021). A draw depends on the seed, the epoch
    and the text alone.
    """

    def __init__(self, labelled: EncodedExamples, seed: int) -> None:
        self.labelled, self.seed = labelled, seed
        self.lengths = labelled.lengths
        labels = np.asarray(labelled.labels)
        self.members = {int(label): np.flatnonzero(labels == label) for label in np.unique(labels)}

    def collate(self, indices: Sequence[int], epoch: int) -> dict[str, Tensor]:
        return self.labelled.collate([*indices, *(self.partner(index, epoch) for index in indices)], epoch)

    def partner(self, index: int, epoch: int) -> int:
        """The index of another text of the same class."""
        members = self.members[self.labelled.labels[index]]
        if len(members) == 1:
            return index
        drawn = int(np.random.default_rng([self.seed, epoch, index]).integers(len(members) - 1))
        place = int(np.searchsorted(members, index))
        return int(members[drawn + (drawn >= place)])
