"""The warm process: it imports torch once, then splits into the zygote and the judge.

The zygote goes first. So it has torch, but not one line of the lab, no reference and no seed: those come to the judge
only when the two are apart.
"""

from __future__ import annotations

import importlib
import json
import os
import socket
import sys


def main() -> None:
    folders, package, service = json.loads(sys.argv[1])
    sys.path.extend(folder for folder in folders if folder not in sys.path)
    orders = _split()
    from . import system

    system.hide_memory()
    sys.path.insert(0, package)
    module, function = service.split(":")
    getattr(importlib.import_module(module), function)(orders)


def _split() -> socket.socket:
    """Fork the zygote; returns the judge's end of the socket for its orders."""
    import torch

    from . import zygote

    torch.set_num_threads(1)
    torch.backends.mps.is_available = lambda: False  # type: ignore[assignment]  # inputs are on the CPU: so be the masks
    packets = socket.SOCK_SEQPACKET if sys.platform.startswith("linux") else socket.SOCK_STREAM
    ours, theirs = socket.socketpair(socket.AF_UNIX, packets)
    if not os.fork():
        ours.close()
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)
        zygote.run(theirs)
    theirs.close()
    return ours
