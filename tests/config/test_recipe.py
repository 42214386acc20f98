"""Every mistake in a recipe or a flag is one sentence that says where and what to do."""

from pathlib import Path

import pytest

from attnlab.base.errors import UserError
from attnlab.config import BatchSection, OptimizerSection, ScheduleSection, Section, TrainingSection, load
from attnlab.config.recipe import default_of


class Config(Section):
    optimizer: OptimizerSection = OptimizerSection(lr=0.5)
    schedule: ScheduleSection = ScheduleSection(warmup_ratio=0.1)
    batch: BatchSection = BatchSection()
    training: TrainingSection = TrainingSection()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("optimizer:\n  lrr: 3\n", "line 2: unknown key 'lrr' in optimizer: did you mean 'lr'?"),
        ("lr: 3\n", "line 1: unknown key 'lr': it belongs to 'optimizer.lr'."),
        ("\n\nzebra: 1\n", "line 3: unknown key 'zebra': choose from optimizer, schedule, batch, training."),
        ("optimizer:\n  lr: fast\n", "line 2: optimizer.lr must be a number, got 'fast'."),
        ("optimizer:\n  lr: .inf\n", "line 2: optimizer.lr must be a finite number, got inf."),
        ("optimizer:\n  lr: -1\n", "line 2: optimizer.lr must be greater than 0, got -1."),
        ("optimizer: 3\n", "line 1: optimizer must be a group of 'key: value' lines, got 3."),
        ("optimizer:\n  name: adamv\n", "line 2: optimizer.name: unknown optimizer 'adamv': did you mean 'adam'?"),
        ("training:\n  seed: yes\n", "line 2: training.seed: expected a whole number, got true."),
        ("training:\n  steps: 3.5\n", "line 2: training.steps must be a whole number, got 3.5."),
        ("training:\n  steps: 3\n  epochs: 1\n", "training: epochs and steps exclude each other: give only one."),
        ("training:\n  evaluate_every: 3 weeks\n", "expected '100 steps' or '1 epoch', got '3 weeks'."),
        ("batch:\n  size: many\n", "line 2: batch.size must be a whole number, 'auto' or 'largest', got 'many'."),
        ("batch:\n  size: 1\n  size: 2\n", "line 3: 'size' is given twice: remove one of them."),
        ("schedule:\n  name: wsd\n  warmup_ratio: 0.9\n", "add up to more than 1."),
        ("a: b: c\n", "line 1: invalid YAML: mapping values are not allowed here."),
        ("- 1\n", "line 1: expected 'key: value' lines."),
    ],
)
def test_a_mistake_in_a_recipe_is_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(text)
    with pytest.raises(UserError) as error:
        load(Config, recipe, {})
    assert str(error.value).startswith(str(recipe))
    assert str(error.value).endswith(sentence)


def test_a_recipe_holds_data_and_never_code(tmp_path: Path) -> None:
    recipe, trace = tmp_path / "recipe.yaml", tmp_path / "trace"
    recipe.write_text(f"optimizer:\n  name: !!python/object/apply:os.mkdir ['{trace}']\n")
    with pytest.raises(UserError):
        load(Config, recipe, {})
    assert not trace.exists()


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", None])
def test_a_recipe_that_cannot_be_read(tmp_path: Path, content: bytes | None) -> None:
    recipe = tmp_path / "recipe.yaml"
    if content is not None:
        recipe.write_bytes(content)
    with pytest.raises(UserError, match="recipe"):
        load(Config, recipe, {})


def test_a_flag_is_named_in_its_own_mistake() -> None:
    with pytest.raises(UserError, match=r"^--lr: optimizer.lr must be a number, got 'fast'\.$"):
        load(Config, None, {("optimizer", "lr"): "fast"})


def test_flags_override_the_recipe_and_replace_what_they_exclude(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("training:\n  epochs: 3\noptimizer:\n  lr: 1e-4\n  name: sgd\n")
    config = load(Config, recipe, {("training", "steps"): "50", ("optimizer", "clip"): "none"})
    assert (config.training.steps, config.training.epochs) == (50, None)
    assert (config.optimizer.lr, config.optimizer.name, config.optimizer.clip) == (1e-4, "sgd", None)


def test_a_configurations_own_defaults_hold_for_what_is_not_given(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("optimizer:\n  name: sgd\nschedule:\n  warmup_steps: 5\nbatch:\n")
    config = load(Config, recipe, {})
    assert config.optimizer.lr == 0.5
    assert (config.schedule.warmup_steps, config.schedule.warmup_ratio) == (5, None)
    assert config.batch.size == 32
    assert default_of(Config, ("optimizer", "lr")) == 0.5


def test_a_contradiction_of_two_flags_names_both() -> None:
    flags = {("training", "steps"): "3", ("training", "epochs"): "2"}
    with pytest.raises(UserError, match=r"^--steps, --epochs: training: epochs and steps exclude each other"):
        load(Config, None, flags)
