"""A small GPT with random weights as something to look into."""

from __future__ import annotations

import torch

from attnlab.data.tokenizers.vocabulary import Vocabulary
from attnlab.interpret.subject import Subject, gpt_subject
from attnlab.models.gpt import GPT, GPTShape

TEXT = "the cat sat on the mat"


def subject(attention: str = "vanilla", **changes: object) -> Subject:
    torch.manual_seed(0)
    vocabulary = Vocabulary.build([TEXT])
    shape = GPTShape(len(vocabulary), layers=2, heads=4, width=16, context=32, attention=attention, **changes)  # type: ignore[arg-type]
    model = GPT(shape)
    for parameter in model.parameters():  # away from the small initial weights, so that no two heads agree by chance
        parameter.data.add_(torch.randn_like(parameter) * 0.2)
    return gpt_subject(model, vocabulary, attention)
