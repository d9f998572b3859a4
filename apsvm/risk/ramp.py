"""The ramp of structured estimation (Chapelle, Do, Le, Smola, Teo 2008), a bound on the loss that is not convex:

    h − g,     h(w) = max_R [Δ(R*, R) + w·Ψ(R) − w·Ψ(R*)],   g(w) = max_R w·Ψ(R) − w·Ψ(R*)

It lies between Δ of the ranking by score and the hinge h; h and g are convex.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from apsvm.clock import Span
from apsvm.risk.rankings import OracleCall, Risk
from apsvm.score_space import ArrayVectors, ScoreFunction, Tangent


class Ramp(ScoreFunction[NDArray[np.float64]]):
    """h − g as a function of the scores, for h = ``hinge``; its parts are ``hinge`` and ``by_score``."""

    def __init__(self, hinge: Risk) -> None:
        self.hinge = hinge
        self.by_score = hinge.by_score()

    @property
    def n_scores(self) -> int:
        return self.hinge.n_scores

    @property
    def vectors(self) -> ArrayVectors:
        return self.hinge.vectors

    @property
    def lower_bound(self) -> float:
        """0 ≤ Δ of the ranking by score."""
        return 0.0

    def scores(self, w: NDArray[np.float64], out: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        return self.hinge.scores(w, out)

    def tangent(self, scores: NDArray[np.float64], slopes: NDArray[np.float64]) -> Tangent:
        h = self.hinge.tangent(scores, slopes).value
        return Tangent(h - self.by_score.subtract(scores, slopes))

    def combine(self, slopes: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.hinge.combine(slopes)

    def account(self) -> tuple[list[OracleCall], dict[str, Span]]:
        """The hinge's oracle calls since the last time, and the time of the parts."""
        hinge, order = self.hinge.account(), self.by_score.account()
        spans = {
            "scores": hinge.spans.parts.get("scores", Span()),
            "oracle": sum((call.span for call in hinge.calls), Span()),
            "by score": sum((call.span for call in order.calls), order.spans.parts.get("gradient", Span())),
            "gradient": hinge.spans.parts.get("gradient", Span()),
        }
        return hinge.calls, spans
