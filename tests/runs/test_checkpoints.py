"""A checkpoint is whole or not there; a damaged one is noticed and the one before it used."""

import errno
import os
import subprocess
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
import torch
from torch import nn

from attnlab.runs import checkpoints as module
from attnlab.runs.checkpoints import Checkpoints, Damaged, load_weights, read_checkpoint, weights_of


def tensors(value: float, size: int = 100) -> dict[str, dict[str, torch.Tensor]]:
    return {"model": {"weight": torch.full((size,), value)}}


def value_of(found: module.Checkpoint | None) -> float:
    assert found is not None
    return float(found.tensors["model"]["weight"][0])


def test_what_is_saved_is_read_and_old_ones_go(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path / "checkpoints", keep=2)
    for step in (1, 2, 3):
        store.save(step, tensors(step), {"step": step})
    newest = store.newest()
    assert value_of(newest) == 3.0 and newest is not None and newest.state == {"step": 3}
    assert [path.name for path in sorted(store.folder.iterdir())] == ["step-00000002", "step-00000003"]


def test_the_best_is_kept_beside_the_last(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path, keep=1)
    store.save_best(1, tensors(1)["model"], {"accuracy": 0.5})
    store.save_best(2, tensors(2)["model"], {"accuracy": 0.7})
    for step in (3, 4):
        store.save(step, tensors(step), {})
    assert value_of(store.best()) == 2.0 and value_of(store.newest()) == 4.0
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("best", [True, False])
def test_of_a_finished_run_one_set_of_weights_stays(tmp_path: Path, best: bool) -> None:
    store = Checkpoints(tmp_path, keep=2)
    for step in (1, 2):
        store.save(step, tensors(step) | {"optimizer": tensors(0)["model"]}, {"step": step})
    if best:
        store.save_best(1, tensors(1)["model"], {"accuracy": 0.5})
    for _ in range(2):  # a second time changes nothing
        store.keep_weights()
        (left,) = tmp_path.iterdir()
        found = read_checkpoint(left)
        assert set(found.tensors) == {"model"} and value_of(found) == (1.0 if best else 2.0)


@pytest.mark.parametrize("file", ["model.safetensors", "state.json", "checksums.json"])
@pytest.mark.parametrize("damage", ["cut", "flip", "remove", "empty"])
def test_a_damaged_checkpoint_is_named_and_the_one_before_is_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], file: str, damage: str
) -> None:
    store = Checkpoints(tmp_path, keep=3)
    store.save(1, tensors(1), {"a": 1})
    path = store.save(2, tensors(2), {"a": 2}) / file
    content = bytearray(path.read_bytes())
    if damage == "remove":
        path.unlink()
    elif damage == "flip":
        content[len(content) // 2] ^= 0x41
        path.write_bytes(content)
    else:
        path.write_bytes(content[: len(content) // 2] if damage == "cut" else b"")
    with pytest.raises(Damaged):
        read_checkpoint(path.parent)
    assert value_of(store.newest()) == 1.0
    assert "step-00000002 is damaged" in capsys.readouterr().err
    assert (tmp_path / "step-00000002").is_dir(), "a reader changes nothing"
    assert value_of(store.repaired()) == 1.0
    assert "renamed to damaged-step-00000002" in capsys.readouterr().err
    assert (tmp_path / "damaged-step-00000002").is_dir() and not (tmp_path / "step-00000002").exists()


def test_a_kill_while_writing_leaves_the_one_before(tmp_path: Path) -> None:
    """What a killed process leaves behind, a half-written folder, is passed over and cleared away."""
    store = Checkpoints(tmp_path, keep=2)
    store.save(1, tensors(1), {})
    half = tmp_path / ".step-00000002.tmp"
    half.mkdir()
    (half / "model.safetensors").write_bytes(b"half")
    assert value_of(store.newest()) == 1.0 and half.is_dir()
    assert value_of(store.repaired()) == 1.0 and not half.exists()


@pytest.mark.parametrize("name", [".step-00000001.old", ".step-00000001.0123456789abcdef.old"])
def test_a_kill_between_two_renames_loses_nothing(tmp_path: Path, name: str) -> None:
    store = Checkpoints(tmp_path, keep=2)
    path = store.save(1, tensors(1), {})
    path.rename(tmp_path / name)
    assert value_of(store.newest()) == 1.0 and not path.exists()
    assert value_of(store.repaired()) == 1.0 and path.exists()


def test_what_a_training_replaces_while_it_is_read_is_read_anew(tmp_path: Path) -> None:
    """With one checkpoint kept, each new one deletes the one that a reader may be reading."""
    store, reader = Checkpoints(tmp_path, keep=1), Checkpoints(tmp_path)
    store.save(1, tensors(1, 20_000), {})
    ended = Event()

    def write() -> None:
        for step in range(2, 60):
            store.save(step, tensors(step, 20_000), {})
        ended.set()

    writer = Thread(target=write)
    writer.start()
    last = 1.0
    while not ended.is_set():
        value = value_of(reader.newest())
        assert value >= last
        last = value
    writer.join()
    assert value_of(reader.newest()) == 59.0
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000059"]


def test_weights_that_vanish_after_their_checksum_was_compared_are_read_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """torch maps a file that safetensors has opened: if it is deleted in between, the error is no OSError."""
    store, load, gone = Checkpoints(tmp_path, keep=1), module.load_file, []
    store.save(1, tensors(1), {})

    def vanishing(path: Path) -> dict[str, torch.Tensor]:
        if not gone:
            gone.append(path)
            store.save(2, tensors(2), {})  # keeps one: the first is deleted
            assert not path.exists()
            raise RuntimeError(f"unable to open file <{path}> in read-only mode: No such file or directory (2)")
        return load(path)

    monkeypatch.setattr(module, "load_file", vanishing)
    assert value_of(Checkpoints(tmp_path).newest()) == 2.0 and gone


def test_a_disk_that_fills_up_damages_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Checkpoints(tmp_path, keep=2)
    store.save(1, tensors(1), {})
    real = os.fsync
    calls = iter([None, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))])

    def full(descriptor: int) -> None:
        failure = next(calls, None)
        if failure:
            raise failure
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError) as error:
        store.save(2, tensors(2), {})
    assert error.value.errno == errno.ENOSPC
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000001"]
    assert value_of(store.newest()) == 1.0


def test_a_real_file_system_that_is_full(tmp_path: Path) -> None:
    """The same on a file system of one megabyte, where the system itself says no."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("this user may not mount a file system")
    try:
        store = Checkpoints(place / "checkpoints", keep=2)
        store.save(1, tensors(1, 50_000), {})
        with pytest.raises(OSError) as error:
            store.save(2, tensors(2, 500_000), {})
        assert error.value.errno == errno.ENOSPC
        assert value_of(store.newest()) == 1.0
        store.save(3, tensors(3, 50_000), {})
        assert value_of(store.newest()) == 3.0
    finally:
        subprocess.run(["umount", str(place)], check=True)


class Tied(nn.Module):
    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.embedding = nn.Embedding(6, width)
        self.head = nn.Linear(width, 6, bias=False)
        self.head.weight = self.embedding.weight


def test_tied_weights_are_stored_once_and_stay_tied() -> None:
    model, other = Tied(), Tied()
    stored = weights_of(model)
    assert list(stored) == ["embedding.weight"]
    load_weights(other, stored)
    assert torch.equal(other.head.weight, model.head.weight)
    assert other.head.weight is other.embedding.weight


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"embedding.weight": torch.zeros(6, 5)}, r"embedding.weight is \(6, 5\) in the file and \(6, 4\)"),
        ({"embedding.weight": None}, "embedding.weight is missing from the file"),
        ({"extra": torch.zeros(1)}, "extra is only in the file"),
    ],
)
def test_weights_of_another_architecture_are_refused(change: dict[str, Any], sentence: str) -> None:
    stored = weights_of(Tied()) | change
    with pytest.raises(ValueError, match=sentence):
        load_weights(Tied(), {name: tensor for name, tensor in stored.items() if tensor is not None})
