"""What the course provides beside A2S2: texts to train on, and a runner that trains a small GPT with some attention.

The documents are blocks of eight lines of tiny Shakespeare, from the folder named by ATTNLAB_DATA, or else the texts of
the lab's synthetic world; one in ten is held out. The GPT, its loop and its optimizer are the lab's.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import torch
import torch.nn.functional as F

import attnlab as lab
from attnlab.base.randomness import seed_everything
from attnlab.config import MachineSection, OptimizerSection, ScheduleSection, TrainingSection
from attnlab.data.batching import IGNORE, Batches, BatchPlan
from attnlab.data.sequences import CorpusExamples, NextTokenExamples
from attnlab.data.text.reading import read_corpus
from attnlab.data.tokenizers.vocabulary import Vocabulary
from attnlab.data.world.world import World, WorldSpec
from attnlab.models.generate import generate
from attnlab.models.gpt import GPT
from attnlab.training.callbacks import Callback, LogLine, TrainState
from attnlab.training.loop import Environment, Learner, Plan, Trainer
from attnlab.training.objectives import NextToken, mean_loss
from attnlab.training.optimizers import Schedule, make_optimizer
from attnlab.training.setup import make_accelerator, resolve

RARE = 3
"""Words that occur less often than this in the training documents are unknown."""


@dataclass(frozen=True)
class Texts:
    """Documents to train on and documents held out, as numbers."""

    source: str
    vocabulary: Vocabulary
    training: NextTokenExamples
    held_out: NextTokenExamples
    kept: list[str]
    """The held-out documents as text."""

    def facts(self) -> dict[str, object]:
        return {
            "text": self.source,
            "tokens": self.vocabulary.level,
            "vocabulary": len(self.vocabulary),
            "unknown": self.vocabulary.unknown_share("\n".join(self.kept)),
            "training": len(self.training.lengths),
            "held_out": len(self.held_out.lengths),
        }


def read_texts(tokens: str, context: int, quick: bool) -> Texts:
    """The texts as words or characters, in sequences of at most `context` tokens; `quick`: a few of them."""
    source, texts = _documents(quick)
    seen = [text for n, text in enumerate(texts) if n % 10]
    kept = texts[::10][: 8 if quick else 128]
    vocabulary = Vocabulary.build(seen, tokens, RARE if tokens == "words" and not quick else 1)

    def examples(part: list[str]) -> NextTokenExamples:
        encoded = [vocabulary.encode(text) for text in part]
        return NextTokenExamples([CorpusExamples(encoded, vocabulary, context, ["causal"], seed=0)], vocabulary.pad)

    return Texts(source, vocabulary, examples(seen), examples(kept), kept)


def _documents(quick: bool) -> tuple[str, list[str]]:
    play = Path(os.environ.get("ATTNLAB_DATA", "")) / "shakespeare" / "input.txt"
    if not play.is_file():
        return "the lab's synthetic world", World(WorldSpec(people=40 if quick else 2000, places=20)).corpus()
    lines = read_corpus(play)
    return "tiny Shakespeare", ["\n".join(lines[n : n + 8]) for n in range(0, 400 if quick else len(lines), 8)]


@dataclass
class Curve(Callback):
    """The training loss of every step, and the loss on the held-out documents at every evaluation."""

    training: list[float] = field(default_factory=list)
    validation: list[tuple[int, float]] = field(default_factory=list)

    def on_log(self, state: TrainState, line: LogLine) -> None:
        self.training.append(round(line.loss, 5))

    def on_evaluate(self, state: TrainState, values: dict[str, float], best: bool) -> None:
        self.validation.append((state.step, round(values["loss"], 5)))


def train(gpt: lab.GPT, texts: Texts, seed: int, steps: int, batch: int, rate: float) -> tuple[GPT, Curve]:
    """This GPT after so many steps of AdamW; the seed decides its first weights and the order of texts."""
    seed_everything(seed)
    model, curve = gpt.build(len(texts.vocabulary)), Curve()
    batches = Batches(texts.training, BatchPlan(texts.training.lengths, batch, seed=seed))
    evaluate = mean_loss(Batches(texts.held_out, BatchPlan(texts.held_out.lengths)), "cpu")
    settings = TrainingSection(steps=steps, evaluate_every=f"{max(1, steps // 20)} steps", log_every=1, seed=seed)
    schedule = Schedule(ScheduleSection(warmup_ratio=0.1), steps)
    machine = resolve(MachineSection(device="cpu", precision="fp32", threads="auto"))
    Trainer(
        Learner(model, NextToken(), batches, evaluate),
        Plan(make_optimizer(model, OptimizerSection(lr=rate)), schedule, settings),
        Environment(make_accelerator(machine), callbacks=[curve]),
    ).fit()
    return model.eval(), curve


@torch.no_grad()
def loss_with_another_future(model: GPT, texts: Texts) -> float:
    """The mean loss on the held-out documents when what follows a token is taken from the document before."""
    batch = texts.held_out.collate(range(len(texts.held_out.lengths)), epoch=0)
    tokens, targets = batch["tokens"], batch["targets"]  # (B, T)
    other = tokens.roll(1, dims=0)
    total = 0.0
    for t in range(tokens.shape[1]):
        wanted = torch.zeros_like(tokens, dtype=torch.bool)
        wanted[:, t] = targets[:, t] != IGNORE
        mixed = torch.cat([tokens[:, : t + 1], other[:, t + 1 :]], dim=1)
        total += float(F.cross_entropy(model(mixed, wanted=wanted), targets[wanted], reduction="sum"))
    return total / int((targets != IGNORE).sum())


@torch.no_grad()
def loss_as_they_come(model: GPT, texts: Texts) -> float:
    """The mean loss on the held-out documents when the model reads them token by token, so that nothing follows."""
    batch = texts.held_out.collate(range(len(texts.held_out.lengths)), epoch=0)
    tokens, targets, cache = batch["tokens"], batch["targets"], model.new_cache()
    total = 0.0
    for t in range(tokens.shape[1]):
        logits = model(tokens[:, t : t + 1], None, cache)[:, 0]  # (B, V)
        total += float(F.cross_entropy(logits, targets[:, t], ignore_index=IGNORE, reduction="sum"))
    return total / int((targets != IGNORE).sum())


def continuation(model: GPT, texts: Texts, given: int = 8, tokens: int = 60) -> str:
    """The first tokens of a held-out document, and what the model writes after them."""
    prompt = texts.vocabulary.encode(texts.kept[0])[:given]
    room = min(tokens, model.shape.context - given)
    [drawn] = generate(model, [prompt], room, temperature=0.8, generator=torch.Generator().manual_seed(0))
    return f"{texts.vocabulary.decode(prompt)} | {texts.vocabulary.decode(drawn.tokens)}"
