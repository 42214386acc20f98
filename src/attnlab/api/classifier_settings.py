"""Parameters of `attnlab.Classifier` as the configuration of a classify run, and back."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from attnlab.api.classifier_inputs import InputError
from attnlab.config.classify import ClassifyConfig
from attnlab.config.recipe import Key, check, default_of, find_setting, leaves, value_of

PARAMETERS: dict[str, Key] = {
    "model": ("model", "name"),
    "tune": ("tuning", "method"),
    "epochs": ("training", "epochs"),
    "steps": ("training", "steps"),
    "lr": ("optimizer", "lr"),
    "batch_size": ("batch", "size"),
    "max_tokens": ("data", "max_tokens"),
    "random_state": ("training", "seed"),
    "device": ("machine", "device"),
}
ARGUMENTS: dict[Key, str] = {("data", "task"): "X of fit", ("data", "dev"): "validation of fit"}
OF_FILES = ("text", "pair", "label", "classes", "header", "hold_out", "allow_empty", "data_folder")
"""Settings of data that say how to read a file."""


def classify_config(
    parameters: Mapping[str, Any], seed: int, files: Mapping[Key, object] | None = None, handed: bool = False
) -> ClassifyConfig:
    """The checked configuration of a fit; `handed`: of texts that are handed over, not of files."""
    values: dict[Key, object] = {
        key: parameters[name] for name, key in PARAMETERS.items() if parameters[name] is not None
    }
    origins = {key: name for name, key in PARAMETERS.items()}
    values["training", "seed"] = seed
    values |= files or {}
    for name, value in _settings(parameters["settings"]).items():
        key = find_setting(ClassifyConfig, name)
        if parameter := (origins | ARGUMENTS).get(key):
            raise InputError(f"settings: {'.'.join(key)} is the parameter {parameter}: give it there.")
        if handed and key[0] == "data" and key[1] in OF_FILES:
            raise InputError(f"settings: {'.'.join(key)} is for files, and X is not a file: leave it out.")
        values[key] = value
    origins |= {key: "settings" for key in values if key not in origins}
    if handed:
        values |= {("data", "hold_out"): False, ("data", "allow_empty"): True}
    return check(ClassifyConfig, _nested(values), origins)


def parameters_of(config: ClassifyConfig) -> dict[str, Any]:
    """The parameters with which a fit repeats a run on the same data, on this machine."""
    taken = {*PARAMETERS.values(), *ARGUMENTS, ("machine", "threads"), *(("data", name) for name in OF_FILES)}
    return {name: value_of(config, key) for name, key in PARAMETERS.items()} | {
        "device": "auto",
        "settings": {
            ".".join(key): value_of(config, key)
            for key in leaves(ClassifyConfig)
            if key not in taken and value_of(config, key) != default_of(ClassifyConfig, key)
        },
    }


def _settings(given: object) -> Mapping[str, object]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InputError(f"settings: expected a dict of names and values, got {given!r:.40}.")
    return given


def _nested(values: Mapping[Key, object]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for key, value in values.items():
        place = nested
        for name in key[:-1]:
            place = place.setdefault(name, {})
        place[key[-1]] = _plain(value)
    return nested


def _plain(value: object) -> object:
    """A value of a grid may be a scalar of numpy, a model a path."""
    if isinstance(value, np.generic):
        return value.item()
    return os.fspath(value) if isinstance(value, os.PathLike) else value
