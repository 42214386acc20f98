"""The arithmetic of larger machines, against torch's own counter and against what is measured here."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from attnlab.models.gpt import GPT, preset
from attnlab.training.estimate import measure_peak
from attnlab.training.scaling import Cluster, Device, Size, bytes_sent, fewest_devices, memory_per_process, step_seconds

SMALL = Size("small", vocabulary=64, layers=2, width=64, context=64, tied=False)
LARGER = Size("larger", vocabulary=512, layers=4, width=128, context=128, tied=False)


def gpt(size: Size, dropout: float) -> GPT:
    return GPT(
        preset(
            "vanilla",
            size.vocabulary,
            layers=size.layers,
            width=size.width,
            context=size.context,
            heads=2,
            dropout=0.1,
            attention_dropout=dropout,
        )
    )


def step(model: nn.Module, size: Size, batch: int) -> None:
    tokens = torch.randint(size.vocabulary, (batch, size.context))
    F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()).backward()


@pytest.mark.parametrize("size", [SMALL, LARGER])
def test_flops_are_those_that_torch_counts(size: Size) -> None:
    model = gpt(size, dropout=0.1)  # with dropout inside, attention is plain products, which the counter knows
    with FlopCounterMode(display=False) as counter:
        step(model, size, batch=2)
    assert counter.get_total_flops() / (2 * size.context) == pytest.approx(size.flops, rel=1e-6)


@pytest.mark.parametrize("size", [SMALL, LARGER])
def test_parameters_are_those_of_the_model_without_biases_and_norms(size: Size) -> None:
    matrices = sum(weight.numel() for weight in gpt(size, 0.0).parameters() if weight.ndim == 2)
    assert matrices == size.parameters


@pytest.mark.parametrize("size", [SMALL, LARGER])
def test_activations_are_as_measured(size: Size) -> None:
    model = gpt(size, dropout=0.0)
    step(model, size, batch=1)  # the gradients are there
    with measure_peak("cpu") as peak:
        step(model, size, batch=4)
    assert peak.bytes / (4 * size.context) == pytest.approx(size.activations, rel=0.1)


def test_what_is_held_and_sent() -> None:
    assert (
        memory_per_process(100, 100) == 1600
        and memory_per_process(100, 100, 4) == 2000
        and memory_per_process(100, 100, 4, "fsdp") == 400
    )
    assert memory_per_process(100, 1) == 412  # an adapter: the frozen weights have neither gradient nor moments
    assert bytes_sent(100, 1) == 0 and bytes_sent(100, 2) == 400 and bytes_sent(100, 4, "fsdp") == 900


def test_more_devices_compute_faster_and_no_network_is_free() -> None:
    device = Device("any", 16, 1e14)
    alone, silent = step_seconds(LARGER, 1000, Cluster(device, 1))
    shared, talking = step_seconds(LARGER, 1000, Cluster(device, 4, nodes=2))
    assert silent == 0 and talking > 0 and shared == pytest.approx(alone / 8)


def test_the_fewest_devices_are_just_enough() -> None:
    device, size = Device("any", 24, 1e14), Size("1.3 B", 50_257, 24, 2048, 2048)
    count = fewest_devices(size, device)
    assert count is not None and count > 1
    assert size.memory(size.context, count, "fsdp") <= device.bytes < size.memory(size.context, count // 2, "fsdp")
