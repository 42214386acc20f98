"""Content and address separated: what K, Q and V add to plain self-attention.

u_a, u_b, u_c, u_d are perpendicular, each of length β, and the inputs are x₁ = u_d + u_b, x₂ = u_a,
x₃ = u_c + u_b. With keys, queries and values all equal to x, x₂ scores itself β² and the others 0, so
c₂ ≈ u_a. Adding γu_d to x₂ gives x₁ the score γβ² and x₂ itself (1 + γ²)β², which is larger for every γ.
With

    V = (u_b u_bᵀ − u_c u_cᵀ)/β²      v₁ = u_b, v₂ = 0, v₃ = u_b − u_c
    K = I                             k_i = x_i
    Q = (u_d u_aᵀ + u_c u_dᵀ)/β²      q₁ = u_c finds x₃, q₂ = u_d finds x₁

the wanted scores are β², all others 0, and c₂ → u_b, c₁ → u_b − u_c as β grows.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from attnlab.base.errors import UserError
from attnlab.explore.attend import Array, softmax
from attnlab.explore.exploration import Exploration
from attnlab.explore.matrices import MOST_DIMENSIONS, check_seed

if TYPE_CHECKING:
    from matplotlib.figure import Figure


LARGEST_BETA = 1000.0  # the weights are exact from about β = 6 on; longer vectors only multiply the rounding


@dataclasses.dataclass(frozen=True, kw_only=True)
class Construction(Exploration):
    betas: Array
    basis: Array  # (4, d), u_a … u_d divided by β
    key_matrix: Array
    query_matrix: Array
    value_matrix: Array
    c2_to_ub: Array
    """‖c₂ − u_b‖ with K, Q, V, for each β."""
    c1_to_ub_uc: Array
    """‖c₁ − (u_b − u_c)‖ with K, Q, V, for each β."""
    plain_to_ua: Array
    """‖c₂ − u_a‖ without matrices."""
    plain_to_ub: Array
    """‖c₂ − u_b‖ without matrices."""
    parts: dict[str, Array]
    """Coefficients on u_a … u_d of each output, at the largest β."""

    def summary(self) -> list[tuple[str, str]]:
        return [(name, _combination(part)) for name, part in self.parts.items()]

    def table(self) -> tuple[list[str], list[list[str]]]:
        rows = zip(self.betas, self.plain_to_ua, self.plain_to_ub, self.c2_to_ub, self.c1_to_ub_uc, strict=True)
        head = ["β", "plain ‖c₂ − u_a‖", "plain ‖c₂ − u_b‖", "K,Q,V ‖c₂ − u_b‖", "K,Q,V ‖c₁ − (u_b − u_c)‖"]
        return head, [[f"{number:.4g}" for number in row] for row in rows]

    def matrices(self) -> dict[str, Array]:
        return {
            "u_a to u_d as rows, divided by β": self.basis,
            "K = I": self.key_matrix,
            "Q = (u_d u_aᵀ + u_c u_dᵀ)/β²": self.query_matrix,
            "V = (u_b u_bᵀ − u_c u_cᵀ)/β²": self.value_matrix,
        }

    def figure(self) -> Figure:
        from attnlab.explore.figures.curves import construction

        return construction(self)


def construct(betas: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0, 5.0), dimension: int = 4, seed: int = 0) -> Construction:
    """Both parts of the exercise for each β, with u_a … u_d in random perpendicular directions."""
    check_seed(seed)
    if dimension < 4:
        raise UserError(f"four perpendicular vectors need at least 4 dimensions, got {dimension}.")
    if dimension > MOST_DIMENSIONS:
        raise UserError(f"expected at most {MOST_DIMENSIONS} dimensions, got {dimension}.")
    if not betas or min(betas) <= 0 or max(betas) > LARGEST_BETA:
        raise UserError(f"β is a length: give one or more positive numbers, up to {LARGEST_BETA:g}.")
    basis = np.linalg.qr(np.random.default_rng(seed).standard_normal((dimension, dimension)))[0].T[:4]
    betas = tuple(sorted(betas))
    outputs = [_outputs(beta, basis) for beta in betas]
    a, b, c, _ = np.eye(4)

    def distances(name: str, target: Array) -> Array:
        """From coefficients on u_a … u_d to lengths: the u are perpendicular, each of length β."""
        return np.array([beta * np.linalg.norm(o[name] - target) for beta, o in zip(betas, outputs, strict=True)])

    key_matrix, query_matrix, value_matrix = matrices(basis)
    to_ub, to_ub_uc = distances("c₂ with K, Q, V", b), distances("c₁ with K, Q, V", b - c)
    return Construction(
        title="Self-attention without and with K, Q, V",
        why=(
            "In plain self-attention a token scores itself highest: x₂ scores itself β² and, with u_d or u_c added, "
            "2β² against β² for the key it should find, so c₂ stays at x₂. Separate matrices let x₂ "
            f"query for u_d, find x₁ and take only u_b from it: at β = {betas[-1]:g} the errors are "
            f"{to_ub[-1]:.1e} and {to_ub_uc[-1]:.1e}."
        ),
        betas=np.array(betas),
        basis=basis,
        key_matrix=key_matrix,
        query_matrix=query_matrix,
        value_matrix=value_matrix,
        c2_to_ub=to_ub,
        c1_to_ub_uc=to_ub_uc,
        plain_to_ua=distances("c₂ plain", a),
        plain_to_ub=distances("c₂ plain", b),
        parts=outputs[-1],
    )


def matrices(basis: Array) -> tuple[Array, Array, Array]:
    """K, Q and V; divided by β² they need only the directions of u_a … u_d."""
    a, b, c, d = basis
    return np.eye(basis.shape[1]), np.outer(d, a) + np.outer(c, d), np.outer(b, b) - np.outer(c, c)


def self_attention(inputs: Array, key_matrix: Array, query_matrix: Array, value_matrix: Array) -> Array:
    """c_i = Σ_j softmax_j(q_i·k_j) v_j with q = Qx, k = Kx, v = Vx, for inputs as rows."""
    scores = (inputs @ query_matrix.T) @ (inputs @ key_matrix.T).T
    return np.asarray(softmax(scores) @ (inputs @ value_matrix.T))


def _outputs(beta: float, basis: Array) -> dict[str, Array]:
    """Every output of the exercise as coefficients on u_a … u_d."""
    a, b, c, d = u = beta * basis
    same = np.eye(basis.shape[1])

    def coefficients(inputs: Array, parts: tuple[Array, Array, Array]) -> Array:
        return np.asarray(self_attention(inputs, *parts) @ u.T / beta**2)

    inputs = np.stack([d + b, a, c + b])
    plain = (same, same, same)
    with_matrices = coefficients(inputs, matrices(basis))
    return {
        "c₂ plain": coefficients(inputs, plain)[1],
        "c₂ with u_d added to x₂": coefficients(inputs + np.outer([0, 1, 0], d), plain)[1],
        "c₂ with u_c added to x₂": coefficients(inputs + np.outer([0, 1, 0], c), plain)[1],
        "c₂ with K, Q, V": with_matrices[1],
        "c₁ with K, Q, V": with_matrices[0],
    }


def _combination(part: Array) -> str:
    """1.000 u_b − 1.000 u_c, without terms that round to zero."""
    terms = [
        f"{'−' if x < 0 else '+'} {abs(x):.3f} u_{name}" for x, name in zip(part, "abcd", strict=True) if abs(x) >= 5e-4
    ]
    return " ".join(terms).removeprefix("+ ") or "0"
