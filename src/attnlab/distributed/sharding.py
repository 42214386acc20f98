"""A model sharded among the processes (FSDP), and gathered again.

Each process keeps 1/n of the weights, gradients and optimizer states. A layer is gathered before its use and released
after it. Evaluated, saved and loaded is the whole model: a checkpoint does not depend on the sharding.

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
    """A copy of `model`, sharded layer by layer."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    sharded = copy.deepcopy(model).to(device)
    mesh = init_device_mesh(torch.device(device).type, (dist.get_world_size(),))
    for layer in _layers(sharded):
        fully_shard(layer, mesh=mesh)
    fully_shard(sharded, mesh=mesh)
    return sharded


def _layers(module: nn.Module) -> Iterator[nn.Module]:
    """The members of the outermost lists of modules: a Transformer's blocks."""
    for child in module.children():
        yield from child if isinstance(child, nn.ModuleList) else _layers(child)


def full_tensor(tensor: Tensor) -> Tensor:
    """The whole of a sharded tensor; all processes must call this together."""
    if not dist.is_initialized():
        return tensor  # one process has no sharded tensors
    from torch.distributed.tensor import DTensor

    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def shard_like(tensor: Tensor, other: Tensor) -> Tensor:
    """A whole tensor, sharded like `other` if that is sharded and has its shape."""
    if not dist.is_initialized():
        return tensor
    from torch.distributed.tensor import DTensor, distribute_tensor

    if isinstance(other, DTensor) and tensor.shape == other.shape:
        return distribute_tensor(tensor.to(other.device), other.device_mesh, other.placements)
    return tensor


@torch.no_grad()
def gather_weights(sharded: nn.Module, whole: nn.Module) -> None:
    """Copy the weights of a sharded model into a whole one."""
    for target, source in zip(_tensors(whole), _tensors(sharded), strict=True):
        target.copy_(full_tensor(source))


@torch.no_grad()
def scatter_weights(whole: nn.Module, sharded: nn.Module) -> None:
    """Copy the weights of a whole model into a sharded one."""
    for source, target in zip(_tensors(whole), _tensors(sharded), strict=True):
        target.copy_(shard_like(source, target))


def _tensors(model: nn.Module) -> Iterator[Tensor]:
    yield from model.parameters()
    yield from model.buffers()


@contextmanager
def without_averaging(losses: nn.Module) -> Iterator[None]:
    """Inside, gradients are accumulated in this process and not averaged yet."""
    from torch.distributed.fsdp import FSDPModule

    roots = [module for module in losses.modules() if isinstance(module, FSDPModule)][:1]
    for root in roots:
        root.set_requires_gradient_sync(False)
    try:
        yield
    finally:
        for root in roots:
            root.set_requires_gradient_sync(True)
