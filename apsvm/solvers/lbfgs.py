"""L-BFGS (``quasi_newton``) for smooth convex problems, until the gradient is as small as requested."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from apsvm.solvers.quasi_newton import QuasiNewton
from apsvm.solvers.smooth import SmoothRun, SmoothSearch, Stop
from apsvm.solvers.state import State


class LBFGS(SmoothSearch):
    """See the module."""

    name: ClassVar[str] = "lbfgs"

    def search(self, run: SmoothRun) -> None:
        descent = QuasiNewton(
            run.problem,
            run.point,
            regularisation=run.regularisation,
            smooth=True,
            on_trial=lambda step, objective, slope: run.evaluated(objective=objective, step=step, slope=slope),
        )
        norm, fresh = run.point.norm, True  # the scores are still as computed
        while norm > run.target or not fresh:
            if norm <= run.target:
                # Recomputed without accumulated rounding: the gradient must be small at Xw itself.
                run.point = descent.refresh()
                norm, fresh = run.point.norm, True
                run.evaluated(objective=run.point.objective, gradient_norm=norm)
                continue
            afresh = descent.is_fresh
            if descent.step():
                norm, fresh = float(np.abs(descent.gradient).max()), False
                run.moved(descent.w, norm, descent.objective)
            elif afresh:
                raise Stop(State.STALLED)
            else:
                descent.forget()
