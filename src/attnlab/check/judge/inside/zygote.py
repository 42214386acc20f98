"""The process from which the keeper of every file is forked: it has torch, and nothing that a person must not see."""

from __future__ import annotations

import json
import os
import signal
import socket

from . import system
from .confine import Confinement
from .keeper import keep
from .limits import Limits

ORDER_BYTES = 2**16


def run(orders: socket.socket) -> None:
    """Fork a keeper for each order until the judge closes the socket. Never returns."""
    os.setsid()
    system.hide_memory()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # ended keepers vanish by themselves
    while True:
        order, descriptors, _, _ = socket.recv_fds(orders, ORDER_BYTES, 2)
        if not order:
            os._exit(0)
        channel, control = descriptors
        if not os.fork():
            try:
                orders.close()
                keep(_confinement(order), channel, socket.socket(fileno=control))
            finally:
                os._exit(0)
        os.close(channel)
        os.close(control)


def _confinement(order: bytes) -> Confinement:
    values = json.loads(order)
    return Confinement(**{**values, "limits": Limits(**values["limits"])})
