"""One of several processes that evaluate a model: alone, and sharing the batches. Writes what it found for its rank."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from pathlib import Path

import torch
from torch import nn

from attnlab.data.batching import Batches, BatchPlan
from attnlab.data.encoded import FeatureExamples
from attnlab.data.text.stream import Blocks
from attnlab.data.tokenizers.vocabulary import Vocabulary
from attnlab.distributed.team import joined, shared, sharing
from attnlab.models.asking import answer
from attnlab.models.gpt import GPT, preset
from attnlab.models.pretrained.classifier import predict
from attnlab.training.objectives import mean_loss


class Head(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head, self.passes = nn.Linear(7, 3), 0

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        self.passes += 1
        return self.head(features)


def failure(work: int) -> int:
    if work == 3:
        raise ValueError("three")
    return work


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    questions = [f"Where was {name} born?" for name in ("Ann", "Bob", "Cleo Dee", "Eve")] * 70
    vocabulary = Vocabulary.build(questions)
    gpt, head = GPT(preset("vanilla", len(vocabulary), layers=1, heads=2, width=16, context=64)).eval(), Head()
    blocks = Blocks.cut(torch.randint(3, len(vocabulary), (1601,)), 16)
    loss = mean_loss(Batches(blocks, BatchPlan(blocks.lengths, 8)), "cpu")
    features = FeatureExamples(torch.randn(500, 7), [0] * 500)

    def everything() -> dict[str, object]:
        with torch.no_grad():
            return {
                "loss": loss(gpt),
                "logits": predict(head, features, "cpu", 9).tolist(),
                "answers": [[reply.text, reply.confidence] for reply in answer(gpt, vocabulary, questions)],
            }

    alone = everything()
    passes, head.passes = head.passes, 0
    with joined("cpu") as team:
        with sharing(team, nullcontext):
            together = everything()
            try:
                shared(range(7), failure)
                error = ""
            except ValueError as raised:
                error = str(raised)
            except Exception as raised:  # in the others
                error = f"elsewhere: {raised}"
        content = {"same": together == alone, "passes": head.passes, "alone": passes, "error": error}
        (folder / f"{team.rank}.json").write_text(json.dumps(content), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
