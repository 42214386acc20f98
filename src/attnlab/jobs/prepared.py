"""A job that is ready to run: its parts, with every 'auto' of its configuration resolved."""

from __future__ import annotations

from dataclasses import dataclass

from attnlab.base import console
from attnlab.base.console import clock
from attnlab.base.machine import facts
from attnlab.config.job import JobConfig
from attnlab.data.batching import Batches
from attnlab.jobs.job import Parts
from attnlab.training.batch_size import BatchSize
from attnlab.training.estimate import Estimate, estimate
from attnlab.training.scaling import memory_per_process


@dataclass
class Prepared:
    """A job with every 'auto' resolved, ready to run."""

    kind: str
    config: JobConfig
    parts: Parts
    batches: Batches
    steps: int
    changes: list[str]
    batch_size: BatchSize | None = None
    """The search for the batch size, if there was one."""

    def estimate(self) -> Estimate:
        """Time and memory of all steps, from a few; what is fitted at once has none."""
        if self.parts.fit is not None:
            return Estimate(0.0, sum(p.numel() * p.element_size() for p in self.parts.model.parameters()))
        return estimate(self.parts.model, self.parts.objective, self.batches, self.steps, self.config.machine.device)

    def describe(self) -> None:
        """Print the output of --dry-run."""
        import yaml

        total, learning = sizes(self.parts).values()
        cost = self.estimate()
        console.result(yaml.safe_dump(self.config.model_dump(mode="json"), sort_keys=False).rstrip())
        console.result(f"parameters: {total:,} in all, {learning:,} learning")
        examples = f"{len(self.parts.data.lengths):,} training examples"
        console.result(f"steps: {f'{self.steps:,}' if self.parts.fit is None else 'none, it is fitted'} ({examples})")
        machine = self.config.machine
        several = machine.processes > 1
        note = f"; in each of {machine.processes} processes, communication not counted" if several else ""
        reading = self.parts.reading_seconds
        read = f"{clock(reading)} for reading the texts once and " if reading else ""
        console.result(f"time: about {read}{clock(cost.seconds)} for the steps, evaluations not counted{note}")
        console.result(f"memory: about {cost.bytes / facts.GIB:.2f} GiB{' per process' if several else ''}")
        if several:
            fixed = {
                sharding: memory_per_process(total, learning, machine.processes, sharding) / facts.GIB
                for sharding in ("ddp", "fsdp")
            }
            console.result(
                f"of it, independent of the batch: {fixed['ddp']:.2f} GiB with --sharding ddp, "
                f"{fixed['fsdp']:.2f} GiB with fsdp"
            )
        console.result("dry run: nothing was written")


def sizes(parts: Parts) -> dict[str, int]:
    """Number of parameters in total, and of those that are trained."""
    return {
        "parameters": sum(p.numel() for p in (parts.whole or parts.model).parameters()),
        "learning_parameters": sum(p.numel() for p in parts.model.parameters() if p.requires_grad),
    }
