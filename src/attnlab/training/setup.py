"""Device, precision and threads as asked, or what 'auto' means here; and `accelerate` set up for them."""

from __future__ import annotations

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, GradientState, PartialState

from attnlab.base.errors import UserError
from attnlab.base.machine import facts, precision
from attnlab.base.machine.facts import resolve_device
from attnlab.config import MachineSection
from attnlab.distributed.team import current
from attnlab.training.compiling import why_not

MIXED = {"fp32": "no", "bf16": "bf16", "fp16": "fp16"}


def resolve(asked: MachineSection) -> MachineSection:
    """The same settings with every 'auto' replaced by what this machine can do.

    `compile: auto` stays, and `precision: auto` on a CPU that is fast in bf16: both depend on the model, which
    `choose_compile` and `choose_precision` measure.
    """
    device = resolve_device(asked.device)
    chosen = _auto_precision(device) if asked.precision == "auto" else asked.precision
    if asked.precision != "auto" and asked.precision != "fp32":
        _must_work(device, asked.precision)
    team = current()
    processes = asked.processes if "processes" in asked.model_fields_set else team.count
    sharing = team.local_count if team.count > 1 else processes
    threads = max(1, facts.cores() // sharing) if asked.threads == "auto" else asked.threads
    if asked.compile == "on" and (reason := why_not(device)):
        raise UserError(f"--compile: torch.compile does not work on this machine ({reason}): use off or auto.")
    chosen_too = {"device": device, "precision": chosen, "threads": threads, "processes": processes}
    return MachineSection.model_validate(asked.model_dump() | chosen_too)


def _auto_precision(device: str) -> str:
    fastest = precision.choose(device)
    return "auto" if device == "cpu" and fastest != "fp32" else fastest


SHARDABLE = ("adamw", "adam", "sgd")  # whose states are like the weights, element by element
PER_CORE = 4  # processes on a CPU beyond which a machine is brought down rather than used


def must_be_together(machine: MachineSection) -> None:
    """One sentence if a run is not made in as many processes as it is meant for."""
    there = current().count
    if machine.processes != there:
        raise UserError(
            f"this is meant for {machine.processes} processes and would be made in {there}: --processes is for a "
            "command that trains one run, and a run goes on in as many as it began with."
        )


def must_be_shardable(machine: MachineSection, optimizer: str) -> None:
    """One sentence if the model cannot be cut up among the processes."""
    if machine.sharding == "ddp":
        return
    if machine.processes == 1:
        raise UserError("--sharding fsdp cuts the model up among processes: give their number with --processes.")
    if optimizer not in SHARDABLE:
        raise UserError(f"--sharding fsdp works with {', '.join(SHARDABLE)}, not with {optimizer}: use ddp.")
    if machine.compile != "off":
        raise UserError("--sharding fsdp does not go with --compile: leave one of them out.")


def must_be_possible(machine: MachineSection) -> None:
    """One sentence before so many processes are started on this machine."""
    device, asked, cores = resolve_device(machine.device), machine.processes, facts.cores()
    if device == "cuda" and asked > torch.cuda.device_count():
        raise UserError(f"--processes {asked}: there are {torch.cuda.device_count()} GPUs, and each process needs one.")
    if device == "cpu" and asked > PER_CORE * cores:
        raise UserError(f"--processes {asked} would choke this machine: it has {cores} cores, give it up to {cores}.")
    if device not in ("cuda", "cpu"):
        raise UserError(f"--processes {asked} on {device}: several processes need --device cpu, cuda or auto.")


def _must_work(device: str, asked: str) -> None:
    if device == "cpu" and asked == "fp16":
        raise UserError("--precision: fp16 on a CPU has no loss scaling: use fp32, bf16 or auto.")
    trial = next(trial for trial in precision.trials(device) if trial.precision == asked)
    if trial.gflops is None:
        raise UserError(f"--precision: {asked} does not work on this machine ({trial.reason}): use auto.")


def make_accelerator(machine: MachineSection) -> Accelerator:
    """`accelerate` for resolved settings. Its global state is made anew: runs in one process can differ."""
    torch.set_num_threads(int(machine.threads))
    for shared in (AcceleratorState, GradientState, PartialState):
        shared._reset_state()
    if machine.device.startswith("cuda:"):
        torch.cuda.set_device(machine.device)
    return Accelerator(cpu=machine.device == "cpu", mixed_precision=MIXED[machine.precision])
