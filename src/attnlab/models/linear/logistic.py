"""Multinomial logistic regression, fitted to convergence by L-BFGS (scikit-learn): there is no rate to choose.

    min over W, b of  C Σ_i w_i log(1 / p_i[y_i]) + ½ |W|²,    p_i = softmax(W x_i + b)

C, the inverse of the weight decay, is chosen by cross-validation on the training rows: the value with the lowest log
loss on the rows that were left out, which with few labels is steadier than their accuracy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

Vector = NDArray[np.float64]

FOLDS = 3
ROWS = 2000
"""Rows that C is chosen on, at most: it depends little on more, and the time does."""
COARSE, FINE = (1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1000.0), 10**0.5
"""Powers of ten, then half a power to each side of the best."""
CHOSEN_WITHOUT = 1.0
"""Where the rows are too few to leave any out."""
ROUGH, CONVERGED, STEPS = 1e-4, 1e-6, 1000
SMALL = 1e-9


@dataclass(frozen=True)
class Logistic:
    """W (K, F) and b (K,) for all classes, with the C that was chosen, if any, and the iterations of the last fit."""

    weight: Vector
    bias: Vector
    c: float | None
    iterations: int

    @torch.no_grad()
    def into(self, layer: nn.Linear) -> None:
        layer.weight.copy_(torch.from_numpy(self.weight))
        layer.bias.copy_(torch.from_numpy(self.bias))


def fit_logistic(
    rows: Any, labels: Sequence[int], classes: int, class_weights: Sequence[float] | None = None
) -> Logistic:
    """Fit to rows (N, F), a matrix of numpy or a sparse one of scipy."""
    y = np.asarray(labels)
    weights = np.ones(len(y)) if class_weights is None else np.asarray(class_weights, float)[y]
    if len(np.unique(y)) == 1:  # nothing to separate: the class of all rows
        return Logistic(np.zeros((classes, rows.shape[1])), prior(labels, classes), None, 1)
    c = choose_c(rows, y, weights)
    model = _fit(_estimator(CONVERGED, c), rows, y, weights)
    weight, bias = np.zeros((classes, rows.shape[1])), np.full(classes, np.log(SMALL))
    one, both = model.coef_, model.intercept_
    if len(model.classes_) == 2:  # scikit-learn fits the difference of two classes
        one, both = np.concatenate([-one, one]) / 2, np.concatenate([-both, both]) / 2
    weight[model.classes_], bias[model.classes_] = one, both
    return Logistic(weight, bias, c, int(model.n_iter_.max()))


def fit_vectors(
    vectors: Vector, labels: Sequence[int], classes: int, class_weights: Sequence[float] | None = None
) -> Logistic:
    """Fit to vectors (N, F), each entry scaled to mean 0 and deviation 1; W and b are for the vectors as given."""
    mean, deviation = vectors.mean(0), vectors.std(0)
    scale = np.where(deviation > SMALL, deviation, 1.0)
    fitted = fit_logistic((vectors - mean) / scale, labels, classes, class_weights)
    weight = fitted.weight / scale
    return replace(fitted, weight=weight, bias=fitted.bias - weight @ mean)


def prior(labels: Sequence[int], classes: int) -> Vector:
    """The log of each class's share of the rows."""
    counts = np.bincount(np.asarray(labels), minlength=classes)
    return np.log(np.maximum(counts / counts.sum(), SMALL))


def choose_c(rows: Any, y: NDArray[np.int64], weights: Vector) -> float:
    """The C with the lowest log loss on rows that were left out: from small to large until it rises, then finer."""
    chosen = _some(y)
    rows, y, weights = rows[chosen], y[chosen], weights[chosen]
    folds = [_Fold(rows, y, weights, train, test) for train, test in _folds(y)]
    if not folds:
        return CHOSEN_WITHOUT
    losses: dict[float, float] = {}
    for c in COARSE:
        losses[c] = float(np.mean([fold.loss(c) for fold in folds]))
        if losses[c] > min(losses.values()):
            break
    best = min(losses, key=losses.__getitem__)
    for c in (best / FINE, best * FINE):
        losses[c] = float(np.mean([fold.loss(c) for fold in folds]))
    return min(losses, key=losses.__getitem__)


def _some(y: NDArray[np.int64]) -> NDArray[np.int64]:
    if len(y) <= ROWS:
        return np.arange(len(y))
    return np.sort(np.random.default_rng(0).permutation(len(y))[:ROWS])


def _folds(y: NDArray[np.int64]) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Train and test rows of each fold, every class in its proportion; none if no class has enough rows."""
    from sklearn.model_selection import StratifiedKFold

    counts = np.unique(y, return_counts=True)[1]
    if len(counts) < 2 or counts.max() < FOLDS:
        return []
    split = StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(np.zeros(len(y)), y)
    return [(train, test) for train, test in split if len(np.unique(y[train])) > 1]


class _Fold:
    """Rows to fit to and rows that are left out; every fit starts from the one before it."""

    def __init__(
        self, rows: Any, y: NDArray[np.int64], weights: Vector, train: NDArray[np.int64], test: NDArray[np.int64]
    ) -> None:
        self.train, self.test = (rows[train], y[train], weights[train]), (rows[test], y[test], weights[test])
        self.model = _estimator(ROUGH)

    def loss(self, c: float) -> float:
        """The mean log loss on the rows that were left out, of the classes that were fitted."""
        model = _fit(self.model.set_params(C=c), *self.train)
        rows, y, weights = self.test
        shares = model.predict_proba(rows)
        known = np.isin(y, model.classes_)  # a class of one row is in no other fold
        if not known.any():
            return np.inf
        right = shares[known][np.arange(known.sum()), np.searchsorted(model.classes_, y[known])]
        return float(np.average(-np.log(np.maximum(right, SMALL)), weights=weights[known]))


def _estimator(tolerance: float, c: float = CHOSEN_WITHOUT) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=c, tol=tolerance, max_iter=STEPS, warm_start=True)


def _fit(model: Any, rows: Any, y: NDArray[np.int64], weights: Vector) -> Any:
    import warnings

    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(rows, y, weights)
