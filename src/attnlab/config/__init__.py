"""Configuration: typed sections, from a YAML recipe, overridden by flags, checked before anything runs."""

from attnlab.config.recipe import check, find_setting, lay_over, leaves, load, read_recipe, value_of
from attnlab.config.sections import (
    BatchSection,
    FilePath,
    MachineSection,
    OptimizerSection,
    ScheduleSection,
    Section,
    StepsSection,
    TrainingSection,
    option,
    split_list,
)

__all__ = [
    "BatchSection",
    "FilePath",
    "MachineSection",
    "OptimizerSection",
    "ScheduleSection",
    "Section",
    "StepsSection",
    "TrainingSection",
    "check",
    "find_setting",
    "lay_over",
    "leaves",
    "load",
    "option",
    "read_recipe",
    "split_list",
    "value_of",
]
