# %% [markdown]
# # A character-level language model
#
# Train a small GPT to predict the next character of a text, then let it write. The text can be anything: Shakespeare's
# plays (`shakespeare/input.txt` in the folder named by `ATTNLAB_DATA`), the assignment's `wiki.txt`, or a file of your
# own: `TEXT=mine.txt python play_char.py`.
#
# The model and the trainer are those of the assignment, in `../src`.

# %%
import os
import random
import sys
from pathlib import Path

import torch
from torch.utils.data import Dataset

import attnlab as lab
from attnlab.base.files import read_text
from attnlab.base.interrupts import one_sentence

HERE = Path(__file__).parent if "__file__" in globals() else Path.cwd()
sys.path.insert(0, str(HERE.parent / "src"))

from dataset import CharacterDataset  # noqa: E402
from model import GPT, GPTConfig  # noqa: E402
from trainer import Trainer, TrainerConfig  # noqa: E402

# %% [markdown]
# ## The text
#
# A block is `block_size` characters from anywhere in the text; the targets are the same characters one position later.
# Number 0 is reserved for padding, which the loss ignores, so the characters begin at 2, after MASK.

# %%
QUICK = bool(os.environ.get("ATTNLAB_QUICK"))  # seconds instead of minutes, to check that it runs
SHAKESPEARE = Path(os.environ.get("ATTNLAB_DATA", ""), "shakespeare", "input.txt")
PATH = Path(os.environ.get("TEXT") or (SHAKESPEARE if SHAKESPEARE.is_file() else HERE.parent / "wiki.txt"))
with one_sentence():  # a file that cannot be read ends the script with what is wrong and what to do
    TEXT = read_text(PATH)


class CharDataset(CharacterDataset):
    """Blocks of a text: every one begins where the one before ends, shifted by a random number of characters."""

    def __init__(self, text: str, block_size: int) -> None:
        super().__init__([self.PAD_CHAR, self.MASK_CHAR, *sorted(set(text))], block_size)
        self.numbers = torch.tensor(self.encode(text))

    def __len__(self) -> int:
        return max(1, (len(self.numbers) - 1) // self.block_size)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        length = self.block_size - 1
        latest = max(0, len(self.numbers) - length - 1)
        start = min(latest, index * self.block_size + random.randrange(self.block_size))
        return self.numbers[start : start + length], self.numbers[start + 1 : start + length + 1]


block_size = 32 if QUICK else 128
dataset = CharDataset(TEXT[:20_000] if QUICK else TEXT, block_size)
assert isinstance(dataset, Dataset)
print(f"{PATH.name}: {len(dataset.numbers):,} characters, {dataset.vocab_size} different ones, {len(dataset):,} blocks")

# %% [markdown]
# ## Training
#
# `Trainer` leaves a run folder with its curves in `runs/`; Ctrl-C stops it, and `attnlab runs` lists it.

# %%
torch.manual_seed(0)
config = (
    GPTConfig(dataset.vocab_size, block_size, n_layer=1, n_head=2, n_embd=32)
    if QUICK
    else (GPTConfig(dataset.vocab_size, block_size, n_layer=4, n_head=4, n_embd=128, rotary=True))
)
model = GPT(config)
settings = TrainerConfig(
    max_epochs=1 if QUICK else 2,
    batch_size=16,
    learning_rate=2e-3,
    matrix_rate=0.02,
    lr_decay=True,
    optimizer="muon",
    decay="wsd",
    pieces=1,
)
folder = Trainer(model, dataset, None, settings, label="play_char").train()
lab.load(folder)  # shows itself in a notebook: its state, its size and its curve

# %% [markdown]
# ## Writing
#
# Read the text so far, draw the next character from the model's distribution, append it, repeat. `temperature` below 1
# makes likely characters likelier; `top_k` leaves only the k most likely ones to draw from.


# %%
@torch.no_grad()
def sample(prompt: str, steps: int, temperature: float = 1.0, top_k: int | None = None, seed: int = 0) -> str:
    generator = torch.Generator().manual_seed(seed)
    numbers = dataset.encode(prompt)
    device = next(model.parameters()).device
    model.eval()
    for _ in range(steps):
        window = torch.tensor([numbers[-(block_size - 1) :]], device=device)  # at most as long as the model can read
        logits = model(window)[0][0, -1].cpu() / temperature
        logits[:2] = -torch.inf  # PAD and MASK are not text
        if top_k is not None:
            logits[logits < logits.topk(min(top_k, len(logits))).values[-1]] = -torch.inf
        numbers.append(int(torch.multinomial(logits.softmax(-1), 1, generator=generator)))
    return dataset.decode(numbers)


start = TEXT[: TEXT.index("\n")] if "\n" in TEXT[:100] else TEXT[:20]
print(sample(start, 60 if QUICK else 500, temperature=0.8, top_k=20))

# %% [markdown]
# ## The same with the lab
#
# A few hundred steps of the lab's GPT on the same text, and what it writes after the same words.

# %%
gpt = (
    lab.GPT(layers=1, heads=2, width=32, context=block_size)
    if QUICK
    else lab.GPT(layers=4, heads=4, width=128, context=block_size, positions="rotary")
)
sizes = {"steps": 20, "dev_share": 0.3} if QUICK else {"steps": 300}
run = lab.train(gpt, [TEXT[:20_000] if QUICK else TEXT], batch_size=16, lr=2e-3, **sizes)
print(run.sample(start, 60 if QUICK else 500, temperature=0.8, top_k=20))
