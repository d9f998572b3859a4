"""Nyström's features: a ranker on them approximates one with an RBF kernel (Williams and Seeger, NIPS 2000).

    φ(x) = k(x, landmarks) K^{−1/2},     k(x, y) = exp(−γ ‖z(x) − z(y)‖²),     K = k(landmarks, landmarks)

z standardises the features. The landmarks are M training rows, drawn at random. γ is 1/d for d features that are not
constant: half the mean squared distance of two standardised rows. K^{−1/2} is that of scikit-learn's ``Nystroem``, with
singular values of at least 1e-12. O(nM(d + M)); dense.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from apsvm._support.blas import one_blas_thread
from apsvm._support.types import Matrix
from apsvm.data.features import FeatureMapError, Parameter, TrainingRows
from apsvm.data.features.base import FeatureMap, check_size, checked
from apsvm.data.features.standardised import standardisation, standardised

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray

#: Smaller singular values of K are raised to this one.
LEAST_SINGULAR_VALUE = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Nystroem(FeatureMap):
    """See the module.

    Attributes
    ----------
    centre, deviation : (n_in,) float64, of the features
    landmarks : (m, n_in) float64, standardised, m ≤ M
    normalisation : (m, m) float64, K^{−1/2}
    gamma : (1,) float64
    """

    stem: ClassVar[str] = "nystroem"
    default_parameter: ClassVar[Parameter] = 300
    members: ClassVar[tuple[str, ...]] = ("centre", "deviation", "landmarks", "normalisation", "gamma")

    parameter: Parameter
    centre: NDArray[np.float64]
    deviation: NDArray[np.float64]
    landmarks: NDArray[np.float64]
    normalisation: NDArray[np.float64]
    gamma: NDArray[np.float64]

    @property
    def n_in(self) -> int:
        return self.centre.size

    @property
    def n_out(self) -> int:
        return int(self.landmarks.shape[0])

    @classmethod
    def learn(cls, rows: TrainingRows, parameter: Parameter) -> Self:
        assert isinstance(parameter, int)
        X, selection, _, rng = rows
        m, d = min(parameter, selection.size), X.shape[1]
        name = f"{cls.stem}:{parameter}"
        check_size(name, m, max(m, d), 8, f"it keeps {m:,} landmarks of {d:,} features; give it fewer")
        centre, deviation = standardisation(X, selection)
        chosen = np.sort(rng.choice(selection.size, size=m, replace=False))
        landmarks = standardised(X[selection[chosen]], centre, deviation)
        varying = int(np.count_nonzero(landmarks.any(axis=0)))
        gamma = np.array([1.0 / max(1, varying)])
        with one_blas_thread():
            U, values, V = np.linalg.svd(_kernel(landmarks, landmarks, gamma[0]))
            normalisation = (U / np.sqrt(np.maximum(values, LEAST_SINGULAR_VALUE))) @ V
        return cls(parameter, centre, deviation, landmarks, normalisation, gamma)

    def apply(self, X: Matrix) -> Matrix:
        z = standardised(X, self.centre, self.deviation)
        with one_blas_thread():
            mapped = _kernel(z, self.landmarks, self.gamma[0]) @ self.normalisation.T
        return np.ascontiguousarray(mapped, dtype=X.dtype)

    def names(self, features: Sequence[str]) -> list[str]:
        return [f"landmark {number}" for number in range(1, self.n_out + 1)]

    @classmethod
    def of_arrays(cls, n_in: int, parameter: Parameter, arrays: Mapping[str, AnyArray]) -> Self:
        centre, deviation = (checked(arrays, name, np.float64, (n_in,)) for name in ("centre", "deviation"))
        landmarks = checked(arrays, "landmarks", np.float64, (None, n_in))
        m = landmarks.shape[0]
        normalisation = checked(arrays, "normalisation", np.float64, (m, m))
        gamma = checked(arrays, "gamma", np.float64, (1,))
        if (deviation <= 0.0).any() or gamma[0] <= 0.0:
            raise FeatureMapError("a number of the arrays deviation and gamma is not above 0")
        return cls(parameter, centre, deviation, landmarks, normalisation, gamma)


def _kernel(z: NDArray[np.float64], landmarks: NDArray[np.float64], gamma: float) -> NDArray[np.float64]:
    """(k, m): exp(−γ ‖z_i − l_j‖²)."""
    squares = np.einsum("ij,ij->i", z, z)[:, None] + np.einsum("ij,ij->i", landmarks, landmarks)
    distances = squares - 2.0 * (z @ landmarks.T)
    kernel: NDArray[np.float64] = np.exp(-gamma * np.maximum(distances, 0.0))
    return kernel
