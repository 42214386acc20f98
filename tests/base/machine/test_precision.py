"""Precisions are tried in a child process: one that kills it is reported, and the lab lives on."""

import json
from pathlib import Path

import pytest

from attnlab.base.errors import UserError
from attnlab.base.machine import facts, precision
from attnlab.base.machine.precision import Trial, fastest
from attnlab.config import MachineSection
from attnlab.training import setup


def child(monkeypatch: pytest.MonkeyPatch, folder: Path, script: str) -> Trial:
    program = folder / "python"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr(precision, "MODULE", [str(program)])
    return precision.try_in_child("cpu", "bf16", timeout=300)


def test_a_product_that_kills_the_process_is_an_answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    trial = child(monkeypatch, tmp_path, "kill -ILL $$")
    assert trial.gflops is None and "kills the process (SIGILL)" in trial.reason


def test_one_that_fails_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert child(monkeypatch, tmp_path, "echo no such kernel >&2; exit 1").reason == "no such kernel"


def test_one_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(precision, "DTYPES", {"bf16": "bfloat16"})
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\nexec sleep 600\n")
    program.chmod(0o755)
    monkeypatch.setattr(precision, "MODULE", [str(program)])
    assert "longer than" in precision.try_in_child("cpu", "bf16", timeout=0.5).reason


def test_fp32_is_measured_for_real() -> None:
    trial = precision.try_in_child("cpu", "fp32")
    assert trial.gflops is not None and trial.gflops > 0


@pytest.mark.parametrize(
    ("speeds", "chosen"),
    [
        ({"fp32": 100.0, "bf16": 300.0, "fp16": None}, "bf16"),
        ({"fp32": 100.0, "bf16": 110.0, "fp16": None}, "fp32"),
        ({"fp32": 100.0, "bf16": None, "fp16": None}, "fp32"),
        ({"fp32": 100.0, "bf16": 150.0, "fp16": 400.0}, "fp16"),
    ],
)
def test_auto_takes_the_fastest_that_works_if_the_gain_is_clear(speeds: dict[str, float | None], chosen: str) -> None:
    assert fastest([Trial(name, speed) for name, speed in speeds.items()]) == chosen


@pytest.fixture
def remembered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Trials without children: bf16 is broken, fp16 fast."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    tried: list[str] = []

    def fake(device: str, name: str, timeout: float = 60) -> Trial:
        tried.append(name)
        return Trial(name, {"fp32": 100.0, "bf16": None, "fp16": 900.0}[name], "kills the process (SIGILL)")

    monkeypatch.setattr(precision, "try_in_child", fake)
    return tried


def test_a_machine_is_measured_once(remembered: list[str], tmp_path: Path) -> None:
    assert precision.choose("cpu") == "fp32"  # fp16 on a CPU is no candidate, however fast
    assert precision.choose("cpu") == "fp32"
    assert remembered == ["fp32", "bf16", "fp16"]
    precision.trials("cpu", fresh=True)
    assert len(remembered) == 6
    assert len(json.loads((tmp_path / "attnlab" / "precision.json").read_text())) == 1


def test_a_precision_that_does_not_work_is_refused_and_never_replaced(remembered: list[str]) -> None:
    with pytest.raises(UserError, match=r"bf16 does not work on this machine \(kills the process \(SIGILL\)\)"):
        setup.resolve(MachineSection(device="cpu", precision="bf16"))
    with pytest.raises(UserError, match="fp16 on a CPU"):
        setup.resolve(MachineSection(device="cpu", precision="fp16"))


def test_auto_becomes_what_this_machine_has(remembered: list[str]) -> None:
    found = setup.resolve(MachineSection(device="cpu"))
    assert (found.precision, found.threads) == ("fp32", facts.cores())


@pytest.mark.parametrize("device", ["cuda:99", "banana", "tpu"])
def test_a_device_that_is_not_there_is_an_error_with_a_hint(device: str) -> None:
    with pytest.raises(UserError, match="--device"):
        setup.resolve_device(device)


def test_a_containers_limits_count(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {"cpu.max": "100000 100000", "memory.max": str(2 * facts.GIB), "memory.current": str(facts.GIB)}
    monkeypatch.setattr(facts, "_cgroup", lambda name: limits[name])
    assert facts.cores() == 1
    assert facts.memory()[0] == 2 * facts.GIB and facts.memory()[1] <= facts.GIB
