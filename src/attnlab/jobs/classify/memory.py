"""The memory that tuning a model needs, estimated before its weights are read: out of memory, a process is killed.

    weights + 3 × trained weights (gradients, two moments of Adam) + activations

The activations of a layer, which the backward pass needs, are about 34 numbers of half the usual size for each of a
token's C entries (Korthikanti et al. 2022, without the attention matrices, which are never stored whole).
"""

from __future__ import annotations

from typing import Any

import torch

from attnlab.base.errors import DoesNotFit
from attnlab.base.machine import facts
from attnlab.config.classify import ClassifyConfig
from attnlab.config.usual import FEW_ROWS, usual_batch
from attnlab.models.pretrained.load import import_transformers, load_config, quietly
from attnlab.models.pretrained.source import model_folder

FLOAT = 4  # bytes
ACTIVATIONS = 34 / 2  # numbers stored per layer for each entry of a token's vector
USUAL_TOKENS = 128  # where the limit follows from the texts, which are not read here
TRAINING_COPIES = 3  # gradient and two moments per trained weight


def parameters_of(config: ClassifyConfig) -> tuple[int, Any]:
    """The number of weights of the body, and its configuration; no weight is read."""
    transformers = import_transformers()
    folder = model_folder(config.model.name)
    with quietly():
        shape = load_config(transformers, folder)
        encoder_only = shape.is_encoder_decoder and config.model.head != "words"
        kind = transformers.AutoModelForTextEncoding if encoder_only else transformers.AutoModel
        with torch.device("meta"):
            body = kind.from_config(shape)
    return sum(weight.numel() for weight in body.parameters()), shape


def needed(config: ClassifyConfig, parameters: int, shape: Any) -> int:
    """Bytes at the peak of training, roughly."""
    method, batch = config.tuning.method, config.batch
    learning = parameters if method == "full" else 0  # other methods: too few to count
    added = config.tuning.length if method == "prompt" else 0
    most = getattr(shape, "max_position_embeddings", None) or USUAL_TOKENS
    length = min(config.data.max_tokens or USUAL_TOKENS, most)
    size = usual_batch(parameters, FEW_ROWS) if batch.size is None else batch.size
    examples = size if isinstance(size, int) else 1  # one at least, where the size is searched for
    positions = batch.tokens or examples * (length + added)  # a budget counts padding as well
    width = getattr(shape, "hidden_size", 0)
    layers = 0 if method == "head" else getattr(shape, "num_hidden_layers", 0)
    activations = ACTIVATIONS * positions * width * layers
    return int(FLOAT * (parameters + TRAINING_COPIES * learning + activations))


def must_fit(config: ClassifyConfig, need: int) -> None:
    """Raise if the needed memory is not free."""
    device = config.machine.device
    free = torch.cuda.mem_get_info(device)[0] if device.startswith("cuda") else facts.memory()[1]
    if need > free:
        raise DoesNotFit(
            f"it does not fit into memory: tuning {config.model.name} needs about {need / facts.GIB:.1f} GiB, "
            f"and {free / facts.GIB:.1f} GiB are free."
        )
