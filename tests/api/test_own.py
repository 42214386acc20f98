"""A class of one's own: stored with the run, executed only where it is allowed, refused when it has changed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.api.conftest import FAST, SHAPE, TEXT
from torch import Tensor, nn

import attnlab as lab
from attnlab.attention import MixerShape
from attnlab.attention.registry import build_mixer
from attnlab.base import trust

HALF = 0.5


def halved(x: Tensor) -> Tensor:
    return x * HALF


class Mean(nn.Module):
    """The mean of the past."""

    time = 1

    def __init__(self, shape: MixerShape) -> None:
        super().__init__()
        self.output = nn.Linear(shape.width, shape.width)

    def forward(self, x: Tensor) -> Tensor:
        counts = torch.arange(1, x.shape[1] + 1, dtype=x.dtype)
        return self.output(halved(x.cumsum(1) / counts[:, None]))


def of_another_strength(strength: float) -> type[nn.Module]:
    class Mean(nn.Module):
        def __init__(self, shape: MixerShape) -> None:
            super().__init__()
            self.output = nn.Linear(shape.width, shape.width)

        def forward(self, x: Tensor) -> Tensor:
            return self.output(x * strength)

    return Mean


def trained(attention: Any, **settings: Any) -> lab.Run:
    return lab.train(lab.GPT(attention=attention, **SHAPE), [TEXT], **{"steps": 3, **FAST, **settings})


def in_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a new process that knows no class, of a user who has allowed nothing."""
    monkeypatch.setattr("attnlab.attention.registry._session", {})
    monkeypatch.setattr(trust, "_this_process", set())
    shutil.rmtree(trust.config_folder(), ignore_errors=True)


def test_a_class_is_stored_as_code_with_its_checksum(attnlab: Callable[..., Any], folder: Path) -> None:
    run = trained(Mean)
    code = (run.path / "attention.py").read_bytes()
    assert b"HALF = 0.5" in code and b"def halved" in code and b"class Mean" in code
    assert json.loads((run.path / "run.json").read_text())["files"]["attention.py"] == trust.checksum(code)
    x = torch.randn(1, 4, 16)
    inner = run.model.blocks[0].mixer.inner  # type: ignore[union-attr, index]
    counts = torch.arange(1, 5)[:, None]
    torch.testing.assert_close(inner(x), inner.output(x.cumsum(1) / counts / 2))  # type: ignore[operator]


def test_the_run_of_a_stranger_executes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    run = trained(Mean)
    in_another_process(monkeypatch)
    with pytest.raises(lab.UserError, match=r"Mean\.py is code that you have not allowed to run \(SHA-256 \w{64}\)"):
        assert lab.load(run.path).model
    assert lab.load(run.path, attention=Mean).sample("the ", length=3)


def test_the_copy_serves_when_the_file_is_gone(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    run = trained(Mean)
    loss = run.evaluate("text.txt")["loss"]
    shutil.move(run.path, "moved")
    assert lab.load("moved").evaluate("text.txt")["loss"] == loss
    assert "is gone since moved was trained with it" in " ".join(capsys.readouterr().err.split())
    in_another_process(monkeypatch)
    with pytest.raises(lab.UserError, match=r"attnlab trust .*moved/attention\.py"):
        assert lab.load("moved").model


def test_a_file_that_was_typed_and_changed_since(capsys: Any) -> None:
    source = (trained(Mean).path / "attention.py").read_text()
    Path("mine.py").write_text(source)
    run = trained("mine.py")
    Path("mine.py").write_text(source.replace("HALF = 0.5", "HALF = 0.25"))
    loss = run.evaluate("text.txt")["loss"]
    assert "mine.py has changed since" in " ".join(capsys.readouterr().err.split())
    Path("mine.py").write_text(source)
    assert lab.load(run.path).evaluate("text.txt")["loss"] == loss
    Path("mine.py").write_text(source.replace("HALF = 0.5", "HALF = 0.25"))
    with pytest.raises(lab.UserError, match=r"mine\.py differs from the attention that .* was trained with"):
        lab.load(run.path, attention="mine.py")


def test_another_version_of_the_class_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    run = trained(Mean)
    monkeypatch.setattr("tests.api.test_own.HALF", 0.25)
    with pytest.raises(lab.UserError, match=r"own:Mean differs from the attention .*attention\.py is the version"):
        lab.load(run.path, attention=Mean)
    with pytest.raises(lab.UserError, match="was not trained with an attention of your own"):
        lab.load(lab.train(lab.GPT(**SHAPE), [TEXT], steps=2, **FAST).path, attention=Mean)


def test_a_class_that_cannot_be_stored_is_handed_in_again(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    kind = of_another_strength(2.0)
    run = trained(kind)
    told = " ".join(capsys.readouterr().err.split())
    assert told.count("Mean cannot be stored in the run, since it uses strength of the function") == 1
    (change,) = json.loads((run.path / "run.json").read_text())["changes"]
    assert "lab.load(run, attention=Mean)" in change and not (run.path / "attention.py").exists()
    sample = run.sample("the ", length=5)
    in_another_process(monkeypatch)
    with pytest.raises(lab.UserError, match=r"hand it in again, lab\.load\(run, attention=Mean\)"):
        assert lab.load(run.path).model
    assert lab.load(run.path, attention=kind).sample("the ", length=5) == sample
    in_another_process(monkeypatch)
    for other in (Mean, of_another_strength(3.0)):
        with pytest.raises(lab.UserError, match=r"differs from the attention .*attention\.txt is the version"):
            lab.load(run.path, attention=other)


def test_a_function_that_builds_a_module_is_an_attention() -> None:
    run = trained(lambda shape: Mean(shape))
    assert run.state == "finished" and run.config["model"]["attention"] == "own:<lambda>"
    with pytest.raises(lab.UserError, match=r"expected to return a torch\.nn\.Module, got int"):
        lab.GPT(attention=lambda shape: 3, **SHAPE).build(5)  # type: ignore[arg-type, return-value]


def test_two_classes_of_one_name_are_two() -> None:
    small = lab.GPT(**SHAPE)
    twice = [of_another_strength(1.0), of_another_strength(0.0)]
    compared = lab.compare(small, "text.txt", attention=twice, steps=2, seeds=1, **FAST)
    losses = [row["dev_loss"] for row in compared.table]
    assert len(losses) == 2 and losses[0] != losses[1]


def test_a_model_is_built_with_the_class() -> None:
    model = lab.GPT(attention=Mean, **SHAPE).build(7)
    assert model(torch.tensor([[1, 2, 3]])).shape == (1, 3, 7)
    assert type(model.blocks[0].mixer.inner) is Mean  # type: ignore[union-attr]


class Reversed(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.flip(1)


def test_an_audit_takes_a_class_and_finds_what_is_wrong() -> None:
    assert lab.audit(Mean, cost=False, half=False, width=8, heads=2, context=20).passed
    late = lab.audit(lambda shape: Reversed(), cost=False, half=False)
    assert "own:&lt;lambda&gt;" in late._repr_html_() and not late.passed
    assert late.sees_future


def test_a_mixer_handed_in_starts_with_the_weights_of_the_same_mixer_by_name() -> None:
    """Otherwise a comparison of the two would begin from different places."""
    torch.manual_seed(0)
    named = lab.GPT(attention="vanilla", **SHAPE).build(7)
    torch.manual_seed(0)
    given = lab.GPT(attention=lambda shape: build_mixer("vanilla", shape), **SHAPE).build(7)
    weights = {name.replace(".inner.", "."): tensor for name, tensor in given.named_parameters()}
    for name, tensor in named.named_parameters():
        torch.testing.assert_close(weights[name], tensor, atol=0, rtol=0)


def test_an_audit_takes_a_module_that_is_built() -> None:
    shape = MixerShape(width=8, heads=2, context=20)
    built = Mean(shape)
    weights = built.state_dict()
    before = {name: tensor.clone() for name, tensor in weights.items()}
    audit = lab.audit(built, cost=False, half=False, width=8, heads=2, context=20)
    assert audit.passed and repr(audit).startswith("Audit('own:Mean")
    assert all(torch.equal(weights[name], tensor) for name, tensor in before.items())
    assert all(parameter.grad is None for parameter in built.parameters())


def test_a_module_that_is_built_is_an_attention(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    built = Mean(MixerShape(SHAPE["width"], SHAPE["heads"], SHAPE["context"]))
    model = lab.GPT(attention=built, **{**SHAPE, "layers": 2}).build(7)
    inner = [block.mixer.inner for block in model.blocks]  # type: ignore[union-attr]
    assert all(type(each) is Mean and each is not built for each in inner) and inner[0] is not inner[1]
    assert not torch.equal(inner[0].output.weight, inner[1].output.weight)  # type: ignore[union-attr]
    capsys.readouterr()
    run = trained(built)
    told = " ".join(capsys.readouterr().err.split())
    assert told.count("Mean cannot be stored in the run, since it is a module that is built already") == 1
    assert "Linear(in_features" in (run.path / "attention.txt").read_text()
    sample = run.sample("the ", length=5)
    in_another_process(monkeypatch)
    with pytest.raises(lab.UserError, match="hand it in again"):
        assert lab.load(run.path).model
    assert lab.load(run.path, attention=built).sample("the ", length=5) == sample
    in_another_process(monkeypatch)
    with pytest.raises(lab.UserError, match="differs from the attention"):
        lab.load(run.path, attention=Mean(MixerShape(SHAPE["width"] * 2, SHAPE["heads"], SHAPE["context"])))
    with pytest.raises(lab.UserError, match=r"own:Mean.*forward fails"):
        trained(Mean(MixerShape(SHAPE["width"] * 2, SHAPE["heads"], SHAPE["context"])))


@pytest.mark.slow
def test_half_precision_is_tried_with_the_stored_class() -> None:
    tried = {finding.check: finding.passed for finding in lab.audit(Mean, cost=False, width=8, heads=2).findings}
    assert tried["half precision, float16"] in (True, None)
    unstored = lab.audit(of_another_strength(1.0), cost=False, width=8, heads=2).findings
    assert next(f.evidence for f in unstored if f.check == "half precision").startswith("not tried")


def test_a_recipe_of_a_stranger_chooses_no_code(attnlab: Callable[..., Any], folder: Path) -> None:
    (folder / "evil.py").write_text("open('executed', 'w').close()\n")
    (folder / "recipe.yaml").write_text("model: {attention: evil.py}\ndata: {corpus: text.txt}\n")
    done = attnlab("language", "--config", "recipe.yaml", cwd=folder)
    assert done.returncode == 2 and "not allowed to run" in done.stderr and not (folder / "executed").exists()
    done = attnlab("trust", "evil.py", cwd=folder)
    assert done.returncode == 0 and trust.checksum((folder / "evil.py").read_bytes()) in done.stdout
    assert "evil.py" in attnlab("trust", "--list", cwd=folder).stdout
    done = attnlab("language", "--config", "recipe.yaml", cwd=folder)
    assert "contains no torch.nn.Module class" in done.stderr and (folder / "executed").exists()
    assert attnlab("trust", "--remove", "evil.py", cwd=folder).returncode == 0
    assert "not allowed to run" in attnlab("language", "--config", "recipe.yaml", cwd=folder).stderr
    assert "not among the allowed" in attnlab("trust", "--remove", "evil.py", cwd=folder).stderr
