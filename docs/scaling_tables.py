"""The tables of docs/scaling.md, from attnlab.training.scaling. `python docs/scaling_tables.py` renews them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from attnlab.training.scaling import GIB, Cluster, Device, Size, fewest_devices, step_seconds

PAGE = Path(__file__).with_name("scaling.md")
BLOCK = re.compile(r"(<!-- (sizes|fits|times) -->\n).*?(<!-- /\2 -->)", re.DOTALL)

SIZES = (
    Size("the birthplaces GPT", 256, 4, 256, 128, tied=False),
    Size("as large as BERT-base", 30_522, 12, 768, 512),
    Size("GPT-2 medium", 50_257, 24, 1024, 1024),
    Size("1.3 B", 50_257, 24, 2048, 2048),
    Size("6.7 B", 50_257, 32, 4096, 2048),
)
DEVICES = (
    Device("16 GB (T4)", 16, 65e12),
    Device("24 GB (RTX 4090)", 24, 165e12),
    Device("40 GB (A100)", 40, 312e12),
    Device("80 GB (A100)", 80, 312e12),
)
LARGE = DEVICES[-1]
PLACES = {"1 GPU": Cluster(LARGE, 1), "8 GPUs": Cluster(LARGE, 8), "4 machines of 8": Cluster(LARGE, 8, 4)}
TOKENS = 2**19  # a batch
CORPUS = 1e9


def sizes() -> str:
    lines = [
        "| model | parameters | GFLOPs per token | permanent, one process | with DDP | with FSDP, 8 processes "
        "| activations of a context |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for size in SIZES:
        memory = [size.memory(0) / GIB, size.memory(0, 8) / GIB, size.memory(0, 8, "fsdp") / GIB]
        shown = " | ".join(f"{value:.2f} GiB" for value in (*memory, size.context * size.activations / GIB))
        lines.append(f"| {size.name} | {size.parameters / 1e6:,.1f} M | {size.flops / 1e9:.3g} | {shown} |")
    return "\n".join(lines) + "\n"


def fits() -> str:
    lines = [
        "| model | " + " | ".join(device.name for device in DEVICES) + " |",
        "| --- | " + " | ".join("---:" for _ in DEVICES) + " |",
    ]
    for size in SIZES:
        cells = [_fit(size, device) for device in DEVICES]
        lines.append(f"| {size.name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _fit(size: Size, device: Device) -> str:
    if size.memory(size.context, 2) <= device.bytes:
        return "DDP"
    count = fewest_devices(size, device)
    return "one device only" if count == 1 else f"FSDP, {count} devices" if count else "no"


def times() -> str:
    lines = ["| model | | " + " | ".join(PLACES) + " |", "| --- | --- | " + " | ".join("---:" for _ in PLACES) + " |"]
    for size in SIZES:
        for sharding in ("ddp", "fsdp"):
            cells = [_time(size, machines, sharding) for machines in PLACES.values()]
            lines.append(f"| {size.name} | {sharding} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _time(size: Size, machines: Cluster, sharding: str) -> str:
    if machines.count == 1 and sharding == "fsdp":
        return ""
    if size.memory(size.context, machines.count, sharding) > machines.device.bytes:
        return "does not fit"
    computing, sending = step_seconds(size, TOKENS, machines, sharding)
    hours = (computing + sending) * CORPUS / TOKENS / 3600
    share = f", {sending / (computing + sending):.0%} of it sending" if machines.count > 1 else ""
    return (f"{hours:,.1f} h" if hours >= 1 else f"{60 * hours:.2g} min") + share


TABLES: dict[str, Callable[[], str]] = {"sizes": sizes, "fits": fits, "times": times}


def renewed(page: str) -> str:
    """The page with its tables as they should be."""
    return BLOCK.sub(lambda match: match[1] + TABLES[match[2]]() + match[3], page)


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
