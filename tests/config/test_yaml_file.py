"""Recipes that nobody means end in one sentence, in little memory; those that somebody means are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnlab.base.errors import UserError
from attnlab.config.pretrain import PretrainConfig
from attnlab.config.recipe import load
from attnlab.config.shipped import FOLDER
from attnlab.config.yaml_file import DEEPEST, LONGEST, read_yaml


def written(folder: Path, text: str) -> Path:
    (folder / "recipe.yaml").write_text(text, encoding="utf-8")
    return folder / "recipe.yaml"


def repeated(levels: int, times: int = 10) -> str:
    lines = [f"a0: &a0 [{', '.join(['x'] * times)}]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * times)}]" for n in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("training: &t [*t]", "line 1: the anchor '&t' contains itself"),
        ("a: 1\nmodel: &m\n  b: *m", "line 3: the anchor '&m' contains itself"),
        (f"a: {'[' * 3000}{']' * 3000}", f"nested more than {DEEPEST} levels deep"),
        (repeated(9), "line 6: with what its aliases repeat, the file has more than 1,000,000 characters"),
        (f"a: {'x' * LONGEST}", "longer than the 1,000,000 characters"),
        ("? [a, b]\n: 1", "line 1: a key must be a word"),
        ("a: [2020-99-99]", "line 1: a value cannot be read"),
        ("a: *nowhere", "line 1: invalid YAML"),
    ],
)
def test_what_nobody_means_is_refused_with_its_line(text: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as refused:
        read_yaml(written(tmp_path, text))
    assert sentence in str(refused.value) and len(str(refused.value)) < 500


def test_aliases_that_somebody_means_are_read(tmp_path: Path) -> None:
    values, origins = read_yaml(written(tmp_path, "one: &o {lr: 0.1, betas: [0.9, 0.95]}\ntwo: *o\n" + repeated(3)))
    assert values["two"] == {"lr": 0.1, "betas": [0.9, 0.95]} and values["a2"][9][9] == ["x"] * 10
    assert origins["two", "lr"].endswith("line 1")


def test_every_shipped_recipe_is_within_the_limits() -> None:
    assert all(read_yaml(recipe)[0] for recipe in FOLDER.glob("*.yaml"))


@pytest.mark.parametrize("flags", [{}, {("training", "steps"): 3}])
def test_a_text_where_a_group_belongs_is_refused_with_and_without_a_flag(
    flags: dict[tuple[str, ...], int], tmp_path: Path
) -> None:
    with pytest.raises(UserError, match="line 1: training must be a group of 'key: value' lines, got 'x'"):
        load(PretrainConfig, written(tmp_path, "training: x"), flags)


def test_an_empty_group_takes_a_flag(tmp_path: Path) -> None:
    assert load(PretrainConfig, written(tmp_path, "training:\n"), {("training", "steps"): 3}).training.steps == 3


def test_a_number_of_thousands_of_digits_is_shown_in_part(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="must be a whole number") as refused:
        load(PretrainConfig, written(tmp_path, f"training: {{steps: {'9' * 5000}}}"), {})
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize(
    ("name", "value"), [("width", 2**63), ("width", 10**7), ("layers", 10**6), ("context", 10**12)]
)
def test_a_size_beyond_any_machine_is_refused(name: str, value: int) -> None:
    with pytest.raises(UserError, match=f"model.{name}"):
        load(PretrainConfig, None, {("model", name): str(value)})
