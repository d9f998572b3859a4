"""The ramp of structured estimation (Chapelle, Do, Le, Smola, Teo 2008), a non-convex bound on the loss:

    h − g,     h(w) = max_R [Δ(R*, R) + w·Ψ(R) − w·Ψ(R*)],   g(w) = max_R w·Ψ(R) − w·Ψ(R*)

It lies between Δ of the ranking by score and the hinge h; h and g are convex.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from apsvm._support.clock import Spans
from apsvm.risk.rankings import Account, Risk
from apsvm.solvers.score_space import Majoriser, ScoreFunction, Tangent


class Ramp(ScoreFunction):
    """h − g as a function of the scores, for h = ``hinge``; its parts are ``hinge`` and ``by_score``."""

    def __init__(self, hinge: Risk) -> None:
        self.hinge = hinge
        self.by_score = hinge.by_score()

    @property
    def n_scores(self) -> int:
        return self.hinge.n_scores

    @property
    def lower_bound(self) -> float:
        """0 ≤ Δ of the ranking by score."""
        return 0.0

    def scores(self, w: NDArray[np.float64], out: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        return self.hinge.scores(w, out)

    def tangent(self, scores: NDArray[np.float64], slopes: NDArray[np.float64]) -> Tangent:
        return Tangent(self.hinge.less(self.by_score, scores, slopes))

    def combine(self, slopes: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.hinge.combine(slopes)

    @property
    def convex(self) -> ScoreFunction:
        """h, or the convex part of h."""
        return self.hinge.convex

    def majoriser(self, scores: NDArray[np.float64]) -> Majoriser:
        """The majoriser of h minus the tangent of g, c·s'."""
        of_hinge, slopes = self.hinge.majoriser(scores), np.empty(self.n_scores)
        value = of_hinge.value - self.by_score.tangent(scores, slopes).value
        return of_hinge._replace(value=value, slopes=slopes)

    def hold(self, held: NDArray[np.int64] | None) -> Callable[[NDArray[np.float64]], NDArray[np.float64]] | None:
        return self.hinge.hold(held)

    def account(self) -> Account:
        """Oracle calls of the hinge since the last account, and the time of the parts."""
        hinge, order = self.hinge.account(), self.by_score.account()
        return Account(hinge.calls, Spans({**hinge.spans, "by score": order.parts()["oracle"]}))
