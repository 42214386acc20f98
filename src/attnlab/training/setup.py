"""Device, precision and threads as asked, or what 'auto' means here; and `accelerate` set up for them."""

from __future__ import annotations

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, GradientState, PartialState

from attnlab.config import MachineSection
from attnlab.errors import UserError
from attnlab.machine import facts, precision
from attnlab.machine.device import resolve_device
from attnlab.training.compiling import why_not

MIXED = {"fp32": "no", "bf16": "bf16", "fp16": "fp16"}


def resolve(asked: MachineSection) -> MachineSection:
    """The same settings with every 'auto' replaced by what this machine can do.

    `compile: auto` stays: what to say to it depends on the model and the length of the run.
    """
    device = resolve_device(asked.device)
    chosen = precision.choose(device) if asked.precision == "auto" else asked.precision
    if asked.precision != "auto" and asked.precision != "fp32":
        _must_work(device, asked.precision)
    threads = facts.cores() if asked.threads == "auto" else asked.threads
    if asked.compile == "on" and (reason := why_not(device)):
        raise UserError(f"--compile: torch.compile does not work on this machine ({reason}): use off or auto.")
    return MachineSection(device=device, precision=chosen, threads=threads, compile=asked.compile)  # type: ignore[arg-type]


def _must_work(device: str, asked: str) -> None:
    if device == "cpu" and asked == "fp16":
        raise UserError("--precision: fp16 on a CPU has no loss scaling: use fp32, bf16 or auto.")
    trial = next(trial for trial in precision.trials(device) if trial.precision == asked)
    if trial.gflops is None:
        raise UserError(f"--precision: {asked} does not work on this machine ({trial.reason}): use auto.")


def make_accelerator(machine: MachineSection) -> Accelerator:
    """`accelerate` for resolved settings. Its global state is made anew: runs in one process can differ."""
    torch.set_num_threads(int(machine.threads))
    if not torch.distributed.is_initialized():
        for shared in (AcceleratorState, GradientState, PartialState):
            shared._reset_state()
    if machine.device.startswith("cuda:"):
        torch.cuda.set_device(machine.device)
    return Accelerator(cpu=machine.device == "cpu", mixed_precision=MIXED[machine.precision])
