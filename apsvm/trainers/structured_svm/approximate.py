"""AP-SVM-APPX (Mohapatra et al. 2014, §3.3): the AP loss over the difficult rows, the easy ones held correct.

Stage 1 trains a binary SVM w0. Its easy rows have y w0·x ≥ 1; the top k % of them by y w0·x stay easy, the rest joins
the difficult rows X_d. Stage 2, equation (10):

    min ½‖w‖² + C·risk(w; X_d)   subject to   y w·x ≥ 1 on the easy rows

The constraints are hard and generated as they are violated. w0 satisfies them all, so a point that violates some is
made feasible by moving it towards w0 or by scaling it up, whichever moves it less; primal values are taken there. The
certificate is of this restricted problem: for the AP loss over all rows it is an approximation, and is called so.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from apsvm.data.row_operator import RowOperator
from apsvm.losses.base import Loss
from apsvm.losses.zero_one import ZeroOneLoss
from apsvm.oracles import make_oracle
from apsvm.risk import NoRisk, NothingToRankError, Risk, make_risk, require_pairs
from apsvm.solvers.cutting_plane import Restoration
from apsvm.solvers.state import State
from apsvm.trainers.base import TrainingSet, Watch
from apsvm.trainers.structured_svm.settings import StructuredSettings
from apsvm.trainers.structured_svm.stage import Path, Stage, Trained, along_path
from apsvm.trainers.structured_svm.tight_bound import TightBound
from apsvm.trainers.structured_svm.training import train_path
from apsvm.work import UNSTORED

#: Constraints generated in one iteration, the most violated first.
BATCH = 10
#: A margin this close to 1 is not worth a constraint; the restored point makes up for it.
MARGIN_TOLERANCE = 1e-9


def train_approximate(
    data: TrainingSet, loss: Loss, settings: StructuredSettings, C: float, watch: Watch, *, oracle: str = "auto"
) -> Trained:
    """Train on ``data``, by a loss of two arrays; ``settings.keep_easy`` is the seed's k, the percentage (0..100) of
    the easy rows that stay easy.

    The difficult rows are solved by ``oracle``; ``settings.oracle`` is ignored. Raises as ``train_path``.
    """
    require_pairs(data.target.relevant, data.queries)

    def solve(C: float, path: Path) -> tuple[Trained, None]:
        return _trained(data, loss, settings, C, replace(watch, strand=UNSTORED), oracle), None

    (trained,) = along_path([C], watch, f"approximate, {loss.name}, {settings.bound}", solve)
    return trained


def _trained(
    data: TrainingSet, loss: Loss, settings: StructuredSettings, C: float, watch: Watch, oracle: str
) -> Trained:
    relevant = data.target.relevant
    (binary,) = train_path(
        data, ZeroOneLoss(), replace(settings, oracle="auto", bound="hinge"), [C], watch, stage="binary"
    )
    stage_one = binary.stages[0]
    w0 = binary.w
    margins = np.where(relevant, 1.0, -1.0) * data.rows.scores(w0)
    easy = _easiest(margins, settings.keep_easy)
    difficult = np.setdiff1d(np.arange(margins.size), easy)

    chosen = make_oracle(oracle, loss)
    notes = [f"{easy.size} rows held easy, {difficult.size} difficult"]
    groups = None if data.queries is None else data.queries[difficult]
    risk: Risk | NoRisk
    try:
        risk = make_risk(
            data.rows.select(difficult),
            relevant[difficult],
            loss,
            chosen,
            groups=groups,
            query_weights=data.query_weights,
            count_ranks=settings.log_ranks,
        )
    except NothingToRankError:
        notes.append("the difficult rows hold no pair to rank; only the easy rows' constraints are left")
        risk = NoRisk(data.rows.dimension)
    constraints = None
    if easy.size:
        constraints = EasyRows(data.rows.select(easy), np.where(relevant[easy], 1.0, -1.0), w0)
    stage = Stage(
        "difficult",
        risk,
        data.rows.dimension,
        settings,
        watch,
        oracle=chosen.name,
        start=w0,
        constraints=constraints,
    )
    report = stage.run(C, seconds_used=stage_one.solution.seconds)
    trained = Trained(report.solution.w, [stage_one, report], False, risk.queries, risk.queries_skipped, notes)
    if settings.bound == "tight" and isinstance(risk, Risk) and trained.state is State.CONVERGED:
        # Another length of w would break the constraints.
        bound = TightBound(stage, risk, settings, watch, may_leave=False)
        trained = bound.tighten(trained, C, seconds_used=stage_one.solution.seconds + report.solution.seconds)
    return trained


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
