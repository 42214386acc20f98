"""Device, precision and threads, with 'auto' resolved for this machine; and `accelerate` configured for them."""

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

SHARDABLE = ("adamw", "adam", "sgd")  # optimizers with element-wise states
PER_CORE = 4  # more processes per core would make a machine unusable
MIXED = {"fp32": "no", "bf16": "bf16", "fp16": "fp16"}


def resolve(machine: MachineSection) -> MachineSection:
    """The same settings with every 'auto' resolved for this machine.

    `compile: auto` stays, and `precision: auto` on a CPU that is fast in bf16: both depend on the model, which
    `choose_compile` and `choose_precision` measure.
    """
    device = resolve_device(machine.device)
    chosen = _auto_precision(device) if machine.precision == "auto" else machine.precision
    if machine.precision != "auto" and machine.precision != "fp32":
        _must_work(device, machine.precision)
    team = current()
    processes = machine.processes if "processes" in machine.model_fields_set else team.count
    sharing = team.local_count if team.count > 1 else processes
    threads = min(facts.threads(), max(1, facts.cores() // sharing)) if machine.threads == "auto" else machine.threads
    if machine.compile == "on" and (reason := why_not(device)):
        raise UserError(f"--compile: torch.compile does not work on this machine ({reason}): use off or auto.")
    resolved = {"device": device, "precision": chosen, "threads": threads, "processes": processes}
    return MachineSection.model_validate(machine.model_dump() | resolved)


def _auto_precision(device: str) -> str:
    fastest = precision.choose(device)
    return "auto" if device == "cpu" and fastest != "fp32" else fastest


def must_be_together(machine: MachineSection) -> None:
    """Raise if the number of processes is not that of the run."""
    count = current().count
    if machine.processes != count:
        raise UserError(
            f"expected {machine.processes} processes, got {count}: --processes is for a command that trains one run, "
            "and a run resumes with the number of processes it started with."
        )


def must_be_shardable(machine: MachineSection, optimizer: str) -> None:
    """Raise if the model cannot be sharded across the processes."""
    if machine.sharding == "ddp":
        return
    if machine.processes == 1:
        raise UserError(
            "--sharding fsdp shards the model across processes: give the number of processes with --processes."
        )
    if optimizer not in SHARDABLE:
        raise UserError(f"--sharding fsdp works with {', '.join(SHARDABLE)}, not with {optimizer}: use ddp.")
    if machine.compile != "off":
        raise UserError("--sharding fsdp and --compile exclude each other: give only one.")


def must_be_possible(machine: MachineSection) -> None:
    """Raise before too many processes are started on this machine."""
    device, processes, cores = resolve_device(machine.device), machine.processes, facts.cores()
    if device == "cuda" and processes > torch.cuda.device_count():
        raise UserError(
            f"--processes {processes} is too many for {torch.cuda.device_count()} GPUs: each process needs one."
        )
    if device == "cpu" and processes > PER_CORE * cores:
        raise UserError(
            f"--processes {processes} is too many for this machine with {cores} cores: give at most {cores}."
        )
    if device not in ("cuda", "cpu"):
        raise UserError(f"--processes {processes} on {device}: several processes need --device cpu, cuda or auto.")


def _must_work(device: str, requested: str) -> None:
    if device == "cpu" and requested == "fp16":
        raise UserError("--precision: fp16 on a CPU has no loss scaling: use fp32, bf16 or auto.")
    trial = next(trial for trial in precision.trials(device) if trial.precision == requested)
    if trial.gflops is None:
        raise UserError(f"--precision: {requested} does not work on this machine ({trial.reason}): use auto.")


def make_accelerator(machine: MachineSection) -> Accelerator:
    """`accelerate` for resolved settings. Its global state is reset, because runs in one process can differ."""
    torch.set_num_threads(int(machine.threads))
    for shared in (AcceleratorState, GradientState, PartialState):
        shared._reset_state()
    if machine.device.startswith("cuda:"):
        torch.cuda.set_device(machine.device)
    return Accelerator(cpu=machine.device == "cpu", mixed_precision=MIXED[machine.precision])
