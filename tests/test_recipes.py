"""Every shipped recipe is a valid configuration of its command, and the demo runs the very same settings."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from attnlab.base.errors import UserError
from attnlab.cli import app
from attnlab.config import Section, load, read_recipe
from attnlab.config.shipped import FOLDER, ShippedRecipe, find_recipe, shipped_recipes
from attnlab.experiments.config import comparison_of, sweep_of
from attnlab.experiments.space import axes_of, grid
from attnlab.jobs.demo import demo
from attnlab.jobs.knowledge import fine_tuning, pretraining
from attnlab.jobs.registry import KINDS

RECIPES = sorted(FOLDER.glob("*.yaml"))
ROOT = Path(__file__).parents[1]
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
    "induction": "language",
    "sweep": "sweep",
}


def config_for(recipe: Path) -> type[Section]:
    kind = next(kind for stem, kind in COMMANDS.items() if recipe.stem.startswith(stem))
    if kind == "compare":
        return comparison_of(read_recipe(recipe)[0]["compare"].get("job", "language"))
    if kind == "sweep":
        return sweep_of(read_recipe(recipe)[0]["sweep"]["job"])
    return KINDS[kind].config


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_is_valid_and_lists_its_expected_result_and_cost(recipe: Path) -> None:
    load(config_for(recipe), recipe, {})
    assert "\n# Expected: " in recipe.read_text() and "\n# Cost: " in recipe.read_text()
    assert f"| `{recipe.stem}` |" in (ROOT / "docs" / "recipes.md").read_text()


@pytest.mark.parametrize("recipe", shipped_recipes(), ids=lambda recipe: recipe.name)
def test_the_comments_of_a_recipe_are_read_whole_and_its_command_runs_it(recipe: ShippedRecipe) -> None:
    assert recipe.purpose and recipe.expected.endswith(".") and recipe.cost.endswith(".")
    assert f" --config {recipe.name}" in recipe.commands


def test_at_least_twenty_recipes_are_shipped() -> None:
    assert len(RECIPES) >= 20


@pytest.mark.parametrize("given", ["knowledge", "knowledge.yaml", "recipes/knowledge.yaml", "./recipes/knowledge"])
def test_a_shipped_recipe_is_found_from_any_folder(given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "knowledge").mkdir()  # a folder of that name, a run for instance, is no recipe
    monkeypatch.chdir(tmp_path)
    assert find_recipe(Path(given)) == FOLDER / "knowledge.yaml"


@pytest.mark.parametrize("given", ["knowledge", "recipes/knowledge.yaml"])
def test_a_file_that_exists_wins_over_a_shipped_recipe(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "recipes").mkdir()
    (tmp_path / given).write_text("training:\n  epochs: 7\n")
    monkeypatch.chdir(tmp_path)
    assert load(KINDS["pretrain"].config, Path(given), {}).training.epochs == 7


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("knowlege", "knowlege: there is no such recipe: did you mean 'knowledge'? {LIST}"),
        ("recipes/yelb.yaml", "recipes/yelb.yaml: there is no such recipe: did you mean 'yelp'? {LIST}"),
        ("zzzz", "zzzz: there is no such recipe: {LIST}"),
        ("mine/knowledge.yaml", "mine/knowledge.yaml: there is no such recipe."),
    ],
)
def test_an_unknown_recipe_is_one_sentence(
    given: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as error:
        find_recipe(Path(given))
    assert str(error.value) == sentence.format(LIST="'attnlab recipes' lists the shipped ones.")


def test_the_command_lists_all_and_prints_one() -> None:
    listed = CliRunner().invoke(app, ["recipes"])
    assert listed.exit_code == 0 and all(path.stem in listed.stdout for path in RECIPES)
    assert "cost: about a minute on 2 cores." in listed.stdout
    rows = json.loads(CliRunner().invoke(app, ["recipes", "--json"]).stdout)
    assert [row["name"] for row in rows] == [path.stem for path in RECIPES]
    printed = CliRunner().invoke(app, ["recipes", "few-labels-yelp"]).stdout
    assert printed == (FOLDER / "few-labels-yelp.yaml").read_text()


def test_the_demo_is_made_of_these_recipes() -> None:
    read = {path.stem: load(config_for(path), path, {}) for path in RECIPES}
    assert demo.pretraining(0) == read["knowledge-pretrain"]
    tuned = demo.fine_tuning(Path("x"), False, 0)
    assert tuned.model_copy(update={"start": read["knowledge-finetune"].start}) == read["knowledge-finetune"]
    whole = read["knowledge"]
    assert pretraining(whole).model_dump() == demo.pretraining(0).model_dump()
    assert fine_tuning(whole, Path("x")).model_dump() == tuned.model_dump()
    assert demo.classification("full", 0) == read["sentiment-full"]
    assert demo.classification("head", 0) == read["sentiment-head"]


def test_the_course_s_grid_is_the_one_of_the_recipe() -> None:
    recipe = FOLDER / "sweep-sentiment.yaml"
    cells = list(grid(axes_of(load(config_for(recipe), recipe, {}))))
    rates, epochs = (sorted({cell[name] for cell in cells}) for name in ("optimizer.lr", "training.epochs"))
    assert len(cells) == 9 and rates == [1e-4, 5e-4, 1e-3] and epochs == [5, 7, 9]
