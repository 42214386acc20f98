"""Every shipped recipe is a valid configuration of its command, and the demo runs the very same settings."""

from pathlib import Path

import pytest

from attnlab.config import Section, load, read_recipe
from attnlab.experiments.config import comparison_of, sweep_of
from attnlab.experiments.space import axes_of, grid
from attnlab.jobs.demo import demo
from attnlab.jobs.knowledge import fine_tuning, pretraining
from attnlab.jobs.registry import KINDS

RECIPES = Path(__file__).parent.parent / "recipes"
COMMANDS = {
    "birthplaces-pretrain": "pretrain",
    "knowledge-pretrain": "pretrain",
    "knowledge-finetune": "finetune",
    "knowledge-paraphrases": "compare",
    "knowledge": "knowledge",
    "sentiment": "classify",
    "sst2": "classify",
    "yelp": "classify",
    "compare": "compare",
    "ablate": "compare",
    "few-labels": "compare",
    "sweep": "sweep",
}


def config_for(recipe: Path) -> type[Section]:
    kind = next(kind for stem, kind in COMMANDS.items() if recipe.stem.startswith(stem))
    if kind == "compare":
        return comparison_of(read_recipe(recipe)[0]["compare"].get("job", "language"))
    if kind == "sweep":
        return sweep_of(read_recipe(recipe)[0]["sweep"]["job"])
    return KINDS[kind].config


@pytest.mark.parametrize("recipe", sorted(RECIPES.glob("*.yaml")), ids=lambda path: path.stem)
def test_a_recipe_is_valid_and_says_what_to_expect(recipe: Path) -> None:
    load(config_for(recipe), recipe, {})
    assert "# Expect" in recipe.read_text() and "Cost:" in recipe.read_text()
    assert f"`{recipe.name}`" in (RECIPES / "README.md").read_text()


def test_the_demo_is_made_of_these_recipes() -> None:
    read = {path.stem: load(config_for(path), path, {}) for path in RECIPES.glob("*.yaml")}
    assert demo.pretraining(0) == read["knowledge-pretrain"]
    tuned = demo.fine_tuning(Path("x"), False, 0)
    assert tuned.model_copy(update={"start": read["knowledge-finetune"].start}) == read["knowledge-finetune"]
    whole = read["knowledge"]
    assert pretraining(whole).model_dump() == demo.pretraining(0).model_dump()
    assert fine_tuning(whole, Path("x")).model_dump() == tuned.model_dump()
    assert demo.classification("full", 0) == read["sentiment-full"]
    assert demo.classification("head", 0) == read["sentiment-head"]


def test_the_course_s_grid_is_the_one_of_the_recipe() -> None:
    recipe = RECIPES / "sweep-sentiment.yaml"
    cells = list(grid(axes_of(load(config_for(recipe), recipe, {}))))
    rates, epochs = (sorted({cell[name] for cell in cells}) for name in ("optimizer.lr", "training.epochs"))
    assert len(cells) == 9 and rates == [1e-4, 5e-4, 1e-3] and epochs == [5, 7, 9]
