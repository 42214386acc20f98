"""Recover one term of a sum: if v_a and v_b are in subspaces that share no direction, one matrix recovers v_a.

With orthonormal bases as the columns of A and B, and A ⊥ B:

    M = A Aᵀ,    M (v_a + v_b) = A Aᵀ A c + A (AᵀB) e = A c = v_a,

and 2 A Aᵀ for the mean ½(v_a + v_b). If the subspaces are not perpendicular, projecting along B does it:
M = [A 0] [A B]⁺, which is A Aᵀ when AᵀB = 0.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from attnlab.base.errors import UserError
from attnlab.explore.attend import Array, largest_difference
from attnlab.explore.exploration import Exploration, vector
from attnlab.explore.matrices import MOST_DIMENSIONS, check_seed, takes_numbers

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclasses.dataclass(frozen=True, kw_only=True)
class Extraction(Exploration):
    basis_a: Array  # (m, d), orthonormal rows
    basis_b: Array  # (p, d)
    matrix: Array  # (d, d)
    of_mean: bool
    perpendicular: bool
    wanted: Array  # (trials, d), the v_a drawn
    mixed: Array  # (trials, d), the inputs of M
    recovered: Array  # (trials, d)

    derived = ("error",)

    @property
    def error(self) -> float:
        """The largest difference between v_a and what M recovers, over all trials."""
        return largest_difference(self.recovered, self.wanted)

    def summary(self) -> list[tuple[str, str]]:
        (m, d), p = self.basis_a.shape, len(self.basis_b)
        return [
            ("subspaces", f"A of dimension {m}, B of dimension {p}, in {d} dimensions"),
            ("trials", str(len(self.wanted))),
            ("error", f"{self.error:.3g}"),
        ]

    def table(self) -> tuple[list[str], list[list[str]]]:
        mixed = "½(v_a + v_b)" if self.of_mean else "v_a + v_b"
        rows = list(zip(self.wanted, self.mixed, self.recovered, strict=True))[:3]
        return ["v_a", mixed, "recovered"], [[vector(a), vector(s), vector(r)] for a, s, r in rows]

    @property
    def formula(self) -> str:
        matrix = "A Aᵀ" if self.perpendicular else "[A 0] [A B]⁺"
        return f"M = 2 {matrix}" if self.of_mean else f"M = {matrix}"

    def matrices(self) -> dict[str, Array]:
        return {self.formula: self.matrix}

    def figure(self) -> Figure:
        from attnlab.explore.figures.samples import extraction

        return extraction(self)


@takes_numbers
def extract(basis_a: Array, basis_b: Array, of_mean: bool = False, trials: int = 100, seed: int = 0) -> Extraction:
    """The matrix that recovers v_a from v_a + v_b (or their mean), tested on random vectors of the subspaces.

    The bases are rows. They need not be orthonormal: only the subspace they span matters.
    """
    if basis_a.shape[1] != basis_b.shape[1]:
        raise UserError(
            f"the basis of A has {basis_a.shape[1]} dimensions and that of B has {basis_b.shape[1]}: make them equal."
        )
    check_seed(seed)
    a, b = orthonormal(basis_a, "A"), orthonormal(basis_b, "B")
    perpendicular = bool(np.abs(a @ b.T).max() < 1e-10)
    matrix = extractor(a, b, perpendicular) * (2.0 if of_mean else 1.0)
    draw = np.random.default_rng(seed)
    v_a, v_b = draw.standard_normal((trials, len(a))) @ a, draw.standard_normal((trials, len(b))) @ b
    mixed = (v_a + v_b) * (0.5 if of_mean else 1.0)
    result = Extraction(
        title=f"Extract v_a from the {'mean' if of_mean else 'sum'} of two vectors",
        why="",
        basis_a=a,
        basis_b=b,
        matrix=matrix,
        of_mean=of_mean,
        perpendicular=perpendicular,
        wanted=v_a,
        mixed=mixed,
        recovered=mixed @ matrix.T,
    )
    if perpendicular:
        why = f"A ⊥ B, so {result.formula} keeps the part in A and removes the part in B."
    else:
        why = f"A and B are not perpendicular, so M projects onto A along B: {result.formula}."
    return dataclasses.replace(result, why=why)


def extractor(basis_a: Array, basis_b: Array, perpendicular: bool) -> Array:
    """A Aᵀ, or the oblique projection onto A along B, from orthonormal rows."""
    if perpendicular:
        return np.asarray(basis_a.T @ basis_a)
    both = np.vstack([basis_a, basis_b])
    sizes = np.linalg.svd(both, compute_uv=False)
    if len(both) > both.shape[1] or sizes.min() < 1e-9:
        raise UserError("A and B share a direction: a vector along it is in both, so no matrix recovers v_a.")
    return np.asarray(basis_a.T @ np.linalg.pinv(both.T)[: len(basis_a)])


def orthonormal(basis: Array, name: str) -> Array:
    """Orthonormal rows that span the same subspace."""
    _, sizes, directions = np.linalg.svd(basis, full_matrices=False)
    rank = int((sizes > 1e-12 * max(basis.shape) * sizes.max()).sum())
    if rank < len(basis):
        raise UserError(f"the rows given for {name} are not independent: expected rank {len(basis)}, got {rank}.")
    if np.abs(basis @ basis.T - np.eye(len(basis))).max() < 1e-10:
        return basis  # already orthonormal: keep its vectors
    return np.asarray(directions)


def random_subspaces(dimension: int, m: int, p: int, seed: int = 0) -> tuple[Array, Array]:
    """Perpendicular random subspaces of dimensions m and p, as orthonormal rows."""
    if m < 1 or p < 1 or m + p > dimension:
        raise UserError(
            f"subspaces of dimensions {m} and {p} do not fit: each needs at least one dimension, and together "
            f"they can have at most {dimension}."
        )
    if dimension > MOST_DIMENSIONS:
        raise UserError(f"expected at most {MOST_DIMENSIONS} dimensions, got {dimension}.")
    check_seed(seed)
    square = np.random.default_rng(seed).standard_normal((dimension, dimension))
    directions = np.linalg.qr(square)[0].T
    return directions[:m], directions[m : m + p]
