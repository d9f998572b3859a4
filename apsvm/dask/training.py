"""The structured SVM on shards: the solver, its planes, the QP and the certificate are those of one machine, and stand
on the driver (``trainers.structured_svm.training``); rows, scores and oracle are on the workers."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from apsvm._support.machine import thread_count
from apsvm.dask.data import ShardedData
from apsvm.dask.long_list import ListRisk
from apsvm.dask.recovery import Recovering, repeated
from apsvm.dask.summed import SummedRisk
from apsvm.data.rows import Rows
from apsvm.losses.base import Loss, is_of_two_arrays
from apsvm.models.decision import Threshold
from apsvm.oracles import make_oracle
from apsvm.risk import NothingToRankError
from apsvm.solvers.state import State
from apsvm.trainers.base import Outcome, TrainingSet, Watch
from apsvm.trainers.ranking_check import ranks_nothing
from apsvm.trainers.settings import Multiple, SettingsError, resolved
from apsvm.trainers.structured_svm.default_c import THE_RULE, C_by_rule
from apsvm.trainers.structured_svm.objective import POOR
from apsvm.trainers.structured_svm.remarks import caution_of
from apsvm.trainers.structured_svm.settings import NEARLY_NOTHING, StructuredSettings
from apsvm.trainers.structured_svm.stage import Stage, Trained
from apsvm.trainers.structured_svm.trainer import StructuredSVMTrainer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from apsvm._support.log import Log
    from apsvm.dask.crew import Crew
    from apsvm.data.labels import Target

ON_A_CLUSTER = "on a cluster"
#: What --bound auto comes to.
HINGE_ONLY = (
    f"--bound auto: hinge (the tight bound is not trained {ON_A_CLUSTER}; it ranks better where many positives cannot "
    "be told from the negatives: one machine compares the two, on a sample of the rows too)"
)


def refusal(trainer: StructuredSVMTrainer) -> str | None:
    """Why this plan cannot be carried out on a cluster, in the words of the command line, or None if it can."""
    settings, loss = trainer.settings, trainer.loss
    if settings.bound == "tight":
        return f"--bound tight is not trained {ON_A_CLUSTER}: leave it out, or train on one machine"
    if loss.starts_from is not None and not (settings.bound == "hinge" and is_of_two_arrays(loss)):
        return (
            f"--loss {trainer.loss_name} is trained by the tight bound, which is not trained {ON_A_CLUSTER}: "
            f"--loss {loss.starts_from} is the one that it starts from"
        )
    for value, what in (
        (settings.latent, "--latent"),
        (settings.components > 1, "--components"),
        (bool(settings.layer_wise), "--layer-wise"),
        (settings.log_ranks, "--log-ranks"),
        (trainer.approximates, "--oracle appx"),
    ):
        if value:
            return f"{what} is not for training {ON_A_CLUSTER}: leave it out, or train on one machine"
    return None


def list_refusal(loss: Loss, oracle: str, target: Target) -> str | None:
    """Why one list of all rows cannot be trained on, or None if it can."""
    if not is_of_two_arrays(loss):
        return (
            f"--loss {loss.name} of one list of all rows is not trained {ON_A_CLUSTER}: rows in queries (qid:) are, "
            "each query whole in one part; or choose a loss of two arrays (ap, ndcg, mrr, auc, rbp(0.8) …) or zero-one"
        )
    if target.grades is not None:
        return (
            f"grades of one list of all rows are not trained on {ON_A_CLUSTER}: --relevant-from makes two classes of "
            "them, or put rows into queries (qid:)"
        )
    if oracle not in ("auto", "bucket"):
        return f"one list {ON_A_CLUSTER} is ranked by --oracle bucket: leave out --oracle {oracle}"
    return None


class LogOfTraffic:
    """A log whose records of iterations say what was requested of the cluster since the one before: rounds, and bytes
    to and from all shards together."""

    def __init__(self, log: Log, crew: Crew) -> None:
        self._log, self._crew = log, crew

    def write(self, event: str, **fields: object) -> None:
        if event in ("iteration", "evaluation"):
            traffic = self._crew.take_traffic()
            fields |= {
                "shards": len(self._crew),
                "rounds": traffic.rounds,
                "bytes_sent": traffic.sent,
                "bytes_received": traffic.received,
                "cluster_seconds": traffic.seconds,
                "working_seconds": traffic.working_seconds,
            }
        self._log.write(event, **fields)


def risk_on(
    data: ShardedData, loss: Loss, settings: StructuredSettings, target: Target, weights: Mapping[int, float] | None
) -> ListRisk | SummedRisk:
    """The risk of the shards' rows.

    Raises
    ------
    SettingsError : a list that is not trained on a cluster; DataError : nothing to rank, too many positives
    """
    if loss.by_query and not data.has_qid:
        refused = list_refusal(loss, settings.oracle, target)
        if refused is not None:
            raise SettingsError(refused)
        assert is_of_two_arrays(loss)
        if not (data.n_pos and data.n_neg):
            raise NothingToRankError("no query has both a positive and a negative row")
        data.take_list()
        return ListRisk(data.vectors, loss, data.n_pos, data.n_neg, threads=thread_count(settings.threads))
    queries, skipped = data.take_queries(loss, settings.oracle, weights)
    name = make_oracle(settings.oracle, loss).name
    if not loss.by_query:
        queries = 1
    return SummedRisk(data.vectors, data.rows, name, data.n_pos, data.n_neg, queries, skipped)


def train_on_shards(
    trainer: StructuredSVMTrainer,
    data: ShardedData,
    target: Target,
    watch: Watch,
    *,
    start: NDArray[np.float64] | None = None,
    query_weights: Mapping[int, float] | None = None,
    dimension: int,
) -> Iterator[Outcome]:
    """The trained rankers of a plan without a ``refusal``, as ``StructuredSVMTrainer.train`` gives them, by the hinge.

    Parameters
    ----------
    data : understood and scaled
    target : of its labels, one row each
    start : (dimension,) float64, where to begin
    dimension : of w

    Raises
    ------
    SettingsError : what is requested is not trained on a cluster; NothingToRankError, DataError, FloatingPointError
    """
    loss, settings = trainer.loss, trainer.settings
    values = values_of_C(data, loss, settings)
    risk = risk_on(data, loss, settings, target, query_weights)
    data.crew.take_traffic()
    watch = replace(watch, log=LogOfTraffic(watch.log, data.crew))
    watch.log.write(
        "start",
        oracle=settings.oracle,
        C=values[0] if len(values) == 1 else values,
        epsilon=settings.epsilon,
        workers=data.crew.names(),
    )
    stage = Stage(
        risk,
        dimension,
        settings,
        watch,
        oracle="bucket" if isinstance(risk, ListRisk) else make_oracle(settings.oracle, loss).name,
        start=start,
        around=lambda cutter: Recovering(cutter, data.vectors, watch.remark),
    )
    began = time.perf_counter()

    for setting, C in zip(settings.C, values, strict=True):
        report = stage.run("train", C, seconds_used=time.perf_counter() - began)
        trained = Trained(
            report.solution.w, [report], True, risk.queries, risk.queries_skipped, C=C, origin_of_C=THE_RULE
        )
        trained = replace(trained, share_of_nothing=_share_of_nothing(data, risk, trained, C))
        yield _outcome(trainer.with_settings(C=(setting,)), data, target, trained)
        if trained.state is State.INTERRUPTED:
            return


def _outcome(trainer: StructuredSVMTrainer, data: ShardedData, target: Target, trained: Trained) -> Outcome:
    """The outcome of the one value of C that ``trainer`` has."""
    outcome = trainer.outcome(of_labels(data, target), replace(trainer.settings, bound="hinge"), trained)
    ranks = tells_apart(data, trained.w)
    cautions = caution_of(outcome, trainer)
    if not ranks:
        cautions = [ranks_nothing(outcome, trainer, on_a_cluster=True)]
    hinge_only = trainer.settings.bound == "auto" and trainer.loss.over_rankings
    return replace(
        outcome,
        settings=trainer.settings,
        data=replace(outcome.data, positives=data.n_pos),
        ranks=ranks,
        threshold=Threshold(value=0.0, rule="loss") if ranks and trainer.loss.draws_line else None,
        cautions=cautions,
        notes=[HINGE_ONLY, *outcome.notes] if hinge_only else outcome.notes,
        details={**outcome.details, "shards": len(data.crew)},
    )


def of_labels(data: ShardedData, target: Target) -> TrainingSet:
    """A row for each label there is, without features: what a trainer checks."""
    return TrainingSet(Rows(np.empty((data.labels.size, 0))), target, source=data.source)


def values_of_C(data: ShardedData, loss: Loss, settings: StructuredSettings) -> list[float]:
    """What ``settings.C`` means for these rows. Raises SettingsError for one beyond float64."""
    default = 1.0
    if any(isinstance(C, Multiple) for C in settings.C):
        within = loss.by_query and data.has_qid
        variance = data.moments(within_queries=within).variance
        default = C_by_rule(variance, data.rows, loss, several=within and data.several_queries())
    values = [resolved(C, default) for C in settings.C]
    for C, value in zip(settings.C, values, strict=True):
        if not 0.0 < value < math.inf:
            raise SettingsError(f"-C {C}: {C} of C = {default:g}, the default for these rows, is beyond float64")
    return values


def tells_apart(data: ShardedData, w: NDArray[np.float64]) -> bool:
    """Whether two training rows have different scores."""
    lows, highs = zip(*data.crew.ask_surely("extremes", w), strict=True)
    return bool(max(highs) > min(lows))


def _share_of_nothing(data: ShardedData, risk: ListRisk | SummedRisk, trained: Trained, C: float) -> float | None:
    """As ``structured_svm.share_of_nothing``; None for queries."""
    if trained.state is not State.CONVERGED or not isinstance(risk, ListRisk):
        return None
    w = trained.w
    vectors = data.vectors

    def at_zero() -> float:
        return risk.tangent(risk.scores(np.zeros_like(w)), vectors.empty()).value

    largest = repeated(vectors, at_zero)
    bound = (trained.solution.certificate.primal - 0.5 * float(w @ w)) / C
    risk.account()
    share = bound / largest
    if share >= NEARLY_NOTHING and repeated(vectors, lambda: risk.loss_by_order(w)) < POOR * largest:
        return None
    return share
