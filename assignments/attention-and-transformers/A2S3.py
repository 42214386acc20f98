# %% [markdown]
# # Part 3: Fine-tuning a pretrained encoder on SST-2 (A2S3)
#
# The six steps of the course's notebook with every line of training visible: a `Dataset`, a `DataLoader`,
# `zero_grad`, `backward`, `step`. The same by one command of the lab: `python classification.py --experiment
# optimizers`.
#
# The course fine-tunes `roberta-base`. Here the encoder is all-MiniLM-L6-v2 (`minilm`), which comes as a package and is
# a sixth of the size; `MODEL=roberta-base` uses the course's from the hub, `MODEL=path/to/folder` a local one.
#
# Data: SST-2 from `ATTNLAB_DATA/sst2`, or else the lab's 600 embedded sentences. With `ATTNLAB_QUICK=1` everything runs
# in seconds on a few sentences and only shows that it runs. The numbers for the answers are printed by this run.

# %% [markdown]
# ## Step 0: Preparation

# %%
import os
from collections.abc import Iterable
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from attnlab.base.randomness import seed_everything
from attnlab.data.tasks.catalog import load_labelled
from attnlab.data.tasks.labelled import LabelledText
from attnlab.models.pretrained.load import load_classifier
from attnlab.report import figures
from attnlab.stats.intervals import Proportion
from attnlab.training.setup import resolve_device

QUICK = os.environ.get("ATTNLAB_QUICK") == "1"
MODEL = os.environ.get("MODEL", "minilm")
BATCH, RATE, EPOCHS = (8, 5e-5, 2) if QUICK else (64, 5e-5, 10)
SENTENCES = 16 if QUICK else None  # of each split; None: all
OUT = Path(os.environ.get("ATTNLAB_OUT", "runs/classification-a2s3"))
OUT.mkdir(parents=True, exist_ok=True)
DEVICE = resolve_device("auto")

task = "sst2" if (Path(os.environ.get("ATTNLAB_DATA", "")) / "sst2" / "train.tsv").is_file() else "sentiment"
data = load_labelled(task)
tokenizer = load_classifier(MODEL, data.classes).tokenizer

# %% [markdown]
# ## Step 1: Dataset and DataLoader

# %%


class SST2Dataset(Dataset[LabelledText]):
    """Sentences with their labels; tokenized when a batch is built."""

    def __init__(self, examples: list[LabelledText]) -> None:
        self.examples = examples

    def __len__(self) -> int:
        return len(self.examples)

    def __getitem__(self, index: int) -> LabelledText:
        return self.examples[index]

    @staticmethod
    def collate_fn(batch: list[LabelledText]) -> dict[str, Tensor]:
        texts = [example.text for example in batch]
        encoded = tokenizer(texts, padding=True, max_length=512, truncation=True, return_tensors="pt")
        return {
            "input_ids": encoded["input_ids"],
            "attention_mask": encoded["attention_mask"],
            "label_encoding": torch.tensor([example.label for example in batch]),
        }


# %% [markdown]
# **Q1.1** `padding=True` pads the sentences of a batch to the longest of them, so that they form one tensor.
# `truncation=True` cuts sentences longer than `max_length` tokens. `return_tensors="pt"` gives PyTorch tensors, not
# lists.
#
# **Q1.2** Padding to the longest *of the batch* computes less than padding to a fixed length: sentences here have about
# 20 tokens, not 512. These models have 512 positions: anything longer would be an error, which truncation
# prevents. Tensors can be passed to the model directly.

# %% [markdown]
# ## Step 2: Loading the data
#
# The labels of GLUE's test sentences were never published; where there is no test file, the lab keeps a part of the
# training sentences for the test, so that the choice (dev) and the report (test) use different sentences.

# %%
splits = {name: SST2Dataset(examples[:SENTENCES]) for name, examples in data.splits.items()}


def loader(split: str, size: int = BATCH) -> DataLoader[LabelledText]:
    return DataLoader(splits[split], size, shuffle=split == "train", collate_fn=SST2Dataset.collate_fn, num_workers=0)


print({name: len(examples) for name, examples in data.splits.items()})
first = next(iter(loader("train")))
for name, tensor in first.items():
    print(f"{name}: {tensor.dtype}, {tuple(tensor.shape)}")

# %% [markdown]
# **Q2.1** The lengths are printed above. The document's split is 6,920 / 872 / 1,821.
#
# **Q2.2** `batch_size`: sentences per step. `shuffle`: a new random order in each epoch. `collate_fn`: turns a list
# of examples into a batch; here it tokenizes and pads. `num_workers`: processes that prepare batches during training;
# 0 uses this process, which is enough where the tokenizer takes a hundredth of a step.
#
# **Q2.3** All three are tensors of whole numbers. `input_ids` (batch, longest): the tokens. `attention_mask`, the same
# shape: 1 for a token, 0 for padding, which is not attended to. `label_encoding` (batch,): 1 positive, 0 negative.

# %% [markdown]
# ## Step 3: Training and evaluation

# %%


def train_epoch(model: nn.Module, batches: Iterable[dict[str, Tensor]], optimizer: torch.optim.Optimizer) -> None:
    model.train()
    for batch in batches:
        logits = model(batch["input_ids"].to(DEVICE), batch["attention_mask"].to(DEVICE))
        loss = nn.functional.cross_entropy(logits, batch["label_encoding"].to(DEVICE))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def evaluation(model: nn.Module, batches: Iterable[dict[str, Tensor]]) -> tuple[float, float]:
    """Accuracy and loss over all the batches."""
    model.eval()
    right = loss = count = 0.0
    with torch.no_grad():
        for batch in batches:
            labels = batch["label_encoding"].to(DEVICE)
            logits = model(batch["input_ids"].to(DEVICE), batch["attention_mask"].to(DEVICE))
            right += float((logits.argmax(-1) == labels).sum())
            loss += float(nn.functional.cross_entropy(logits, labels, reduction="sum"))
            count += len(labels)
    return right / count, loss / count


# %% [markdown]
# **Q3.1** `zero_grad` clears the gradients of the previous batch: PyTorch would add new ones to them. `backward`
# computes the gradient of the loss for every trained parameter. `step` updates the parameters with it.
#
# **Q3.2** In training mode dropout is on and batch norms use the statistics of the batch; in evaluation mode
# neither holds, so the same sentence always gets the same answer. The mode changes layers, not gradients.
#
# **Q3.3** `no_grad` keeps no record of the computation: there will be no backward, so the activations of all layers
# need not be stored. Less memory and time, same numbers.

# %% [markdown]
# ## Step 4: The main loop

# %%
OPTIMIZERS = {"AdamW": torch.optim.AdamW, "SGD": torch.optim.SGD, "Adagrad": torch.optim.Adagrad}
Curve = list[dict[str, float]]


def fine_tune(
    optimizer: str = "AdamW", rate: float = RATE, size: int = BATCH, epochs: int = EPOCHS
) -> tuple[nn.Module, Curve]:
    """A new head on the pretrained body, everything trained; both splits measured after every epoch."""
    seed_everything(0)
    model = load_classifier(MODEL, data.classes).model.to(DEVICE)
    make = OPTIMIZERS[optimizer]
    chosen = make(model.parameters(), lr=rate)
    curve: Curve = []
    best: dict[str, Tensor] = {}
    for _ in range(epochs):
        train_epoch(model, loader("train", size), chosen)
        values: dict[str, float] = {}
        for split in ("train", "dev"):
            values[f"{split} accuracy"], values[f"{split} loss"] = evaluation(model, loader(split))
        if not curve or values["dev accuracy"] > max(each["dev accuracy"] for each in curve):
            best = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        curve.append(values)
    model.load_state_dict(best)  # the best checkpoint on dev
    return model, curve


def draw(curves: dict[str, Curve], measure: str, file: str) -> None:
    lines = {
        f"{name}, {split}": ([float(n) for n in range(1, len(curve) + 1)], [e[f"{split} {measure}"] for e in curve])
        for name, curve in curves.items()
        for split in ("train", "dev")
    }
    shown = figures.curves(lines, f"Fine-tuning {MODEL}", "epoch", measure, percent=measure == "accuracy")
    figures.save(shown, OUT / file)


curves = {name: fine_tune(name)[1] for name in OPTIMIZERS}
for measure in ("accuracy", "loss"):
    draw({"AdamW": curves["AdamW"]}, measure, f"adamw-{measure}.png")
draw(curves, "accuracy", "optimizers.png")


def best_epoch(curve: Curve, measure: str) -> int:
    return max(range(len(curve)), key=lambda n: curve[n][measure]) + 1


for split in ("train", "dev"):
    print(f"AdamW, best epoch on {split}: {best_epoch(curves['AdamW'], f'{split} accuracy')}")
for name, curve in curves.items():
    highest = max(each["dev accuracy"] for each in curve)
    print(
        f"{name:8} last epoch: train {curve[-1]['train accuracy']:.1%}, dev {curve[-1]['dev accuracy']:.1%}; "
        f"best dev {highest:.1%}"
    )

# %% [markdown]
# **Q4.1** `adamw-accuracy.png` and `adamw-loss.png`.
#
# **Q4.2** The best epochs are printed above. Training accuracy keeps rising: the sentences are seen again and again,
# and a model with millions of parameters can memorize them. Dev accuracy rises in the first epochs, then stays
# or falls a little, while its *loss* rises clearly: the model becomes more and more confident in its wrong answers.
# That is overfitting; the checkpoint to keep is the one that was best on dev.
#
# **Q4.3** The order of training matters, because every step depends on the previous ones: in a fixed order the last
# sentences would always have the most influence, and batches would always be the same. Evaluation changes nothing, so
# its order cannot matter.
#
# **Q4.4** An optimizer turns gradients into changes of the parameters: how far, in which direction, given earlier
# steps, and with which scale for each parameter.
#
# **Q4.5** `optimizers.png`, and the lines above. SGD's step is the rate times the gradient. At 5e-5 that is almost
# nothing: it stays where it started, and needs a rate about a thousand times as high. AdamW and Adagrad divide by the
# size of past gradients, so a step is about as large as the rate itself. AdamW divides by a moving average, which
# forgets; Adagrad by the sum of all, so its steps become smaller and smaller: it overfits later, and learns more
# slowly the longer it runs.

# %% [markdown]
# Q4.6: the learning rate matters most, and by factors; so a grid of factors, at two batch sizes. The number of epochs
# costs nothing extra: each curve contains it. The choice is made on dev.

# %%
rates, sizes = ([RATE], [BATCH]) if QUICK else ([1e-5, 2e-5, 5e-5, 1e-4], [16, 64])
top = -1.0
for tried_rate in rates:
    for tried_size in sizes:
        model, tried = fine_tune(rate=tried_rate, size=tried_size)
        score = max(each["dev accuracy"] for each in tried)
        print(f"rate {tried_rate:g}, batch {tried_size}: dev {score:.1%}")
        if score > top:
            top, rate, size, final, curve = score, tried_rate, tried_size, model, tried
epoch = best_epoch(curve, "dev accuracy")
print(
    f"chosen: learning rate {rate:g}, batch {size}, {epoch} epochs; "
    f"train {curve[epoch - 1]['train accuracy']:.1%}, dev {curve[epoch - 1]['dev accuracy']:.1%}"
)

# %% [markdown]
# **Q4.6** A grid, because two settings with a few values each are few enough to try all, every run can be compared with
# its neighbours, and nothing depends on chance. With more settings a random search would need fewer runs.
#
# **Q4.7** The line above.

# %% [markdown]
# ## Step 5: Testing the final model
#
# Once, with the chosen model. The interval covers other sentences, not other seeds.

# %%
count = len(splits["test"])
result = Proportion(round(evaluation(final, loader("test"))[0] * count), count)
labels = [example.label for example in splits["test"].examples]
print(f"test accuracy {result}; always the same answer {Proportion(max(map(labels.count, set(labels))), count)}")

# %% [markdown]
# **Q5.1** The line above. It is usually lower than the dev accuracy: of several models the one with the best, partly
# lucky, dev accuracy was chosen.
