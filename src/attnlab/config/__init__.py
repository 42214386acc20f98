"""Configuration: typed sections, from a YAML recipe, overridden by flags, checked before anything runs."""

from attnlab.config.recipe import check, load, read_recipe
from attnlab.config.sections import (
    BatchSection,
    FilePath,
    MachineSection,
    OptimizerSection,
    ScheduleSection,
    Section,
    TrainingSection,
    option,
    split_list,
)

__all__ = [
    "BatchSection", "FilePath", "MachineSection", "OptimizerSection", "ScheduleSection", "Section", "TrainingSection",
    "check", "load", "option", "read_recipe", "split_list",
]  # fmt: skip
