"""`lab.GPT(...)`: the description of a GPT. A run builds the model once it knows the vocabulary; so can you."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnlab.api.arguments import checked
from attnlab.base import trust
from attnlab.base.errors import UserError
from attnlab.config.gpt import GPTSection
from attnlab.config.recipe import check
from attnlab.config.sections import Section

if TYPE_CHECKING:
    from torch import nn

    from attnlab.attention import MixerShape
    from attnlab.models.gpt import GPT as BuiltGPT

    Attention = str | Path | nn.Module | type[nn.Module] | Callable[[MixerShape], nn.Module]


class _Model(Section):
    model: GPTSection = GPTSection()


class GPT:
    """The settings of a GPT, those of `attnlab language --help-all` under "Model"; what is not given has its default.

    `attention` is the name of a variant, the path of a .py file, a class built from a `MixerShape`, a function that
    builds a module from one, or a module: every layer then gets a copy of it, whose linear layers start anew.

    >>> GPT(attention="linear", layers=2, width=64)
    GPT(attention='linear', layers=2, width=64)
    """

    def __init__(self, attention: Attention | None = None, **settings: Any) -> None:
        given = settings if attention is None else {"attention": attention_name(attention), **settings}
        self.section = check(_Model, {"model": given}).model
        self.given = {name: getattr(self.section, name) for name in given}
        """The settings that were given: they replace those of a recipe."""
        if attention is not None:
            from attnlab.attention import find_variant

            find_variant(self.section.attention)  # raises for an unknown one

    @checked
    def build(self, vocabulary_size: int) -> BuiltGPT:
        """A new model for tokens below `vocabulary_size`: (B, T) to logits (B, T, V)."""
        from attnlab.models.gpt import GPT as Built
        from attnlab.models.gpt import shape_of

        return Built(shape_of(self.section, vocabulary_size))

    def __repr__(self) -> str:
        return f"GPT({', '.join(f'{name}={value!r}' for name, value in self.given.items())})"


def attention_name(attention: Attention) -> str:
    """The name of what was handed in; a file is allowed by naming it, a class has a name in this process."""
    if isinstance(attention, str | Path):
        trust.allow_named(attention)
        return str(attention)
    from torch import nn

    from attnlab.attention.registry import Copies, hand_in

    if isinstance(attention, nn.Module):
        return hand_in(Copies(attention))
    if not callable(attention):
        raise UserError(f"attention: expected a name, a .py file, a class or a module, got {type(attention).__name__}.")
    return hand_in(attention)
