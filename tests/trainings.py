"""Trainers called with arrays: the loss by name, the settings by name, no word of files or labels.

Settings go through the family's own checks (``apsvm.trainers.base.Trainer``), what is returned is the algorithm's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apsvm.data.labels import Target, graded, of_relevance
from apsvm.data.rows import Rows
from apsvm.losses.base import Loss
from apsvm.models.items import ItemFactors
from apsvm.oracles.base import AnyOracle
from apsvm.oracles.layout import lay_out
from apsvm.risk import Risk, bind_risk
from apsvm.solvers.sgd import DescentOutcome
from apsvm.trainers.base import TrainingSet, Watch
from apsvm.trainers.rank_ncg import descent as rank_ncg
from apsvm.trainers.rank_ncg.descent import TrainedPairs
from apsvm.trainers.rank_ncg.preferences import GRAPHS, Classes, PreferenceGraph
from apsvm.trainers.rank_ncg.settings import RankNCGSettings
from apsvm.trainers.rank_ncg.trainer import RankNCGTrainer
from apsvm.trainers.structured_svm import training as structured_svm
from apsvm.trainers.structured_svm.plan import Plan
from apsvm.trainers.structured_svm.settings import StructuredSettings
from apsvm.trainers.structured_svm.stage import Trained
from apsvm.trainers.structured_svm.trainer import StructuredSVMTrainer
from apsvm.trainers.warp import descent as warp
from apsvm.trainers.warp import item_factors
from apsvm.trainers.warp.settings import WarpSettings
from apsvm.trainers.warp.trainer import WarpTrainer

Weights = NDArray[np.float64]


def training_set(
    X: Any,
    relevant: NDArray[np.bool_],
    queries: NDArray[np.int64] | None = None,
    *,
    grades: NDArray[np.float64] | None = None,
    costs: NDArray[np.float64] | None = None,
    query_weights: Mapping[int, float] | None = None,
) -> TrainingSet:
    """X : rows, or a matrix of them; grades : in the place of ``relevant``, which they must agree with."""
    rows = X if isinstance(X, Rows) else Rows(X)
    return TrainingSet(rows, target_of(relevant, grades), queries, costs=costs, query_weights=query_weights)


def make_risk(rows: Rows, relevant: NDArray[np.bool_], loss: Loss, oracle: AnyOracle, **more: Any) -> Risk:
    """The risk of rows laid out for the loss; ``more``: other arguments of ``lay_out``."""
    layout = lay_out(loss, relevant, **more)
    return bind_risk(rows.select(layout.members), layout, loss, oracle)


def target_of(relevant: NDArray[np.bool_], grades: NDArray[np.float64] | None = None) -> Target:
    if grades is None:
        return of_relevance(relevant)
    target = graded(grades)
    np.testing.assert_array_equal(target.relevant, relevant)
    return target


def solve(
    data: TrainingSet,
    loss: Loss,
    settings: StructuredSettings,
    values_of_C: Sequence[float],
    watch: Watch | None = None,
    **plan: Any,
) -> Iterator[Trained]:
    """The result of a plan of these values; all settings except ``C`` count."""
    settings = replace(settings, C=tuple(values_of_C))
    return structured_svm.train(Plan(loss=loss, settings=settings, **plan), data, watch or Watch())


def train_svm_path(
    data: TrainingSet,
    loss: str | Loss = "ap",
    *,
    C: Sequence[float],
    watch: Watch | None = None,
    start: Weights | None = None,
    **settings: Any,
) -> Iterator[Trained]:
    """A structured SVM for one C after another, by the hinge unless ``settings`` say otherwise."""
    trainer = StructuredSVMTrainer(loss, StructuredSettings(**{"bound": "hinge", "C": tuple(C), **settings}))
    return solve(data, trainer.loss, trainer.settings, C, watch, start=start)


def train_svm(data: TrainingSet, loss: str | Loss = "ap", *, C: float = 1.0, **more: Any) -> Trained:
    """A structured SVM."""
    (trained,) = train_svm_path(data, loss, C=[C], **more)
    return trained


def train_appx(
    data: TrainingSet, loss: str | Loss = "ap", *, C: float = 1.0, watch: Watch | None = None, **settings: Any
) -> Trained:
    """AP-SVM-APPX."""
    return train_svm(data, loss, C=C, watch=watch, oracle="appx", **settings)


def train_pairs(
    X: Any,
    classes: Classes,
    *,
    graph: str | PreferenceGraph = "full",
    queries: NDArray[np.int64] | None = None,
    watch: Watch | None = None,
    start: Weights | None = None,
    **settings: Any,
) -> TrainedPairs:
    """RankNCG. X : rows, or a matrix of them."""
    plan = RankNCGTrainer("wmw", RankNCGSettings(**settings))
    rows = X if isinstance(X, Rows) else Rows(X)
    chosen = GRAPHS[graph](classes.names.size) if isinstance(graph, str) else graph
    return rank_ncg.train_rank_ncg(rows, classes, chosen, queries, plan.settings, watch or Watch(), start)


def train_top(
    X: Any,
    grades: NDArray[Any],
    *,
    queries: NDArray[np.int64] | None = None,
    watch: Watch | None = None,
    validate: Callable[[Weights], float] | None = None,
    start: Weights | None = None,
    **settings: Any,
) -> DescentOutcome[Weights]:
    """WARP. X : rows, or a matrix of them; grades : (n,) numbers or bool."""
    plan = WarpTrainer("warp", WarpSettings(**settings))
    outcome, _ = warp.train_warp(
        X if isinstance(X, Rows) else Rows(X),
        grades,
        plan.settings,
        watch or Watch(),
        show=plan.show,
        groups=queries,
        validate=validate,
        start=start,
    )
    return outcome


def train_lists(
    lists: Any,
    factors: int,
    *,
    watch: Watch | None = None,
    validate: Callable[[ItemFactors], float] | None = None,
    **settings: Any,
) -> DescentOutcome[ItemFactors]:
    """WARP for rows that are users."""
    plan = WarpTrainer("warp", WarpSettings(rows_as_users=True, **settings))
    outcome, _ = item_factors.train_items(
        lists, factors, plan.settings, watch or Watch(), show=plan.show, validate=validate
    )
    return outcome
