"""The risk of a network as a function of one layer's weights, made convex at a point; the other layers are held.

With W the weights of the layer and z = W·h of a row's inputs h, the score is a difference f = a(z) − b(z) of functions
convex in W. Layer by layer upwards, each number is kept as p − q, both convex, at first p = z and q = 0:

    max(0, p − q) = max(p, q) − q,        V(p − q) + v = (V⁺p + V⁻q + v) − (V⁺q + V⁻p),    V = V⁺ − V⁻

The most violated ranking lowers positives and raises negatives. So b of the negatives and a of the positives are
replaced by their tangents at W_t:

    f̃ = tangent of a − b  of positives (concave, ≤ f),        f̃ = a − tangent of b  of negatives (convex, ≥ f),

hinge(f̃) is convex in W, nowhere below hinge(f), and equal to it at W_t (layer-wise SVM of Berrada, Zisserman and Kumar
2017). A concave-convex round minimises it. The solver sees the z as scores, which are linear in W.

An evaluation is a pass through the layers above and an oracle call; O(rows · weights of the layers from W on).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from apsvm._support.clock import Spans
from apsvm.data.row_operator import RowOperator
from apsvm.losses.base import Loss
from apsvm.oracles.base import AnyOracle
from apsvm.oracles.layout import Layout
from apsvm.risk.rankings import Account, Risk, bind_risk
from apsvm.solvers.score_space import ScoreFunction, Tangent


def make_risk_of_scores(
    rows: RowOperator, layout: Layout, loss: Loss, oracle: AnyOracle
) -> tuple[Risk, NDArray[np.int64]]:
    """Risk of scores, which ``LayerRisk`` applies to the scores of a net with these rows, and the numbers (m,) of the
    rows in its order. A row between two grades occurs once as a positive and once as a negative."""
    apart = layout.levels_apart()
    return bind_risk(rows.select(apart.members), apart, loss, oracle, counted=layout.queries), apart.members


class LayerRisk(ScoreFunction):
    """See the module.

    Parameters
    ----------
    risk : of m scores
    inputs : (m, in) float64, inputs of the layer in the same order, with the constant if the layer has one
    above : weights (out, in) and bias (out,) of each layer above; each is preceded by rectified linear units
    weights : (out, in) float64, W_t, the point at which it equals the risk of the net
    """

    def __init__(
        self,
        risk: Risk,
        inputs: NDArray[np.float64],
        above: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]],
        weights: NDArray[np.float64],
    ) -> None:
        self._risk, self._positive = risk, risk.layout.positive
        self._inputs = inputs
        self._shape = weights.shape
        self._above = [_Signed(np.maximum(V, 0.0), np.maximum(-V, 0.0), v) for V, v in above]
        self._spans = Spans()
        z = inputs @ weights.T
        a, b, active = self._upwards(z)
        # Positives use the tangent of a, negatives that of −b.
        self._slope = self._downwards(active, np.where(self._positive, 1.0, 0.0), np.where(self._positive, 0.0, -1.0))
        self._constant = np.where(self._positive, a, -b) - np.einsum("ij,ij->i", self._slope, z)

    @property
    def n_scores(self) -> int:
        return int(self._inputs.shape[0]) * int(self._shape[0])

    @property
    def lower_bound(self) -> float:
        return self._risk.lower_bound

    def scores(self, w: NDArray[np.float64], out: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """The z of all rows, row by row: (m·out,) float64, for w (out·in,)."""
        out = np.empty(self.n_scores) if out is None else out
        with self._spans["scores"]:
            np.matmul(self._inputs, w.reshape(self._shape).T, out=out.reshape(-1, self._shape[0]))
        return out

    def tangent(self, scores: NDArray[np.float64], slopes: NDArray[np.float64]) -> Tangent:
        z = scores.reshape(-1, self._shape[0])
        with self._spans["scores"]:
            a, b, active = self._upwards(z)
            f = self._constant + np.einsum("ij,ij->i", self._slope, z) + np.where(self._positive, -b, a)
        c = np.empty(f.size)
        value = self._risk.tangent(f, c).value
        with self._spans["gradient"]:
            curved = self._downwards(active, np.where(self._positive, 0.0, c), np.where(self._positive, -c, 0.0))
            np.add(curved, c[:, None] * self._slope, out=slopes.reshape(z.shape))
        return Tangent(value)

    def combine(self, slopes: NDArray[np.float64]) -> NDArray[np.float64]:
        with self._spans["gradient"]:
            return (slopes.reshape(-1, self._shape[0]).T @ self._inputs).ravel()

    def account(self) -> Account:
        """Work since the last call."""
        account, spans = self._risk.account(), self._spans
        self._spans = Spans()
        return Account(account.calls, spans)

    def _upwards(
        self, z: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], list[NDArray[np.bool_]]]:
        """a and b, (m,) each, and for each layer above a mask of p > q."""
        p, q = z, np.zeros_like(z)
        active = []
        for layer in self._above:
            active.append(p >= q)
            larger = np.maximum(p, q)
            p, q = (
                larger @ layer.positive.T + q @ layer.negative.T + layer.bias,
                q @ layer.positive.T + larger @ layer.negative.T,
            )
        return p[:, 0], q[:, 0], active

    def _downwards(
        self, active: Sequence[NDArray[np.bool_]], of_a: NDArray[np.float64], of_b: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Slope in z, (m, out), of of_a·a + of_b·b, row by row."""
        p, q = of_a[:, None], of_b[:, None]
        for layer, p_is_larger in zip(reversed(self._above), reversed(active), strict=True):
            larger = p @ layer.positive + q @ layer.negative
            q = p @ layer.negative + q @ layer.positive + np.where(p_is_larger, 0.0, larger)
            p = np.where(p_is_larger, larger, 0.0)
        return p


class _Signed(NamedTuple):
    """A layer's weights, split into positive and negative parts."""

    positive: NDArray[np.float64]
    negative: NDArray[np.float64]
    bias: NDArray[np.float64]
