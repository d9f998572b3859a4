"""L-BFGS with SciPy's line search (Zhu, Byrd, Lu, Nocedal 1997): an evaluation costs two passes over X."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

# Here, and not where it is used: BLAS threads can be limited only once the library is loaded.
from scipy.optimize import minimize

from apsvm.solvers.smooth import Run, Search, Stop
from apsvm.solvers.state import State

#: Pairs of steps and gradient changes that are kept.
MEMORY = 10


class LBFGS(Search):
    """See the module."""

    name: ClassVar[str] = "lbfgs"

    def search(self, run: Run) -> None:
        problem = run.problem
        scores, c = np.empty(problem.n_scores), np.empty(problem.n_scores)
        norms: dict[bytes, float] = {}  # of the points since the last iteration

        def objective(w: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            loss = problem.loss(problem.scores(w, scores), c)
            value = 0.5 * run.regularisation * float(w @ w) + loss
            gradient = run.gradient(w, c)
            norm = float(np.abs(gradient).max())
            norms[w.tobytes()] = norm
            run.evaluated(objective=value, gradient_norm=norm)
            return value, gradient

        def moved(intermediate_result: Any) -> None:
            w = np.array(intermediate_result.x)
            norm = norms[w.tobytes()]
            norms.clear()
            norms[w.tobytes()] = norm
            run.moved(w, norm, float(intermediate_result.fun))

        found = minimize(
            objective,
            run.w,
            method="L-BFGS-B",
            jac=True,
            callback=moved,
            options={
                "maxcor": MEMORY,
                "gtol": run.asked,
                "ftol": 0.0,
                # The limits are the run's own.
                "maxiter": 2**31 - 1,
                "maxfun": 2**31 - 1,
            },
        )
        if norms.get(found.x.tobytes(), np.inf) > run.asked:
            raise Stop(State.STALLED)
