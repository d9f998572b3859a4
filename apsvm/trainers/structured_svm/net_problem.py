"""Training problem of a network: standardised rows, the risk of their scores, held-out rows, and an initial net."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from apsvm._support import sparse as sp
from apsvm._support.machine import memory
from apsvm.data.dataset import several_queries
from apsvm.data.features.scaling import Scaling, learn_scaling
from apsvm.data.rows import Rows
from apsvm.losses import make_loss
from apsvm.losses.base import Loss
from apsvm.models.net import Layer, Net
from apsvm.oracles import make_oracle
from apsvm.oracles.base import AnyOracle
from apsvm.risk import Risk, loss_by_order, make_risk_of_scores
from apsvm.trainers.base import TrainingError, TrainingSet
from apsvm.trainers.structured_svm.objective import layout_of
from apsvm.trainers.structured_svm.settings import StructuredSettings

#: Share of rows, or queries, held out, and the minimum of each kind among them.
HELD_OUT = 0.25
FEWEST_HELD_OUT = 3
#: Epochs of the log loss; number of successive epochs without progress that end it; the least progress.
MOST_EPOCHS, EPOCHS_OF_PATIENCE, LEAST_OF_AN_EPOCH = 200, 10, 1e-4
#: Steps of an epoch, and the minimum number of rows a step.
STEPS_OF_AN_EPOCH, FEWEST_OF_A_STEP, MOST_OF_A_STEP = 20, 16, 200
#: Values farther from their mean, in deviations, are too large for a net.
LARGEST = 1e100


@dataclass(frozen=True, slots=True, eq=False)
class NetProblem:
    """Standardised training rows and held-out rows, and the risk.

    Attributes
    ----------
    inputs, relevant : (n, d) float64 and (n,) bool, the training rows
    risk, members : risk of their scores, and the rows (m,) int64 in its order
    held_out : the held-out rows, or None
    judge : the loss that judges held-out rows
    """

    inputs: NDArray[np.float64]
    relevant: NDArray[np.bool_]
    scaling: Scaling
    oracle: AnyOracle
    risk: Risk
    members: NDArray[np.int64]
    held_out: TrainingSet | None
    judge: Loss

    @classmethod
    def of(cls, data: TrainingSet, loss: Loss, settings: StructuredSettings) -> NetProblem:
        if not loss.by_query:
            data = replace(data, queries=None)
        training, test = held_out_part(data, settings.seed)
        X, scaling = standardised(data, training)
        data = replace(data, rows=Rows(X, threads=data.rows.threads))
        part = data.select(training)
        oracle = make_oracle(settings.oracle, loss)
        risk, members = make_risk_of_scores(part.rows, layout_of(part, loss), loss, oracle)
        relevant = part.target.relevant
        if part.target.grades is not None and relevant.all():  # the log loss needs two classes
            relevant = part.target.grades > part.target.grades.min()
        judge = loss if loss.over_rankings or loss.over_labellings else make_loss("ap")
        held_out = data.select(test) if test.size else None
        return cls(X[training], relevant, scaling, oracle, risk, members, held_out, judge)

    def risk_of(self, net: Net) -> float:
        """Risk of a net on the training rows."""
        scores = outputs_of(net.layers, self.inputs)[:, 0]
        value = self.risk.tangent(scores[self.members], np.empty(self.members.size)).value
        self.risk.account()  # evaluations are not part of the training
        return value

    def loss_of(self, net: Net) -> float | None:
        """Loss of a net on the held-out rows."""
        data = self.held_out
        if data is None:
            return None
        assert isinstance(data.rows, Rows)
        return loss_by_order(self.judge, net.scores(data.rows), data.target, data.queries, data.query_weights)


def outputs_of(layers: Sequence[Layer], X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Outputs (n, out) of the last layer, for the rows X (n, in)."""
    for number, layer in enumerate(layers):
        X = (np.maximum(X, 0.0) if number else X) @ layer.weights.T + layer.bias
    return X


def held_out_part(data: TrainingSet, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Training rows and held-out rows, ascending int64: whole queries, or rows of each class. None are held out if
    there are too few."""
    rng = np.random.default_rng(seed)
    relevant, unit = data.target.relevant, np.arange(data.n)
    strata = [np.flatnonzero(relevant), np.flatnonzero(~relevant)]
    if several_queries(data.queries):
        _, unit = np.unique(data.queries, return_inverse=True)
        ranked = np.bincount(unit, relevant) * np.bincount(unit, ~relevant) > 0
        strata = [np.flatnonzero(ranked), np.flatnonzero(~ranked)]
    counts = [round(HELD_OUT * stratum.size) for stratum in strata]
    of_rows = strata[0].size + strata[1].size == data.n
    if min(counts if of_rows else counts[:1]) < FEWEST_HELD_OUT:
        return np.arange(data.n), np.arange(0)
    chosen = np.concatenate([rng.permutation(part)[:count] for part, count in zip(strata, counts, strict=True)])
    held_out = np.isin(unit, chosen)
    return np.flatnonzero(~held_out), np.flatnonzero(held_out)


def standardised(data: TrainingSet, training: NDArray[np.int64]) -> tuple[NDArray[np.float64], Scaling]:
    """All rows, (n, d) float64, standardised by the rows ``training``, and the scaling."""
    if not isinstance(data.rows, Rows):
        raise TrainingError("a network is trained on rows in memory")
    matrix, selection = data.rows.in_memory()
    n, d = selection.size, matrix.shape[1]
    if d == 0:
        raise TrainingError("rows without features: a network has nothing to learn from")
    if 4 * 8 * n * d > memory():  # training rows are copied twice: alone, and with those held out
        raise TrainingError(f"a network needs dense rows, and {n:,} rows of {d:,} features do not fit in memory")
    X = matrix[selection]
    X = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        scaling = learn_scaling("standard", X, training)
        assert scaling.centre is not None
        assert scaling.divisors is not None
        X = (X - scaling.centre) / scaling.divisors
        if not np.abs(X).max(initial=0.0) <= LARGEST:
            raise FloatingPointError("feature values are too large for a network: scale them down")
    return X, scaling


def log_loss_net(
    X: NDArray[np.float64],
    relevant: NDArray[np.bool_],
    hidden: Sequence[int],
    seed: int,
    *,
    stop: Callable[[], bool] = lambda: False,
) -> Net:
    """Train a net by Adam on the log loss of relevant against other rows, until it no longer falls.

    Parameters
    ----------
    X : (n, d) float64, standardised
    relevant : (n,) bool
    stop : called between epochs
    """
    from sklearn.neural_network import MLPClassifier

    rows_of_a_step = min(max(len(X) // STEPS_OF_AN_EPOCH, FEWEST_OF_A_STEP), MOST_OF_A_STEP)
    net = MLPClassifier(tuple(hidden), random_state=seed, batch_size=min(rows_of_a_step, len(X)))
    lowest, since = np.inf, 0
    for _ in range(MOST_EPOCHS):
        net.partial_fit(X, relevant, classes=[False, True])
        since = 0 if net.loss_ < lowest - LEAST_OF_AN_EPOCH else since + 1
        lowest = min(lowest, net.loss_)
        if since >= EPOCHS_OF_PATIENCE or stop():
            break
    layers = zip(net.coefs_, net.intercepts_, strict=True)
    return Net(tuple(Layer(np.ascontiguousarray(weights.T), bias) for weights, bias in layers))
