"""From rows on the workers to models: ``Fit`` for a ``PartedMatrix``.

Open choices of a plan (bound, C, a start) are made by training in one process: on all rows if they are few, else on a
random sample of queries or rows. After a sample, training continues on the workers with the chosen plan, starting at
its weights.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from apsvm.dask.rows import DistributedRows, How, PartedMatrix
from apsvm.data.dataset import several_queries
from apsvm.data.features import LINEAR, learn_map
from apsvm.data.features.binning import rows_to_learn_from
from apsvm.data.features.logarithms import MOST_ROWS, Logarithms
from apsvm.data.features.scaling import scaling_of
from apsvm.data.row_operator import RowOperator
from apsvm.selection.completion import continue_plan, leaves_open, train_fit, train_plan
from apsvm.trainers.base import AnyTrainer, Outcome, TrainingSet, Watch
from apsvm.trainers.constant_feature import constant_by_rule
from apsvm.trainers.fitting import AUTO, Fit, about_data, scale_by_rule
from apsvm.trainers.one_vs_rest import OneVsRestTrainer, of_class
from apsvm.trainers.rank_ncg.trainer import RankNCGTrainer
from apsvm.trainers.ranking_check import ranking_checked
from apsvm.trainers.settings import SettingsError
from apsvm.trainers.structured_svm.default_c import default_C
from apsvm.trainers.structured_svm.trainer import StructuredSVMTrainer

#: Maximum number of feature values that the driver gathers for open choices: 64 MB.
VALUES_OF_A_SAMPLE = 1 << 23
#: Minimum number of rows of the rarer class among them.
FEWEST_OF_A_CLASS = 1000


def refusal(trainer: AnyTrainer) -> str | None:
    """Reason why a plan cannot be trained on a cluster, in the words of the command line; None if it can."""
    plan = trainer.trainer if isinstance(trainer, OneVsRestTrainer) else trainer
    if isinstance(plan, RankNCGTrainer):
        return None
    if not isinstance(plan, StructuredSVMTrainer):
        return (
            f"--loss {plan.loss_name} is not trained on a cluster: train it on one machine, or choose a ranking loss "
            "(ap, ndcg, auc …) or wmw"
        )
    option = "--latent" if plan.settings.latent else "--layer-wise" if plan.is_network else None
    return None if option is None else f"{option} is not for training on a cluster: train on one machine"


@dataclass(frozen=True, slots=True, eq=False)
class ClusterFit(Fit):
    """A prepared training on rows on the workers."""

    @classmethod
    def over(cls, fit: Fit) -> Self:
        """The same training. Raises SettingsError for a plan with a ``refusal``."""
        refused = refusal(fit.trainer)
        if refused is not None:
            raise SettingsError(refused)
        return cls(**{field.name: getattr(fit, field.name) for field in fields(fit)})

    @property
    def _matrix(self) -> PartedMatrix:
        X: PartedMatrix = self.dataset.X
        return X

    def rows(self, X: object = None, selection: NDArray[np.int64] | None = None) -> RowOperator:  # type: ignore[override]
        """The rows, mapped, scaled, and with the constant feature."""
        how = How(bias=self.bias, feature_map=self.feature_map, scaling=self.scaling)
        return DistributedRows(self._matrix, how, threads=self.threads, selection=selection)

    def prepared(self) -> Self:
        """See ``Fit.prepared``; a map is learned on the driver, from a sample of rows."""
        options, matrix, learned = self.features, self._matrix, None
        if options.features != LINEAR:
            every = np.arange(len(self.dataset)) if self.selection is None else self.selection
            targets, seed = self.target.of(every).regressands(), self.trainer.settings.seed
            if options.features.startswith(Logarithms.stem):
                which = np.arange(0, every.size, -(-every.size // MOST_ROWS))
            else:
                which = rows_to_learn_from(targets, matrix.width, np.random.default_rng(seed))
            learned = learn_map(options.features, matrix[every[which]], targets=targets[:, which], seed=seed)
        if options.scale == AUTO:
            sparse = matrix.sparse and (learned is None or learned.keeps_sparse)
            of_table = self.dataset.table is not None
            options = replace(options, scale=scale_by_rule(learned, sparse=sparse, of_table=of_table))
        rows = DistributedRows(matrix, How(feature_map=learned), selection=self.selection)
        scaling = scaling_of(options.scale, rows.largest, rows.moments)
        fit = replace(self, features=options, feature_map=learned, scaling=scaling)
        if options.bias != AUTO:
            return fit
        bias = constant_by_rule(fit.rows(selection=self.selection).moments().variance)
        return replace(fit, features=replace(options, bias=bias))

    def outcomes(self, watch: Watch, data: TrainingSet) -> Iterator[Outcome]:
        """The trained rankers of the training set ``data``, see ``selection.completion.train_fit``."""
        if not leaves_open(self.trainer, data):
            for outcome in train_plan(self.trainer, data, about_data(watch, self, data.rows.__len__)):
                yield ranking_checked(outcome, data, self.trainer)
            return
        chosen, sample = self._sample()
        if chosen is None:
            yield from train_fit(sample, watch)
            return
        watch.remark(f"settings are chosen on {chosen.size:,} of {len(self.dataset):,} rows, by a training here")
        rows = sample.training_set()
        *_, first = train_fit(sample, Watch(progress=watch.progress, should_stop=watch.should_stop), rows)
        if first.interrupted or (first.w is None and not first.classes):
            yield first
            return
        for outcome in self._continued(first, rows, data, about_data(watch, self, data.rows.__len__)):
            yield _with_choice(ranking_checked(outcome, data, self.trainer), first, chosen.size)

    def _sample(self) -> tuple[NDArray[np.int64] | None, Fit]:
        """Rows for the open choices (None: all), and a training on them in this process."""
        dataset, every = self.dataset, np.arange(len(self.dataset)) if self.selection is None else self.selection
        share = VALUES_OF_A_SAMPLE / max(1, self._matrix.size * every.size / len(dataset))
        chosen = None if share >= 1.0 else self._drawn(every, share)
        rows = np.unique(every if chosen is None else chosen)  # a row selected twice is gathered once
        sample = replace(
            Fit(**{field.name: getattr(self, field.name) for field in fields(self)}),
            dataset=dataset.select(rows),
            target=self.target.of(rows),
            selection=None if rows.size == every.size else np.searchsorted(rows, every if chosen is None else chosen),
        )
        return chosen, sample

    def _drawn(self, every: NDArray[np.int64], share: float) -> NDArray[np.int64]:
        """About this share of the rows: whole queries if there are several, else of each class."""
        rng = np.random.default_rng(self.trainer.settings.seed)
        groups = self.dataset.groups
        if several_queries(groups):
            queries = np.unique(groups)
            kept = rng.permutation(queries)[: max(2, round(share * queries.size))]
            whole: NDArray[np.int64] = every[np.isin(groups[every], kept)]
            return whole
        relevant = self.target.relevant[every]
        parts = []
        for members in (np.flatnonzero(relevant), np.flatnonzero(~relevant)):
            count = min(members.size, max(FEWEST_OF_A_CLASS, round(share * members.size)))
            parts.append(rng.permutation(members)[:count])
        drawn: NDArray[np.int64] = every[np.sort(np.concatenate(parts))]
        return drawn

    def _continued(self, first: Outcome, sample: TrainingSet, data: TrainingSet, watch: Watch) -> Iterator[Outcome]:
        """Trains the chosen plan on all rows, from the weights of the outcome ``first`` on the sample."""
        trainer = self.trainer
        if not isinstance(trainer, OneVsRestTrainer):
            assert isinstance(first.w, np.ndarray)
            yield from continue_plan(_at_scale(trainer.settled(first), sample, data), data, watch, first.w)
            return
        starts = {label: trained.w for label, trained in first.classes if isinstance(trained.w, np.ndarray)}
        label, outcome = first.classes[0]
        plan = _at_scale(trainer.trainer.settled(outcome), of_class(sample, label), of_class(data, label))

        def train_class(
            of_class: AnyTrainer, label: float, rows: TrainingSet, watch: Watch, _: TrainingSet | None
        ) -> Iterator[Outcome]:
            return continue_plan(of_class, rows, watch, starts.get(label))

        yield from OneVsRestTrainer(plan).train(data, watch, train_class=train_class)


def _at_scale(plan: AnyTrainer, sample: TrainingSet, data: TrainingSet) -> AnyTrainer:
    """The plan, with C multiplied by the ratio of the default C of all rows to that of the sample."""
    assert isinstance(plan, StructuredSVMTrainer)
    (C,) = plan.settings.C
    bound = plan.bound
    if not isinstance(C, float) or bound is None or not plan.loss.over_rankings:
        return plan
    ratio = default_C(data, plan.loss, bound) / default_C(sample, plan.loss, bound)
    return plan.with_settings(C=(C * ratio,)) if 0.0 < C * ratio < math.inf else plan


def _with_choice(outcome: Outcome, first: Outcome, n: int) -> Outcome:
    """The outcome, with the details of the choice of its plan."""
    kept = {name: first.details[name] for name in ("choice", "held_out") if name in first.details}
    notes = [f"chosen on {n:,} rows, and trained from there", *outcome.notes]
    return replace(outcome, details={**outcome.details, **kept}, notes=notes)
