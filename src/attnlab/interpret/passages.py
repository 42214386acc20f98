"""Sequences on which heads are scored: random tokens written twice, and passages of a text.

    random    m r₁ … r_L r₁ … r_L m      r drawn from the model's own vocabulary, m the marks it puts around a text
    text      m x₁ … x_2L m              evenly spaced over the text

Random tokens have no grammar and no meaning: a head that finds the first copy from the second works by repetition
alone. Each sequence is one draw.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field

import torch
from torch import Tensor

from attnlab.base.errors import UserError
from attnlab.interpret.subject import Subject, Tokens

LENGTH = 50  # tokens in a copy, where they fit
SHORTEST = 4  # with 2, the token after the previous occurrence would be the previous token
WORD_STARTS = "Ġ▁"  # of GPT-2 and T5; a piece inside a word begins with ##


@dataclass(frozen=True)
class Passages:
    """Sequences of one length, one per draw."""

    source: str
    ids: Tensor  # (B, T)
    special: Tensor  # (B, T), where a mark is
    separators: Tensor  # (B, T), where punctuation, the end of a line or a mark after the text is
    inputs: dict[str, Tensor]
    """The arguments of the model's forward."""
    notes: list[str] = field(default_factory=list)
    """What was changed or is worth knowing, one sentence each."""

    def __len__(self) -> int:
        return len(self.ids)

    def part(self, start: int, end: int) -> Passages:
        """Some of the draws."""
        kept = slice(start, end)
        inputs = {name: tensor[kept] for name, tensor in self.inputs.items()}
        return Passages(self.source, self.ids[kept], self.special[kept], self.separators[kept], inputs)


def repeated_random(subject: Subject, length: int | None = None, draws: int = 10, seed: int = 0) -> Passages:
    """`draws` sequences of `length` random tokens (default: LENGTH, or what fits) written twice.

    No token is drawn twice for one copy, as long as the vocabulary has enough of them.
    """
    tokens = subject.reader.tokens()
    ordinary = torch.tensor([id_ for id_ in range(len(tokens.names)) if id_ not in tokens.special])
    if len(ordinary) < SHORTEST:
        raise UserError(f"{subject.name} knows {len(ordinary)} tokens: expected at least {SHORTEST} to draw from.")
    length = copy_length(tokens, len(ordinary), length)
    generator = torch.Generator().manual_seed(seed)
    notes = []
    if length <= len(ordinary):
        rows = [torch.randperm(len(ordinary), generator=generator)[:length] for _ in range(draws)]
    else:
        notes.append(f"the vocabulary has only {len(ordinary)} tokens, so that some occur twice in a copy.")
        rows = [torch.randint(len(ordinary), (length,), generator=generator) for _ in range(draws)]
    copies = ordinary[torch.stack(rows)]  # (B, L)
    return _framed("random tokens", tokens, copies.repeat(1, 2), notes)


def copy_length(tokens: Tokens, ordinary: int, length: int | None) -> int:
    """The number of random tokens in a copy; two copies and the marks around them must fit into the context."""
    most = (tokens.longest - len(tokens.before) - len(tokens.after)) // 2
    if most < SHORTEST:
        raise UserError(f"a context of {tokens.longest} tokens is too short for two copies of {SHORTEST} tokens.")
    if length is None:
        return max(SHORTEST, min(LENGTH, most, ordinary))
    if not SHORTEST <= length <= most:
        raise UserError(f"--length {length} is not possible here: give {SHORTEST} to {most}, half of the context.")
    return length


def passages_of(subject: Subject, text: str, length: int | None = None, draws: int = 10) -> Passages:
    """At most `draws` passages of 2·`length` tokens, evenly spaced over the text; a shorter text is one passage."""
    tokens = subject.reader.tokens()
    ids = torch.tensor(tokens.encode(text), dtype=torch.long)
    if len(ids) < 2 * SHORTEST:
        raise UserError(f"the text has {len(ids)} tokens: expected at least {2 * SHORTEST}.")
    size = min(2 * copy_length(tokens, len(tokens.names), length), len(ids))
    blocks = ids[: len(ids) // size * size].view(-1, size)
    count = min(draws, len(blocks))
    few = f"the text has {count} passages of {size} tokens, fewer than {draws} draws."
    return _framed("text", tokens, blocks[torch.arange(count) * len(blocks) // count], [few] if count < draws else [])


def _framed(source: str, tokens: Tokens, rows: Tensor, notes: list[str]) -> Passages:
    """The rows (B, N) with the model's marks around them."""
    before, after = (
        torch.tensor(marks, dtype=torch.long).expand(len(rows), -1) for marks in (tokens.before, tokens.after)
    )
    ids = torch.cat([before, rows, after], 1)  # (B, T)
    special = torch.isin(ids, torch.tensor(sorted(tokens.special), dtype=torch.long))
    ends = torch.tensor([id_ for id_, name in enumerate(tokens.names) if is_separator(name)], dtype=torch.long)
    separators = torch.isin(ids, ends)
    separators[:, ids.shape[1] - len(tokens.after) :] = True
    return Passages(source, ids, special, separators, tokens.inputs(ids), notes)


def is_separator(token: str) -> bool:
    """Whether a token is punctuation or the end of a line."""
    text = token.lstrip(WORD_STARTS).removeprefix("##").replace("Ċ", "\n")  # Ċ: the newline of GPT-2
    return bool(text) and all(c == "\n" or unicodedata.category(c).startswith("P") for c in text)
