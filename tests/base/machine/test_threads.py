"""OMP_NUM_THREADS decides on the number of threads, of training and of prediction."""

import pytest

from attnlab.base.machine import facts
from attnlab.config.sections import MachineSection
from attnlab.training import setup


@pytest.mark.parametrize(("asked", "expected"), [("1", 1), ("3", 3), ("3,2", 3), ("", 4), ("0", 4), ("many", 4)])
def test_the_variable_decides_if_it_is_a_number(monkeypatch: pytest.MonkeyPatch, asked: str, expected: int) -> None:
    monkeypatch.setattr(facts, "cores", lambda: 4)
    monkeypatch.setenv("OMP_NUM_THREADS", asked)
    assert facts.threads() == expected
    assert setup.resolve(MachineSection(device="cpu", precision="fp32")).threads == expected
    assert setup.resolve(MachineSection(device="cpu", precision="fp32", threads=2)).threads == 2


def test_a_classifier_predicts_with_as_many(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from attnlab.models.pretrained import tuned

    used: list[int] = []
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setattr(torch, "set_num_threads", used.append)
    classifier = tuned.TunedClassifier.__new__(tuned.TunedClassifier)
    classifier.model = torch.nn.Linear(1, 1)
    classifier.ready("cpu")
    assert used == [1]
