"""AP-SVM-APPX (Mohapatra et al. 2014, §3.3): the AP loss over the difficult rows, the easy ones held correct.

Stage 1 trains a binary SVM w0. Its easy rows have y w0·x ≥ 1; the top k % of them by y w0·x stay easy, the rest joins
the difficult rows X_d. If X_d then has no pair to rank, all rows are difficult. Stage 2, equation (10):

    min ½‖w‖² + C·risk(w; X_d)   subject to   y w·x ≥ 1 on the easy rows

The constraints are hard and generated as they are violated. w0 satisfies them all, so a point that violates some is
made feasible by moving it towards w0 or by scaling it up, whichever moves it less; primal values are taken there. The
certificate holds for this restricted problem and is marked as approximate for the AP loss over all rows. The easy rows
depend on how exactly stage 1 is solved, since rows near the margin 1 change sides.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from apsvm.data.row_operator import RowOperator
from apsvm.losses.base import Loss
from apsvm.losses.zero_one import ZeroOneLoss
from apsvm.oracles import make_oracle
from apsvm.risk import NothingToRankError, Ramp, require_pairs
from apsvm.solvers.cutting_plane import Restoration
from apsvm.trainers.base import TrainingSet, Watch
from apsvm.trainers.structured_svm.descent import Descent, Weights
from apsvm.trainers.structured_svm.objective import risk_of
from apsvm.trainers.structured_svm.problem import go_down, trained_by
from apsvm.trainers.structured_svm.settings import StructuredSettings
from apsvm.trainers.structured_svm.stage import Stage, StageReport, Trained

#: Constraints generated in one iteration, the most violated first.
BATCH = 10
#: A margin this close to 1 needs no constraint; the restored point corrects it.
MARGIN_TOLERANCE = 1e-9


def solve_approximately(
    data: TrainingSet,
    loss: Loss,
    settings: StructuredSettings,
    C: float,
    watch: Watch,
    began: float,
    *,
    oracle: str = "auto",
) -> Trained:
    """Solve for C, with a loss of two arrays; ``settings.keep_easy`` is k, the percentage (0..100) of the easy rows
    that stay easy.

    The difficult rows are solved by ``oracle``; ``settings.oracle`` is ignored. ``began``: start time of the training.
    Raises as ``training.train``.
    """
    relevant, dimension = data.target.relevant, data.rows.dimension
    require_pairs(relevant, data.queries)
    zero_one = ZeroOneLoss()
    of_all = risk_of(data, zero_one, make_oracle("auto", zero_one))
    binary_stage = Stage(of_all, dimension, settings, watch, oracle=of_all.oracle.name)
    binary = binary_stage.run("binary", C, seconds_used=time.perf_counter() - began)
    w0 = binary.solution.w
    margins = np.where(relevant, 1.0, -1.0) * data.rows.scores(w0)
    easy = _easiest(margins, settings.keep_easy)
    difficult = data.select(np.setdiff1d(np.arange(margins.size), easy))
    chosen = make_oracle(oracle, loss)
    try:
        risk = risk_of(difficult, loss, chosen, count_ranks=settings.log_ranks)
    except NothingToRankError:
        easy, difficult = easy[:0], data
        risk = risk_of(data, loss, chosen, count_ranks=settings.log_ranks)
    constraints = None
    if easy.size:
        constraints = EasyRows(data.rows.select(easy), np.where(relevant[easy], 1.0, -1.0), w0)
    stage = Stage(risk, dimension, settings, watch, oracle=chosen.name, start=w0, constraints=constraints)
    descents = [Descent("difficult", risk, stage, settings, watch)]
    if settings.bound == "tight":
        # Only by rounds: rescaling w would break the constraints.
        descents.append(Descent("tight", Ramp(risk), stage, settings, watch))

    def starts(C: float, before: Weights | None, last: StageReport | None) -> dict[str, Weights]:
        return {"": w0 if last is None else last.solution.w}

    reports = go_down(descents, starts, C, None, began)
    trained = trained_by(reports, exact=False, queries=risk.queries, skipped=risk.queries_skipped)
    notes = [f"{easy.size} rows held easy, {difficult.n} difficult"]
    return replace(trained, stages=[binary, *reports], notes=notes)


def _easiest(margins: NDArray[np.float64], keep_easy: float) -> NDArray[np.int64]:
    """Ascending row numbers of the top ``keep_easy`` % of the rows with margin ≥ 1, by margin."""
    candidates = np.flatnonzero(margins >= 1.0)
    count = round(candidates.size * keep_easy / 100.0)
    top = np.argsort(-margins[candidates], kind="stable")[:count]
    return np.sort(candidates[top])


class EasyRows:
    """The constraints y w·x ≥ 1, as planes −y x·w + 1 ≤ 0.

    Parameters
    ----------
    rows : m rows
    signs : (m,) float64, y
    interior : (dimension,) float64, a point that satisfies them all
    """

    def __init__(self, rows: RowOperator, signs: NDArray[np.float64], interior: NDArray[np.float64]) -> None:
        self._rows = rows
        self._signs = signs
        self._interior = interior
        self._interior_margins = signs * rows.scores(interior)

    def __call__(self, w: NDArray[np.float64]) -> Restoration:
        margins = self._signs * self._rows.scores(w)
        worst = np.argsort(margins, kind="stable")[:BATCH]
        worst = worst[margins[worst] < 1.0 - MARGIN_TOLERANCE]
        planes = np.empty((worst.size, w.size))
        for at, row in enumerate(worst):
            planes[at] = self._rows.select(np.array([row])).combine(np.array([-self._signs[row]]))
        return Restoration(self._restore(w, margins), planes, np.ones(worst.size))

    def _restore(self, w: NDArray[np.float64], margins: NDArray[np.float64]) -> NDArray[np.float64]:
        lacking = margins < 1.0
        if not lacking.any():
            return w
        # (1−θ) m + θ m0 ≥ 1 with m0 ≥ 1: θ = (1−m)/(m0−m), at most 1.
        towards = float(((1.0 - margins) / (self._interior_margins - margins))[lacking].max())
        smallest = float(margins.min())
        if smallest > 0.0 and 1.0 / smallest - 1.0 < towards:
            return w / smallest
        return (1.0 - towards) * w + towards * self._interior
