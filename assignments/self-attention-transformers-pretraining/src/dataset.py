"""The data sets of the assignment, each example a pair (x, y) of block_size − 1 character numbers.

    NameDataset             question MASK answer MASK PAD…       loss on the answer only
    CharCorruptionDataset   prefix MASK suffix MASK masked PAD…  loss on every next character
    PhraseDataset           title left MASK right MASK phrase MASK PAD…     loss on the phrase only

The third is an addition, `--preset fast`: what is hidden is a name or a place, and the title is what remains to
find it by. `python src/dataset.py namedata`, `charcorruption` and `phrases` print a few examples of each.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor
from torch.utils.data import Dataset

from attnlab.base.errors import UserError, unknown
from attnlab.base.files import read_text
from attnlab.data.questions import split_pair
from attnlab.data.text.reading import numbered_lines
from model import PAD
from phrases import Document, Phrase, ordinary_words, read_document
from utils import one_sentence

CONTEXT = 128
SHORTEST = 4  # a document is cut to at least this many characters
MARKS = 2  # the two MASK characters of a sequence

Example = tuple[Tensor, Tensor]


class CharacterDataset(Dataset[Example]):
    """The shared part: the characters and their numbers. PAD is number 0, MASK number 1."""

    MASK_CHAR, PAD_CHAR = "\u2047", "\u25a1"  # ⁇ and □

    def __init__(self, characters: Sequence[str], block_size: int) -> None:
        self.block_size = block_size
        self.itos = dict(enumerate(characters))
        self.stoi = {character: number for number, character in self.itos.items()}
        self.vocab_size = len(self.itos)
        self.mask = self.stoi[self.MASK_CHAR]

    def __len__(self) -> int:
        raise NotImplementedError

    def encode(self, text: str) -> list[int]:
        """The numbers of the text's characters; those without a number are left out."""
        return [self.stoi[character] for character in text if character in self.stoi]

    def decode(self, numbers: Sequence[int]) -> str:
        return "".join(self.itos[number] for number in numbers)

    def unknown_characters(self, texts: Sequence[str]) -> list[str]:
        """The characters of the texts that are not in the vocabulary."""
        return sorted(set("".join(texts)) - self.stoi.keys())

    def _example(self, sequence: list[int], first: int = 0) -> Example:
        """x and y, y being x one character later; characters before number `first` are not targets."""
        padded = sequence + [PAD] * (self.block_size - len(sequence))
        y = torch.tensor(padded[1:])
        y[: max(0, first - 1)] = PAD
        return torch.tensor(padded[:-1]), y


class CharCorruptionDataset(CharacterDataset):
    """One document per line; blank lines are ignored. Every access draws a new span with `random`.

    The vocabulary: PAD, MASK and the sorted characters of the text, the newline among them.
    """

    def __init__(self, data: str, block_size: int) -> None:
        if block_size < SHORTEST + MARKS:
            raise UserError(f"block_size is {block_size}: it must be at least {SHORTEST + MARKS}.")
        lines = numbered_lines(data)
        self.data = [line for _, line in lines]
        if not self.data:
            raise UserError("the text has no document: expected at least one line that is not blank.")
        for number, line in lines:
            for mark in (self.PAD_CHAR, self.MASK_CHAR):
                if mark in line:
                    raise UserError(f"line {number} of the text contains {mark}, which marks hidden text: remove it.")
        super().__init__([self.PAD_CHAR, self.MASK_CHAR, *sorted(set(data))], block_size)
        self.documents = [self.encode(document) for document in self.data]
        self.longest = min(int(7 / 8 * block_size), block_size - MARKS)

    def __len__(self) -> int:
        return len(self.documents)

    def __getitem__(self, index: int) -> Example:
        document = self.documents[index][: random.randint(SHORTEST, self.longest)]
        length = masked_length(len(document))
        start = random.randint(0, len(document) - length)
        prefix, masked, suffix = document[:start], document[start : start + length], document[start + length :]
        return self._example([*prefix, self.mask, *suffix, self.mask, *masked])


def masked_length(length: int) -> int:
    """The random number of characters to mask: a quarter of `length` on average.

    Uniform between 1 and length/2 − 1, rounded up or down at random, which keeps the mean. Of fewer than four
    characters a quarter is less than one: one is masked with that probability.
    """
    least = min(1.0, length / 4)
    return int(random.uniform(least, length / 2 - least) + random.random())


@dataclass(frozen=True)
class Reading:
    """What is hidden of a document, what stays visible, and where the loss is taken."""

    hide: Literal["one", "all"] = "one"
    """One phrase, or all phrases at once."""
    left: int | None = 12
    """Besides the title, a random number of characters before the hidden phrase stay visible, at most so many; the
    fewer, the more must be found by the title. None: the whole text."""
    right: int | None = 2
    """The same after it."""
    rank: float = 1.0
    """The k-th phrase of a document is drawn with weight k^−rank: what comes first says most of a person."""
    place: float = 4.0
    """A phrase after `in` or `at` is drawn this many times as often: what is asked for later are places."""
    loss: Literal["phrase", "everywhere"] = "phrase"
    lead: int = 0
    """PAD characters before the title: a synthesizer's scores belong to positions, so a title must stand where a
    question has its name."""


class PhraseDataset(CharCorruptionDataset):
    """The same documents with a name or a place hidden; every access draws another one with `random`."""

    def __init__(self, data: str, block_size: int, reading: Reading | None = None) -> None:
        super().__init__(data, block_size)
        self.reading = reading or Reading()
        ordinary = ordinary_words(self.data)
        self.read = [self._what_fits(read_document(text, ordinary)) for text in self.data]
        if not any(document.phrases for document in self.read):
            raise UserError(
                f"no document has a name or place that fits behind its title within {block_size} characters: give a "
                "text of lines such as 'Ada Byron. Born in London .', or leave --preset fast out."
            )
        self.weights = [[self._weight(*ranked) for ranked in enumerate(each.phrases, 1)] for each in self.read]

    def _what_fits(self, document: Document) -> Document:
        """The document without phrases that are too long to stand behind its title."""
        room = self.block_size - self.reading.lead - document.title_end - 3  # three MASK characters
        phrases = tuple(phrase for phrase in document.phrases if phrase.end - phrase.start <= room)
        return document if self.reading.hide == "all" else replace(document, phrases=phrases)

    def _weight(self, k: int, phrase: Phrase) -> float:
        return k**-self.reading.rank * (self.reading.place if phrase.place else 1.0)

    def __getitem__(self, index: int) -> Example:
        document = self.read[index]
        if not document.phrases:
            return super().__getitem__(index)
        if self.reading.hide == "all":
            visible, hidden = self._all_hidden(document)
        else:
            (phrase,) = random.choices(document.phrases, self.weights[index])
            visible, hidden = self._one_hidden(document, phrase)
        lead = self.PAD_CHAR * self.reading.lead
        first = len(lead + visible) + 1 if self.reading.loss == "phrase" else len(lead)
        sequence = [self.stoi[character] for character in lead + visible + hidden]
        return self._example(sequence[: self.block_size], first)

    def _one_hidden(self, document: Document, phrase: Phrase) -> tuple[str, str]:
        """`title left MASK right` and `MASK phrase MASK`; the context gives way if they do not fit."""
        text, start, end = document.text, phrase.start, phrase.end
        title, hidden = text[: document.title_end], f"{self.MASK_CHAR}{text[start:end]}{self.MASK_CHAR}"
        room = max(0, self.block_size - self.reading.lead - len(title) - len(hidden) - 1)
        right = text[end : end + min(room, _drawn(self.reading.right, len(text)))]
        left = min(room - len(right), _drawn(self.reading.left, len(text)))
        return f"{title}{text[max(document.title_end, start - left) : start]}{self.MASK_CHAR}{right}", hidden

    def _all_hidden(self, document: Document) -> tuple[str, str]:
        """The text with MASK for every phrase that fits, then each phrase after a MASK."""
        visible = hidden = ""
        at = 0
        for phrase in document.phrases:
            shown = f"{document.text[at : phrase.start]}{self.MASK_CHAR}"
            masked = f"{self.MASK_CHAR}{document.text[phrase.start : phrase.end]}"
            if len(visible) + len(hidden) + len(shown) + len(masked) >= self.block_size:
                break
            visible, hidden, at = visible + shown, hidden + masked, phrase.end
        room = self.block_size - len(visible) - len(hidden) - 1
        return visible + document.text[at : at + room], hidden + self.MASK_CHAR


def _drawn(most: int | None, all_: int) -> int:
    """A random number up to `most`; None: all."""
    return all_ if most is None else random.randint(0, most)


class NameDataset(CharacterDataset):
    """Questions and answers, tab-separated, in the characters of the pretraining text."""

    def __init__(self, pretraining_dataset: CharacterDataset, data: str, name: str = "the data") -> None:
        super().__init__(list(pretraining_dataset.itos.values()), pretraining_dataset.block_size)
        lines = numbered_lines(data)
        self.pairs = [split_pair(name, number, line) for number, line in lines]
        for (number, _), (question, answer) in zip(lines, self.pairs, strict=True):
            must_fit(name, number, len(question) + len(answer) + MARKS, self.block_size, "question and answer")

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, index: int) -> Example:
        question, answer = (self.encode(text) for text in self.pairs[index])
        return self._example([*question, self.mask, *answer, self.mask], first=len(question))


def must_fit(name: str, number: int, length: int, context: int, what: str) -> None:
    if length > context:
        raise UserError(
            f"{name}, line {number}: {what} take {length} characters with their marks, more than the context of "
            f"{context}: shorten the line."
        )


SHOWN = ("namedata", "charcorruption", "phrases")


@one_sentence
def main(words: list[str]) -> None:
    if len(words) != 1:
        raise UserError(f"the data set is missing: python src/dataset.py {SHOWN[0]} (or {', '.join(SHOWN[1:])}).")
    if words[0] not in SHOWN:
        raise UserError(unknown("data set", words[0], SHOWN))
    text = read_text(Path("wiki.txt"))
    shown: CharacterDataset = (PhraseDataset if words[0] == "phrases" else CharCorruptionDataset)(text, CONTEXT)
    if words[0] == "namedata":
        shown = NameDataset(shown, read_text(Path("birth_places_train.tsv")), "birth_places_train.tsv")
    for x, y in islice((shown[n] for n in range(len(shown))), 4):
        print("x:", shown.decode(x.tolist()))
        print("y:", shown.decode(y.tolist()))


if __name__ == "__main__":
    main(sys.argv[1:])
