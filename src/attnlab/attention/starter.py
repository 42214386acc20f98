"""A template for a user's own attention, with a test next to it."""

from __future__ import annotations

import keyword
import re
from pathlib import Path

from attnlab.base.errors import UserError

MIXER = '''"""{title}: say here what it does and why it might help.

Try it:
    attnlab audit {file}
    pytest {test}
In a model: give the path of this file wherever the name of an attention is expected.
"""

import math

import torch
from torch import nn

from attnlab.attention import MixerShape


class {title}(nn.Module):
    """Maps tokens (B, T, C) to (B, T, C). B sequences of T tokens, C numbers per token.

    This start is causal attention with one difference from the standard: the keys are the tokens
    themselves. Change what you like; the audit reports what breaks.
    """

    # Shown by `attnlab audit`. `time` and `memory` are promises: powers of T that the audit checks.
    equation = "softmax(Q xᵀ / √D) V"
    paper = "mine"
    time = 2
    memory = 2

    def __init__(self, shape: MixerShape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.causal = shape.causal
        self.queries = nn.Linear(shape.width, shape.width)
        self.values = nn.Linear(shape.width, shape.width)
        self.dropout = nn.Dropout(shape.dropout)
        # A part named `output` starts at zero in a model with zero_init.
        self.output = nn.Linear(shape.width, shape.width)

    def forward(self, x: torch.Tensor, padding: torch.Tensor | None = None) -> torch.Tensor:
        """padding (B, T) is True for real tokens, which come first in each row.

        Without an argument `cache`, decoding runs the whole sequence for each new token: correct, but slow.
        """
        T = x.shape[1]
        queries, keys, values = self.split(self.queries(x)), self.split(x), self.split(self.values(x))
        scores = queries @ keys.transpose(-1, -2) / math.sqrt(queries.shape[-1])  # (B, H, T, T)
        # Before the softmax, with -∞: a zero after it would leave the future in the normaliser.
        if self.causal:
            future = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)
            scores = scores.masked_fill(future, float("-inf"))
        if padding is not None:
            scores = scores.masked_fill(~padding[:, None, None, :], float("-inf"))
        mixed = self.dropout(scores.softmax(-1)) @ values  # (B, H, T, D)
        return self.output(mixed.transpose(1, 2).flatten(2))

    def split(self, x: torch.Tensor) -> torch.Tensor:
        """(B, T, C) to (B, H, T, D)."""
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)
'''

TEST = '''"""What must hold for {file}. Run with: pytest {test}"""

from pathlib import Path

import pytest
import torch

from attnlab.attention import MixerShape, build_mixer
from attnlab.attention.audit import audit
from attnlab.base.trust import allow_named
from attnlab.models.gpt import GPT, GPTShape

FILE = str(Path(__file__).with_name("{file}"))
allow_named(FILE)  # this test is where its author says that it may be executed


def test_it_passes_the_audit():
    report = audit(FILE, cost=False, half=False)
    assert report.passed, [finding for finding in report.findings if finding.passed is False]


@pytest.mark.parametrize("causal", [True, False])
def test_a_single_token_sees_itself_only(causal):
    mixer = build_mixer(FILE, MixerShape(width=8, heads=2, context=4, causal=causal))
    x = torch.randn(1, 1, 8)
    expected = mixer.inner.output(mixer.inner.values(x))
    torch.testing.assert_close(mixer(x), expected)


def test_a_model_with_it_learns():
    torch.manual_seed(0)
    model = GPT(GPTShape(vocabulary=7, layers=1, heads=2, width=16, context=8, dropout=0.0, attention=FILE))
    text = torch.tensor([[1, 5, 2, 6, 0, 3]])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(60):
        loss = torch.nn.functional.cross_entropy(model(text[:, :-1])[0], text[0, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 0.2
'''


def write_starter(name: str, folder: Path) -> tuple[Path, Path]:
    """Write NAME.py and test_NAME.py into the folder; existing files are never overwritten."""
    stem = name.removesuffix(".py").replace("-", "_")
    if not stem.isidentifier() or keyword.iskeyword(stem):
        raise UserError(f"{name!r} cannot be the name of a Python file: use letters, digits and _, as in my_idea.")
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}: create it first, or give another with --folder.")
    mixer, test = folder / f"{stem}.py", folder / f"test_{stem}.py"
    for path in (mixer, test):
        if path.exists():
            raise UserError(f"{path} exists already: choose another name, or remove it first.")
    title = "".join(word[0].upper() + word[1:] for word in re.split("_+", stem) if word) or "Mine"
    if not title[0].isalpha():
        title = f"Mixer{title}"
    for path, text in ((mixer, MIXER), (test, TEST)):
        path.write_text(text.format(title=title, file=mixer.name, test=test.name), encoding="utf-8")
    return mixer, test
