# %% [markdown]
# # Part 3: Fine-tuning a pretrained encoder on SST-2
#
# The six steps of the course's notebook with every line of training visible: a `Dataset`, a `DataLoader`,
# `zero_grad`, `backward`, `step`. The questions are answered, with the values measured here, in
# [report.md](report.md#3).
#
# The course fine-tunes `roberta-base`. Here the encoder is all-MiniLM-L6-v2 (`minilm`), which comes as a package and is
# a sixth of the size; `MODEL=roberta-base` uses the course's from the hub, `MODEL=path/to/folder` a local one.
#
# Data: SST-2 from `ATTNLAB_DATA/sst2`, or else the lab's 600 embedded sentences. With `ATTNLAB_QUICK=1` everything runs
# in seconds on a few sentences and only shows that it runs. Hyperparameters are the document's; environment variables
# change them, and choose among the experiments (see [README.md](README.md), which also states the cost).

# %% [markdown]
# ## Step 0: Preparation

# %%
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
import transformers
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset
from transformers import AutoModelForSequenceClassification, AutoTokenizer

import attnlab as lab
from attnlab.base.files import read_json
from attnlab.base.randomness import seed_everything
from attnlab.data.tasks.catalog import draw, load_labelled
from attnlab.data.tasks.labelled import LabelledText
from attnlab.models.pretrained.source import model_folder
from attnlab.stats.intervals import Proportion
from attnlab.training.setup import resolve_device
from record import FIGURES, QUICK, RESULTS, choices, count, numbers, positive, save, setting
from write_up.pictures import draw_curves

MODEL = setting("MODEL", "minilm", str)
BATCH_SIZE = setting("BATCH_SIZE", 64, count, quick=8)
LEARNING_RATE = setting("LEARNING_RATE", 5e-5, positive)
NUM_EPOCHS = setting("NUM_EPOCHS", 20, count, quick=2)
SENTENCES = setting("TRAIN_SENTENCES", 0, count, quick=16)  # 0: all
SEEDS = setting("SEEDS", [0], numbers)
KNOWN = ("AdamW", "SGD", "SGD-1000x", "Adagrad", "search", "final", "lab")
EXPERIMENTS = choices("EXPERIMENTS", KNOWN, ",".join(KNOWN))
DEVICE = resolve_device("auto")
transformers.logging.set_verbosity_error()  # it reports the new head, which is intended
transformers.logging.disable_progress_bar()

task = "sst2" if (Path(os.environ.get("ATTNLAB_DATA", "")) / "sst2" / "train.tsv").is_file() else "sentiment"
data = load_labelled(task)
folder = model_folder(MODEL)
tokenizer = AutoTokenizer.from_pretrained(folder)
print(f"{MODEL} on {task}{'' if task == 'sst2' else ', because ATTNLAB_DATA names no folder with sst2/train.tsv'}")
for note in data.notes:
    print(note)

# %% [markdown]
# ## Step 1: Dataset and DataLoader (Q1.1, Q1.2)

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
# ## Step 2: Loading the data (Q2.1 to Q2.3)
#
# A labelled `sst2/test.tsv` is the test set. Where there is none (the labels of GLUE's test sentences were never
# published), the lab keeps a tenth of the training sentences for the test, and the note above states it. Dev and test
# are sorted by length: their order cannot matter, and a batch of similar lengths has little padding.

# %%


def chosen_examples(split: str) -> list[LabelledText]:
    examples = data.splits[split]
    if split == "train":
        return draw(examples, SENTENCES, seed=0) if SENTENCES else examples  # the same share of each class
    return sorted(examples[: 16 if QUICK else None], key=lambda example: len(example.text))


splits = {split: SST2Dataset(chosen_examples(split)) for split in data.splits}


def loader(split: str, size: int = BATCH_SIZE) -> DataLoader[LabelledText]:
    return DataLoader(splits[split], size, shuffle=split == "train", collate_fn=SST2Dataset.collate_fn, num_workers=0)


lengths = {split: len(examples) for split, examples in data.splits.items()}
seed_everything(0)
first = {name: [str(part.dtype), list(part.shape)] for name, part in next(iter(loader("train"))).items()}
print(f"sentences: {lengths}; used: { {split: len(dataset) for split, dataset in splits.items()} }")
for name, (kind, shape) in first.items():
    print(f"{name}: {kind}, {shape}")

# %% [markdown]
# ## Step 3: Training and evaluation (Q3.1 to Q3.3)

# %%


def train(model: nn.Module, batches: Iterable[dict[str, Tensor]], optimizer: torch.optim.Optimizer) -> dict[str, float]:
    """One epoch; accuracy and loss of the sentences as they were learned, with dropout, before each step."""
    model.train()
    right = total = seen = 0.0
    for batch in batches:
        labels = batch["label_encoding"].to(DEVICE)
        logits = model(batch["input_ids"].to(DEVICE), batch["attention_mask"].to(DEVICE)).logits
        loss = nn.functional.cross_entropy(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        right += float((logits.argmax(-1) == labels).sum())
        total += float(loss.detach()) * len(labels)
        seen += len(labels)
    return {"accuracy": right / seen, "loss": total / seen}


def evaluation(model: nn.Module, batches: Iterable[dict[str, Tensor]]) -> dict[str, float]:
    """Accuracy and loss over all the batches."""
    model.eval()
    right = total = seen = 0.0
    with torch.no_grad():
        for batch in batches:
            labels = batch["label_encoding"].to(DEVICE)
            logits = model(batch["input_ids"].to(DEVICE), batch["attention_mask"].to(DEVICE)).logits
            right += float((logits.argmax(-1) == labels).sum())
            total += float(nn.functional.cross_entropy(logits, labels, reduction="sum"))
            seen += len(labels)
    return {"accuracy": right / seen, "loss": total / seen}


# %% [markdown]
# ## Step 4: The main loop
#
# AdamW as in the document; ε is 1e-8 for all that have one.

# %%
OPTIMIZERS = {
    "AdamW": lambda weights, rate: torch.optim.AdamW(weights, rate, eps=1e-8),
    "SGD": lambda weights, rate: torch.optim.SGD(weights, rate),
    "Adagrad": lambda weights, rate: torch.optim.Adagrad(weights, rate, eps=1e-8),
}


@dataclass
class Training:
    """How a model was trained, and accuracy and loss of train and dev after every epoch."""

    settings: Mapping[str, object]
    task: str
    notes: tuple[str, ...]
    sentences: dict[str, int]
    curve: list[dict[str, dict[str, float]]] = field(default_factory=list)
    best: int = 0  # the epoch with the best dev accuracy
    seconds: float = 0.0

    def dev_accuracy(self) -> float:
        return self.curve[self.best - 1]["dev"]["accuracy"] if self.best else 0.0


def fine_tune(
    seed: int, optimizer: str = "AdamW", rate: float = LEARNING_RATE, size: int = BATCH_SIZE, epochs: int = NUM_EPOCHS
) -> tuple[nn.Module, Training]:
    """A new head on the pretrained body, everything trained: the best checkpoint on dev, and how it was trained."""
    start = time.perf_counter()
    settings = {"model": MODEL, "optimizer": optimizer, "rate": rate, "batch": size, "epochs": epochs, "seed": seed}
    training = Training(settings, task, data.notes, {split: len(dataset) for split, dataset in splits.items()})
    seed_everything(seed)
    model = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=len(data.classes)).to(DEVICE)
    chosen = OPTIMIZERS[optimizer](model.parameters(), rate)
    for epoch in range(1, epochs + 1):
        values = {"train": train(model, loader("train", size), chosen), "dev": evaluation(model, loader("dev"))}
        training.curve.append(values)
        if epoch == 1 or values["dev"]["accuracy"] > training.dev_accuracy():
            training.best = epoch
            best_weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        training.seconds = time.perf_counter() - start
        shown = ", ".join(f"{split} {measures['accuracy']:.1%}" for split, measures in values.items())
        print(f"{optimizer} {rate:g}, batch {size}, seed {seed}, epoch {epoch}: {shown} ({training.seconds:.0f} s)")
    model.load_state_dict(best_weights)
    return model, training


# %% [markdown]
# Q4.1, Q4.2: the curves with the default hyperparameters. `train` is measured during the epoch, `dev` after it.

# %%
if "AdamW" in EXPERIMENTS:
    trainings = []
    for seed in SEEDS:
        trainings.append(asdict(fine_tune(seed)[1]))
        save(f"A2S3-AdamW-seed{seed}", {**trainings[-1], "lengths": lengths, "first_batch": first})
    for measure in ("accuracy", "loss"):
        draw_curves(trainings, measure, FIGURES / f"9-AdamW-{measure}.png")

# %% [markdown]
# Q4.5: two other optimizers with the same hyperparameters, and SGD with a rate that suits it: its step is the gradient
# times the rate, while AdamW's is about the rate itself.

# %%
for name, optimizer, factor in (("SGD", "SGD", 1), ("SGD-1000x", "SGD", 1000), ("Adagrad", "Adagrad", 1)):
    if name in EXPERIMENTS:
        training = asdict(fine_tune(SEEDS[0], optimizer, LEARNING_RATE * factor)[1])
        save(f"A2S3-{name}-seed{SEEDS[0]}", training)
        draw_curves([training], "accuracy", FIGURES / f"10-{name}-accuracy.png")

# %% [markdown]
# Q4.6: the learning rate matters most, and by factors; so a grid of factors, at two batch sizes. The number of epochs
# costs nothing extra: without a schedule, a training of five epochs begins with the training of four. The choice is
# made on dev.

# %%
if "search" in EXPERIMENTS:
    rates, sizes = ([LEARNING_RATE], [BATCH_SIZE]) if QUICK else ([1e-5, 2e-5, 5e-5, 1e-4], [16, 64])
    cells = [fine_tune(SEEDS[0], rate=rate, size=size)[1] for size in sizes for rate in rates]
    cells.sort(key=Training.dev_accuracy, reverse=True)
    save("A2S3-search", {"cells": [asdict(cell) for cell in cells]})

# %% [markdown]
# Q4.7 and step 5, Q5.1: a model with the chosen setting, and its accuracy on the test set, measured once per seed.
# The interval covers other sentences, not other seeds.

# %%
if "final" in EXPERIMENTS:
    found = RESULTS / "A2S3-search.json"
    if not found.is_file():
        raise lab.UserError(f"{found} does not exist: run EXPERIMENTS=search first, with the same ATTNLAB_OUT.")
    best = read_json(found)["cells"][0]
    labels = [example.label for example in splits["test"].examples]
    for seed in SEEDS:
        model, trained = fine_tune(seed, "AdamW", best["settings"]["rate"], best["settings"]["batch"], best["best"])
        scores = {split: evaluation(model, loader(split)) for split in splits}
        tested = Proportion(round(scores["test"]["accuracy"] * len(labels)), len(labels))
        constant = Proportion(max(map(labels.count, set(labels))), len(labels))
        print(f"test accuracy {tested}; always the same answer {constant}")
        counts = {"test_right": tested.right, "test_count": tested.count, "constant_right": constant.right}
        save(f"A2S3-final-seed{seed}", {**asdict(trained), "scores": scores, **counts})

# %% [markdown]
# The same with the loop inside the lab, for one epoch: an estimator of scikit-learn, whose fit leaves a run folder with
# its curves and a report.

# %%
if "lab" in EXPERIMENTS:

    def texts_and_labels(split: str) -> tuple[list[str], list[int]]:
        return [example.text for example in splits[split].examples], [
            example.label for example in splits[split].examples
        ]

    classifier = lab.Classifier(
        MODEL, epochs=1, lr=LEARNING_RATE, batch_size=BATCH_SIZE, random_state=SEEDS[0], runs=RESULTS.parent / "runs"
    )
    classifier.fit(*texts_and_labels("train"), validation=texts_and_labels("dev"))
    print(f"lab.Classifier, one epoch: dev accuracy {classifier.score(*texts_and_labels('dev')):.1%}")
