# %% [markdown]
# # Part 2: A mini Transformer
#
# First attention from its pieces, equal to PyTorch's; then a small GPT with it, and an experiment: what
# happens when the causal mask sets weights to 0 *after* the softmax instead of scores to −∞ before it?
#
# Full size: 3 seeds of 400 steps for each mask, about 10 minutes of one core. With `ATTNLAB_QUICK=1` everything runs
# in seconds, at a size that only shows that it runs. Text: tiny Shakespeare from the folder named by
# `ATTNLAB_DATA`, or else the lab's synthetic world.

# %%
import math
import os
import statistics
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlab.attention import VARIANTS, Cache, MixerShape, Variant
from attnlab.attention.audit.run import audit
from attnlab.attention.pieces import (
    apply_causal_mask,
    attn_scaled,
    attn_softmax,
    compute_outputs,
    init_qkv_proj,
    make_causal_mask,
    merge_heads,
    pairwise_similarities,
    split_heads_qkv,
)
from attnlab.base.randomness import seed_everything
from attnlab.check.reference import torch_attention
from attnlab.config import MachineSection, OptimizerSection, ScheduleSection, TrainingSection
from attnlab.data.batching import IGNORE, Batches, BatchPlan
from attnlab.data.sequences import CorpusExamples, NextTokenExamples
from attnlab.data.text.reading import read_corpus
from attnlab.data.tokenizers.vocabulary import Vocabulary
from attnlab.data.world.world import World, WorldSpec
from attnlab.models.generate import generate
from attnlab.models.gpt import GPT, GPTShape
from attnlab.report import figures
from attnlab.training.callbacks import Callback, LogLine, TrainState
from attnlab.training.loop import Environment, Learner, Plan, Trainer
from attnlab.training.objectives import NextToken, mean_loss
from attnlab.training.optimizers import Schedule, make_optimizer
from attnlab.training.setup import make_accelerator, resolve

QUICK = os.environ.get("ATTNLAB_QUICK") == "1"
SEEDS, STEPS, BATCH = (1, 6, 4) if QUICK else (3, 400, 32)
LAYERS, HEADS, WIDTH, CONTEXT = (1, 2, 16, 24) if QUICK else (2, 4, 128, 100)
OUT = Path(os.environ.get("ATTNLAB_OUT", "runs/attention-assignment"))
OUT.mkdir(parents=True, exist_ok=True)
MACHINE = resolve(MachineSection(device="cpu", precision="fp32", threads=1 if QUICK else "auto"))

# %% [markdown]
# ## 2.1 Attention from scratch
#
# The steps are one line each in [`attention/pieces.py`](../../src/attnlab/attention/pieces.py). Combined:

# %%


def self_attention(Q: Tensor, K: Tensor, V: Tensor, n_heads: int = 1, causal: bool = True) -> Tensor:
    """Three (B, T, C) → (B, T, C)."""
    n_tok, n_embd = Q.shape[-2:]
    Q, K, V = split_heads_qkv(Q, K, V, n_heads)  # (B, H, T, D)
    A = attn_scaled(pairwise_similarities(Q, K), n_embd, n_heads)  # (B, H, T, T)
    if causal:
        A = apply_causal_mask(make_causal_mask(n_tok), A)
    return merge_heads(compute_outputs(attn_softmax(A), V))


# %% [markdown]
# The three tests, against `torch.nn.functional.multi_head_attention_forward`. `attnlab check FILE` checks
# your own file with these names function by function, and names the likely mistake.

# %%
torch.manual_seed(0)
Q, K, V = (torch.randn(3, 10, 32) for _ in "qkv")
for test, n_heads, causal in (("1, plain", 1, False), ("2, causal", 1, True), ("3, with heads", 4, True)):
    error = (self_attention(Q, K, V, n_heads, causal) - torch_attention(Q, K, V, n_heads, causal)).abs().max()
    print(f"test {test}: largest difference {error:.1g}")
    assert error < 1e-5

# %% [markdown]
# ## 2.2 An experiment: where the mask is applied
#
# The same with the mask after the softmax, as the assignment suggests:

# %%


def naive_self_attention(Q: Tensor, K: Tensor, V: Tensor, n_heads: int = 1) -> Tensor:
    """Weights of later tokens are set to 0 after they have been counted in the sum."""
    n_tok, n_embd = Q.shape[-2:]
    Q, K, V = split_heads_qkv(Q, K, V, n_heads)
    A = attn_softmax(attn_scaled(pairwise_similarities(Q, K), n_embd, n_heads))
    return merge_heads(compute_outputs(A * make_causal_mask(n_tok), V))


# %% [markdown]
# To use them in the lab's GPT they become *mixers*, which map (B, T, C) to (B, T, C), each with a name:

# %%


class Mine(nn.Module):
    attend = staticmethod(self_attention)

    def __init__(self, shape: MixerShape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.queries, self.keys, self.values = init_qkv_proj(shape.width)
        self.output = nn.Linear(shape.width, shape.width)

    def forward(self, x: Tensor, padding: Tensor | None = None, cache: Cache | None = None) -> Tensor:
        if cache is not None:  # decoding: run the whole sequence again for each new token
            return cache.replay(self.forward, x, padding)
        # Padding comes after the real tokens, which do not look ahead: the causal mask is enough.
        return self.output(self.attend(self.queries(x), self.keys(x), self.values(x), self.heads))


class Naive(Mine):
    attend = staticmethod(naive_self_attention)


VARIANTS["mine"] = Variant("mine", Mine, bidirectional=False)
VARIANTS["naive"] = Variant("naive", Naive, bidirectional=False)

# %% [markdown]
# Before training: do they pass the audit?

# %%
for name in ("mine", "naive"):
    report = audit(name, cost=False, half=False)
    print(f"{name}: {'passes all checks' if report.passed else 'fails'}")
    for finding in report.findings:
        if finding.passed is False:
            print(f"  {finding.check}: {finding.evidence}")
    assert report.sees_future == (name == "naive")

# %% [markdown]
# ### The data
#
# Documents are blocks of eight lines; one in ten is held out. Characters are tokens, and a sequence has at most 100
# of them.

# %%


def documents() -> list[str]:
    play = Path(os.environ.get("ATTNLAB_DATA", "")) / "shakespeare" / "input.txt"
    if not play.is_file():
        return World(WorldSpec(people=40 if QUICK else 2000, places=20)).corpus()
    lines = read_corpus(play)
    return ["\n".join(lines[n : n + 8]) for n in range(0, 400 if QUICK else len(lines), 8)]


texts = documents()
vocabulary = Vocabulary.build(texts)
encoded = [vocabulary.encode(text) for text in texts]


def examples(part: list[list[int]]) -> NextTokenExamples:
    return NextTokenExamples([CorpusExamples(part, vocabulary, CONTEXT, ["causal"], seed=0)], vocabulary.pad)


training = examples([tokens for n, tokens in enumerate(encoded) if n % 10])
held_out = examples(encoded[::10][: 8 if QUICK else 128])
print(f"{len(training.lengths)} documents to train on, {len(held_out.lengths)} held out")

# %% [markdown]
# ### Training
#
# The same data in the same order from the same initial weights; only the mask differs.

# %%


class Curve(Callback):
    """The training loss of every step, and the loss on the held-out documents at every evaluation."""

    def __init__(self) -> None:
        self.training: list[float] = []
        self.validation: list[tuple[int, float]] = []

    def on_log(self, state: TrainState, line: LogLine) -> None:
        self.training.append(line.loss)

    def on_evaluate(self, state: TrainState, values: dict[str, float], best: bool) -> None:
        self.validation.append((state.step, values["loss"]))


def train(attention: str, seed: int) -> tuple[GPT, Curve]:
    seed_everything(seed)
    shape = GPTShape(len(vocabulary), LAYERS, HEADS, WIDTH, CONTEXT, attention, dropout=0.0)
    model, curve = GPT(shape), Curve()
    batches = Batches(training, BatchPlan(training.lengths, BATCH, seed=seed))
    evaluate = mean_loss(Batches(held_out, BatchPlan(held_out.lengths)), "cpu")
    settings = TrainingSection(steps=STEPS, evaluate_every=f"{max(1, STEPS // 8)} steps", log_every=1, seed=seed)
    Trainer(
        Learner(model, NextToken(), batches, evaluate),
        Plan(
            make_optimizer(model, OptimizerSection(lr=2e-3)),
            Schedule(ScheduleSection(warmup_ratio=0.1), STEPS),
            settings,
        ),
        Environment(make_accelerator(MACHINE), callbacks=[curve]),
    ).fit()
    return model.eval(), curve


runs = {name: [train(name, seed) for seed in range(SEEDS)] for name in ("mine", "naive")}

# %% [markdown]
# ### The same texts, one character at a time
#
# A validation loss is computed with the whole text in the model at once. In *use*, the model has only the characters
# before. The loss of every character when the text is fed one character at a time:

# %%


@torch.no_grad()
def loss_as_they_come(model: GPT) -> float:
    batch = held_out.collate(range(len(held_out.lengths)), epoch=0)
    tokens, targets, cache = batch["tokens"], batch["targets"], model.new_cache()
    logits = torch.cat([model(tokens[:, t : t + 1], None, cache) for t in range(tokens.shape[1])], dim=1)  # (B, T, V)
    return float(F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORE))


def mean_and_range(losses: list[float]) -> str:
    """The mean, and the range over seeds."""
    return f"{statistics.mean(losses):.3f} ({min(losses):.3f} to {max(losses):.3f})"


results = {}
for name, trained in runs.items():
    tail = max(1, STEPS // 10)
    results[name] = {
        "training, last tenth": [statistics.mean(curve.training[-tail:]) for _, curve in trained],
        "validation, all at once": [curve.validation[-1][1] for _, curve in trained],
        "validation, as they come": [loss_as_they_come(model) for model, _ in trained],
    }
    for measure, losses in results[name].items():
        print(
            f"{name:6} {measure:26} loss {mean_and_range(losses)}, perplexity {math.exp(statistics.mean(losses)):.2f}"
        )

# %%
lines = {
    f"{name}, {split}": curve
    for name, [(_, first), *_] in runs.items()
    for split, curve in (
        ("training", (list(range(1, STEPS + 1)), first.training)),
        ("validation", tuple(zip(*first.validation, strict=True))),
    )
}
figures.save(figures.curves(lines, "The mask before and after the softmax", "step", "loss"), OUT / "masks.png")

# %% [markdown]
# ### What it means
#
# The model with the correct mask has the same loss both ways: it never looks ahead. The naive one has two losses, and
# the one in the usual table is not comparable: the sum that normalises its weights runs over the whole text, so the
# printed "validation" loss is that of a model with information about the next character. One character at a
# time, there is no such hint, and every weight is larger than in training. See
# [the answers](report.md#2-2).
#
# At full size, on Shakespeare, the mean and the range of three seeds:
#
# | mask | validation loss, all at once | as they come | perplexity, all at once | as they come |
# | --- | --- | --- | --- | --- |
# | before the softmax | 2.107 (2.082 to 2.125) | 2.107 (2.082 to 2.125) | 8.22 | 8.22 |
# | after the softmax | 1.996 (1.940 to 2.055) | 3.692 (3.520 to 3.919) | 7.36 | 40.11 |
#
# The naive mask wins the usual table and writes nothing readable.
#
# Text generated by both:

# %%
for name, [(model, _), *_] in runs.items():
    prompt = vocabulary.encode(texts[0][:8])
    [answer] = generate(model, [prompt], CONTEXT - 10, temperature=0.8, generator=torch.Generator().manual_seed(0))
    print(f"--- {name}\n{vocabulary.decode(prompt)}|{vocabulary.decode(answer.tokens)}")

# %% [markdown]
# The other suggestions of the assignment (another similarity, shared projections, positions, networks for Q, K, V, AFT,
# Fastformer) are variants with a name: `attnlab attention` lists them, `attnlab audit NAME` checks one, and
# `attnlab compare --attention vanilla,NAME --corpus FILE --seeds 3` compares them as above.
