"""The two data sets of the assignment, each example a pair (x, y) of block_size − 1 character numbers.

    NameDataset             question MASK answer MASK PAD…       loss on the answer only
    CharCorruptionDataset   prefix MASK suffix MASK masked PAD…  loss on every next character

`python src/dataset.py namedata` and `python src/dataset.py charcorruption` print a few of them.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import torch
from torch import Tensor
from torch.utils.data import Dataset

from attnlab.base.errors import UserError, unknown
from attnlab.base.files import read_text
from attnlab.data.questions import split_pair
from attnlab.data.text.reading import numbered_lines
from attnlab.data.tokenizers.vocabulary import MASK_CHAR, PAD_CHAR, Vocabulary
from utils import one_sentence

CONTEXT = 128
SHORTEST = 4  # a document is cut to at least this many characters
MARKS = 2  # the two MASK characters of a sequence

Example = tuple[Tensor, Tensor]


class CharacterDataset(Dataset[Example]):
    """The shared part: the characters and their numbers."""

    MASK_CHAR, PAD_CHAR = MASK_CHAR, PAD_CHAR

    def __init__(self, vocabulary: Vocabulary, block_size: int) -> None:
        self.vocabulary, self.block_size = vocabulary, block_size
        self.itos = dict(enumerate(vocabulary.tokens))
        self.stoi = {character: number for number, character in self.itos.items()}
        self.vocab_size = len(vocabulary)

    def unknown_characters(self, texts: Sequence[str]) -> list[str]:
        """Characters that are not in the vocabulary: all of them are read as the unknown one."""
        return [c for c in sorted(set("".join(texts))) if self.vocabulary.encode(c) == [self.vocabulary.unknown]]

    def _padded(self, sequence: list[int]) -> list[int]:
        return sequence + [self.vocabulary.pad] * (self.block_size - len(sequence))


class CharCorruptionDataset(CharacterDataset):
    """One document per line; blank lines are ignored. Every access draws a new span with `random`."""

    def __init__(self, data: str, block_size: int) -> None:
        if block_size < SHORTEST + MARKS:
            raise UserError(f"block_size is {block_size}: it must be at least {SHORTEST + MARKS}.")
        self.data = [line for _, line in numbered_lines(data)]
        if not self.data:
            raise UserError("the text has no document: expected at least one line that is not blank.")
        super().__init__(Vocabulary.build(self.data), block_size)
        self.documents = [self.vocabulary.encode(document) for document in self.data]
        self.longest = min(int(7 / 8 * block_size), block_size - MARKS)

    def __len__(self) -> int:
        return len(self.documents)

    def __getitem__(self, index: int) -> Example:
        document = self.documents[index][: random.randint(SHORTEST, self.longest)]
        length = masked_length(len(document))
        start = random.randint(0, len(document) - length)
        prefix, masked, suffix = document[:start], document[start : start + length], document[start + length :]
        mask = self.vocabulary.mask
        sequence = torch.tensor(self._padded([*prefix, mask, *suffix, mask, *masked]))
        return sequence[:-1], sequence[1:]


def masked_length(length: int) -> int:
    """The random number of characters to mask: a quarter of `length` on average.

    Uniform between 1 and length/2 − 1, rounded up or down at random, which keeps the mean. Of fewer than four
    characters a quarter is less than one: one is masked with that probability.
    """
    least = min(1.0, length / 4)
    return int(random.uniform(least, length / 2 - least) + random.random())


class NameDataset(CharacterDataset):
    """Questions and answers, tab-separated, in the characters of the pretraining text."""

    def __init__(self, pretraining_dataset: CharacterDataset, data: str, name: str = "the data") -> None:
        super().__init__(pretraining_dataset.vocabulary, pretraining_dataset.block_size)
        lines = numbered_lines(data)
        self.pairs = [split_pair(name, number, line) for number, line in lines]
        for (number, _), (question, answer) in zip(lines, self.pairs, strict=True):
            must_fit(name, number, len(question) + len(answer) + MARKS, self.block_size, "question and answer")

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, index: int) -> Example:
        question, answer = (self.vocabulary.encode(text) for text in self.pairs[index])
        mask, pad = self.vocabulary.mask, self.vocabulary.pad
        sequence = self._padded([*question, mask, *answer, mask])
        targets = [pad] * (len(question) - 1) + sequence[len(question) :]  # from the first MASK on
        return torch.tensor(sequence[:-1]), torch.tensor(targets)


def must_fit(name: str, number: int, length: int, context: int, what: str) -> None:
    if length > context:
        raise UserError(
            f"{name}, line {number}: {what} take {length} characters with their marks, more than the context of "
            f"{context}: shorten the line."
        )


@one_sentence
def main(words: list[str]) -> None:
    if len(words) != 1:
        raise UserError("the data set is missing: python src/dataset.py namedata (or charcorruption).")
    if words[0] not in ("namedata", "charcorruption"):
        raise UserError(unknown("data set", words[0], ("namedata", "charcorruption")))
    shown: CharacterDataset = CharCorruptionDataset(read_text(Path("wiki.txt")), CONTEXT)
    if words[0] == "namedata":
        shown = NameDataset(shown, read_text(Path("birth_places_train.tsv")), "birth_places_train.tsv")
    for x, y in islice((shown[n] for n in range(len(shown))), 4):  # type: ignore[arg-type]
        print("x:", shown.vocabulary.decode(x.tolist()))
        print("y:", shown.vocabulary.decode(y.tolist()))


if __name__ == "__main__":
    main(sys.argv[1:])
