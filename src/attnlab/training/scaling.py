"""The cost of a GPT on one device, on several, and on several machines, by formula. Free of torch.

    FLOPs per token   6N + 12·L·C·T       N weights in matrices; queries with keys, weights with values, three times
    fixed memory      16P, 20P or 16P/n   weights, gradients, Adam's two moments (4 each); DDP's buckets (4); FSDP
    activations       72·L·C + 12·V + 16·C bytes per token in fp32, measured with this lab
    bytes sent        2·(n-1)/n·4P (DDP: a ring all-reduce), 3·(n-1)/n·4P (FSDP: weights twice, gradients once)

Communication is assumed not to overlap with computing, so the times are upper bounds.
"""

from __future__ import annotations

from dataclasses import dataclass

GIB = 2**30
FP32 = 4
LEARNING = 3 * FP32  # bytes per learning parameter besides itself: its gradient, two moments
BUCKETS = FP32  # DDP keeps a second copy of the gradients, in the buckets it sends
PER_LAYER, PER_WORD, PER_TOKEN = 72, 12, 16  # bytes of activations: for L·C, V and C


def memory_per_process(parameters: int, learning: int, processes: int = 1, sharding: str = "ddp") -> float:
    """Bytes per process that do not depend on the batch: weights, gradients and moments of those that learn."""
    if sharding == "fsdp":
        return (FP32 * parameters + LEARNING * learning) / processes
    return FP32 * parameters + (LEARNING + (BUCKETS if processes > 1 else 0)) * learning


@dataclass(frozen=True)
class Size:
    """A GPT: V tokens, L layers, width C, context T, with its own head or a tied one."""

    name: str
    vocabulary: int
    layers: int
    width: int
    context: int
    tied: bool = True

    @property
    def matrices(self) -> int:
        """N: weights in matrices; 4C² in attention and 8C² in the MLP of each layer, and the head."""
        return 12 * self.layers * self.width**2 + self.vocabulary * self.width

    @property
    def parameters(self) -> int:
        """P: N and the embedding tables, without biases and norms."""
        tables = (0 if self.tied else self.vocabulary) + self.context
        return self.matrices + tables * self.width

    @property
    def flops(self) -> float:
        """Forward and backward, for one token in a full context; savings of a causal mask are not counted."""
        return 6 * self.matrices + 12 * self.layers * self.width * self.context

    @property
    def activations(self) -> int:
        """Bytes per token at the peak."""
        return PER_LAYER * self.layers * self.width + PER_WORD * self.vocabulary + PER_TOKEN * self.width

    def memory(self, tokens: int, processes: int = 1, sharding: str = "ddp") -> float:
        """Bytes on one device that holds `tokens` of a batch."""
        layer = (
            2 * FP32 * 12 * self.width**2 if sharding == "fsdp" else 0
        )  # the current layer and its gradient, unsharded
        return (
            memory_per_process(self.parameters, self.parameters, processes, sharding)
            + layer
            + tokens * self.activations
        )


@dataclass(frozen=True)
class Device:
    """A GPU: its memory and its peak FLOPs per second in bf16."""

    name: str
    gib: int
    peak: float

    @property
    def bytes(self) -> float:
        return 0.9 * self.gib * GIB  # the driver, libraries and fragmentation take the rest


@dataclass(frozen=True)
class Cluster:
    """`nodes` machines of `each` devices; bytes per second between devices of one, and between machines."""

    device: Device
    each: int
    nodes: int = 1
    inside: float = 200e9
    between: float = 12e9

    @property
    def count(self) -> int:
        return self.each * self.nodes

    @property
    def slowest(self) -> float:
        """A ring is as fast as its slowest link."""
        return self.between if self.nodes > 1 else self.inside


def bytes_sent(parameters: int, processes: int, sharding: str = "ddp") -> float:
    """Bytes that each process sends per step."""
    times = 3 if sharding == "fsdp" else 2
    return times * (processes - 1) / processes * FP32 * parameters


def step_seconds(
    size: Size, tokens: int, machines: Cluster, sharding: str = "ddp", share: float = 0.4
) -> tuple[float, float]:
    """Seconds of computing, at a `share` of the peak, and of communicating, for a batch of `tokens` in total."""
    computing = tokens * size.flops / (machines.count * machines.device.peak * share)
    return computing, bytes_sent(size.parameters, machines.count, sharding) / machines.slowest


def fewest_devices(size: Size, device: Device, most: int = 4096) -> int | None:
    """The number of devices FSDP needs for one full context on each; None if one layer does not fit."""
    count = 1
    while count <= most:
        sharding = "fsdp" if count > 1 else "ddp"
        if size.memory(size.context, count, sharding) <= device.bytes:
            return count
        count *= 2
    return None
