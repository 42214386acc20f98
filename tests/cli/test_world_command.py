"""`attnlab world` from the outside."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def attnlab(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {"PYTHONPATH": ":".join(sys.path)}
    command = [sys.executable, "-m", "attnlab", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def test_it_writes_a_world_and_prints_what_is_in_it(tmp_path: Path) -> None:
    done = attnlab("world", "--people", "300", "--places", "12", "--out", str(tmp_path / "w"))
    assert done.returncode == 0, done.stderr
    assert "300 people" in done.stdout
    assert "most common birthplace" in done.stdout
    assert done.stdout.count("Where was") == 3
    files = sorted(path.name for path in (tmp_path / "w").iterdir())
    assert files == ["corpus.txt", "dev.tsv", "test.tsv", "train.tsv", "world.json"]


def test_an_impossible_world_is_one_sentence_and_writes_nothing(tmp_path: Path) -> None:
    done = attnlab("world", "--paraphrases", "9", "--documents", "2", "--out", str(tmp_path / "w"))
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "paraphrases = 9" in done.stderr
    assert not (tmp_path / "w").exists()


def test_the_help_shows_the_defaults_of_the_world() -> None:
    import typer

    from attnlab.cli import app
    from attnlab.config.world import WorldSection
    from attnlab.data.world.world import WorldSpec, world_of

    command = typer.main.get_command(app).commands["world"]  # type: ignore[attr-defined]
    shown = {option.name: option.show_default for option in command.params if isinstance(option.show_default, str)}
    for name, text in shown.items():
        default = getattr(WorldSpec(), name)
        assert text == ("shuffled" if default is True else str(default)), name
    assert len(shown) == 11
    assert world_of(WorldSection()).spec == WorldSpec(), "one set of defaults for the command and the configuration"
    assert (shown["people"], shown["places"]) == ("400", "60")
    assert [shown[split] for split in ("train", "dev", "test")] == ["0.5", "0.2", "0.3"]
