"""A model cut up among the processes (FSDP), and put together again.

Each process keeps 1/n of the weights, gradients and optimizer states. A layer is gathered when it is its turn and let
go after it. What is evaluated, saved and loaded is the whole model: a checkpoint does not depend on how it was made.

torch's modules for it take half a second to import, so functions import them where several processes need them.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import Tensor, nn


def shard(model: nn.Module, device: str) -> nn.Module:
    """A copy of `model` cut up among the processes, layer by layer."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    cut = copy.deepcopy(model).to(device)
    mesh = init_device_mesh(torch.device(device).type, (dist.get_world_size(),))
    for layer in _layers(cut):
        fully_shard(layer, mesh=mesh)
    fully_shard(cut, mesh=mesh)
    return cut


def _layers(module: nn.Module) -> Iterator[nn.Module]:
    """The members of the outermost lists of modules: a Transformer's blocks."""
    for child in module.children():
        yield from child if isinstance(child, nn.ModuleList) else _layers(child)


def in_one_piece(tensor: Tensor) -> Tensor:
    """All processes must ask together."""
    if not dist.is_initialized():
        return tensor  # one process has no tensors that are cut up
    from torch.distributed.tensor import DTensor

    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def cut_like(tensor: Tensor, other: Tensor) -> Tensor:
    """A whole tensor cut up as another of its shape is, if that is."""
    if not dist.is_initialized():
        return tensor
    from torch.distributed.tensor import DTensor, distribute_tensor

    if isinstance(other, DTensor) and tensor.shape == other.shape:
        return distribute_tensor(tensor.to(other.device), other.device_mesh, other.placements)
    return tensor


@torch.no_grad()
def put_together(cut: nn.Module, whole: nn.Module) -> None:
    """The weights of a model that is cut up, into one that is not."""
    for mine, other in zip(_tensors(whole), _tensors(cut), strict=True):
        mine.copy_(in_one_piece(other))


@torch.no_grad()
def cut_up(whole: nn.Module, cut: nn.Module) -> None:
    """And back."""
    for mine, other in zip(_tensors(whole), _tensors(cut), strict=True):
        other.copy_(cut_like(mine, other))


def _tensors(model: nn.Module) -> Iterator[Tensor]:
    yield from model.parameters()
    yield from model.buffers()


@contextmanager
def not_yet_averaged(losses: nn.Module) -> Iterator[None]:
    """Inside, gradients are added up here."""
    from torch.distributed.fsdp import FSDPModule

    roots = [module for module in losses.modules() if isinstance(module, FSDPModule)][:1]
    for root in roots:
        root.set_requires_gradient_sync(False)
    try:
        yield
    finally:
        for root in roots:
            root.set_requires_gradient_sync(True)
