"""Labels that are likely wrong, against the definition written out; planted ones are found."""

from __future__ import annotations

import numpy as np
import pytest

from attnlab.stats.label_errors import likely_errors


@pytest.mark.parametrize("seed", range(4))
def test_they_are_those_of_the_definition(seed: int) -> None:
    random = np.random.default_rng(seed)
    probabilities, labels = random.dirichlet([0.4] * 4, 200), random.integers(0, 4, 200)
    means = [
        sum(row[k] for row, label in zip(probabilities, labels, strict=True) if label == k) / sum(labels == k)
        for k in range(4)
    ]
    expected = {}
    for place, (row, label) in enumerate(zip(probabilities.tolist(), labels, strict=True)):
        best = row.index(max(row))
        if best != label and row[best] >= means[best]:
            expected[place] = best
    found = likely_errors(probabilities, labels)
    assert {error.place: error.likely for error in found} == expected and expected
    margins = [error.probability - error.label_probability for error in found]
    assert margins == sorted(margins, reverse=True)
    for error in found:
        assert error.probability == probabilities[error.place, error.likely]
        assert error.label_probability == probabilities[error.place, labels[error.place]]


def test_a_class_that_no_example_has_is_likely_for_none() -> None:
    probabilities = np.array([[0.1, 0.0, 0.9], [0.2, 0.0, 0.8], [0.8, 0.0, 0.2], [0.7, 0.0, 0.3]])
    assert [error.likely for error in likely_errors(probabilities, np.array([0, 0, 1, 1]))] == [0, 0]
