"""Every loss of the registry trains, to its certificate, and better than at w = 0."""

from __future__ import annotations

import numpy as np
import pytest
from over import over
from trainings import make_risk, train_svm, training_set

from apsvm.data.rows import Rows
from apsvm.losses import LOSSES, make_loss
from apsvm.oracles import make_oracle


@over("name", [LOSSES[form]().name for form in LOSSES])
@over("queries", [1, 7])
def test_every_loss_trains(name, queries, rng):
    n, C = 210, 1000.0
    relevant = rng.random(n) < 0.2
    X = rng.normal(size=(n, 6)) + 1.5 * relevant[:, None]
    groups = None if queries == 1 else rng.permutation(np.repeat(np.arange(queries), n // queries))
    rows = Rows(X, bias=1.0)
    trained = train_svm(training_set(rows, relevant, groups), name, C=C, epsilon=1e-3)
    certificate = trained.solution.certificate
    assert trained.solution.state == "converged"
    assert -1e-9 * C <= certificate.gap <= 1e-3 * C
    loss = make_loss(name)
    risk = make_risk(rows, relevant, loss, make_oracle("auto", loss), groups=groups)
    assert risk.queries == (queries if loss.by_query else 1)
    w = trained.w
    assert 0.5 * w @ w + C * risk(w).value == pytest.approx(certificate.primal, rel=1e-9)
    assert certificate.primal < 0.99 * C * risk(np.zeros_like(w)).value
    # Convex in w, and its plane touches it: the minimum lies above the plane's own.
    for _ in range(20):
        there = w + rng.normal(size=w.size)
        here = risk(w)
        assert risk(there).value >= here.plane @ there + here.offset - 1e-12
