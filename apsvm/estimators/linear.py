"""Estimators that train one plan: X, y, qid, sample_weight, bags  →  ``Fit`` of the parameters' plan  →  model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metadata_routing import UNUSED

from apsvm._support.types import Column, JsonDict, Matrix
from apsvm.data.features import parsed
from apsvm.data.features.scaling import SCALINGS
from apsvm.data.labels import Target
from apsvm.data.pooling import pooled_rows
from apsvm.estimators.bags import first_of_bags
from apsvm.estimators.base import Estimator
from apsvm.estimators.messages import logger, training
from apsvm.estimators.parameters import settings_of
from apsvm.estimators.rows import Counted, count_rows
from apsvm.metrics import parse_metric
from apsvm.models.header import Header, parse_pool
from apsvm.selection.completion import train_fit
from apsvm.selection.maps import choose_features
from apsvm.trainers.base import AnyTrainer, Outcome, TrainingSet, Watch
from apsvm.trainers.fitting import AUTO, FeatureOptions, Fit, map_by_rule, supported_options


@dataclass(eq=False, repr=False, kw_only=True)
class LinearEstimator(Estimator):
    """An estimator that trains one plan: its trainer, with settings from the parameters."""

    features: str = AUTO
    time_limit: float | None = None

    # Methods that a class of estimators overrides.

    def _values(self) -> JsonDict:
        """Parameters by name, with values that settings accept."""
        values: JsonDict = self.get_params(deep=False)
        return values

    def _weighted(self, plan: AnyTrainer, target: Target, sample_weight: Column) -> Column:
        """``sample_weight``, multiplied by the weights of classes if the trainer takes them."""
        return sample_weight

    def _trained_constant(self, plan: AnyTrainer) -> float | Literal["auto"] | None:
        """Value of a constant feature trained with the others; AUTO: by ``trainers.fitting``; None: none."""
        return None

    def _outcomes(self, fit: Fit, watch: Watch, data: TrainingSet) -> Iterator[Outcome]:
        """Trained rankers of a fit with the rows ``data``, one after the other."""
        return train_fit(fit, watch, data)

    def _with_decision(self, fit: Fit, data: TrainingSet, outcome: Outcome, header: Header) -> Header:
        """The header with a threshold and a calibration. ``fit``: the training of ``data`` before features are
        learned."""
        return header

    # Methods that all classes share.

    def _settings(self) -> Any:
        """The trainer's settings, from the parameters. Raises ValueError."""
        parse_metric(self.metric)
        seed, threads = self._seed(), self._threads()
        return settings_of(self._values(), self._trainer.Settings, self._renamed, seed=seed, threads=threads)

    def _plan(self) -> AnyTrainer:
        """The trainer with its loss and settings. Raises ValueError."""
        return self._trainer(self._trainer.losses[0], self._settings())

    def _fit(self, X: Matrix, y: Column, qid: Column, sample_weight: Column, bags: Column) -> Self:
        plan, pool = self._plan(), self._pool()
        takes = plan.capabilities
        X, target = self._read(X, y, takes.labels)
        sample_weight = self._weighted(plan, target, sample_weight)
        needed = takes.bags or pool is not None
        by_bag = self._by_bag(X, bags, needed=needed, y=y, qid=qid, sample_weight=sample_weight)
        if takes.bags and pool is not None:
            raise ValueError("pool makes one row of each bag, latent=True trains on its rows: choose one of them")
        if takes.bags and sample_weight is not None and plan.loss_name != "zero-one":
            raise ValueError("latent=True trains on bags: only loss 'zero-one' takes a sample_weight of rows")
        if by_bag is not None and pool is not None:
            X, target = pooled_rows(X, by_bag, pool), target.of(by_bag.first)
            qid, sample_weight = first_of_bags(by_bag, qid, sample_weight)
            by_bag = None
        by_pair = takes.queries and takes.costs
        counted = count_rows(X, qid, sample_weight, by_query=takes.queries, by_pair=by_pair)
        raw = self._training(X, target, counted, plan, None if by_bag is None else by_bag.bag_of_row)
        with training(self.verbose) as watch:
            self._check(raw.target.of(raw.selection))
            fit = raw.prepared()
            data = fit.training_set()
            for remark in plan.check(data):
                logger.warning("%s: %s", type(self).__name__, remark)
            if self._compares_maps and self.features == AUTO:
                chosen = choose_features(raw, fit, data, watch)
                raw, fit, data, trained = chosen.raw, chosen.fit, chosen.data, chosen.outcomes(watch)
            else:
                trained = self._outcomes(fit, watch, data)
            *_, outcome = trained
            (model,) = fit.model(outcome).rankers()
            header = self._with_decision(raw, data, outcome, self._header_of(model.header, counted.groups))
            model = model.with_header(header)
        self._finish(model, X, outcome)
        return self

    def _training(
        self, X: Matrix, target: Target, counted: Counted, plan: AnyTrainer, bags: NDArray[np.int64] | None
    ) -> Fit:
        members, groups, scale = counted.members, counted.groups, getattr(self, "scale", AUTO)
        if scale not in (AUTO, *SCALINGS):
            raise ValueError(f"scale is one of {', '.join((AUTO, *SCALINGS))}, found {scale!r}")
        every_row_once = np.array_equal(members, np.arange(X.shape[0]))
        if groups is not None and not every_row_once:  # a data set has the groups of all rows, selected or not
            of_members, groups = groups, np.zeros(X.shape[0], dtype=np.int64)
            groups[members] = of_members
        relevance = target.relevant.astype(np.float64) if target.grades is None else target.grades
        dataset = self._dataset(X, relevance, groups, costs=counted.costs, bags=bags)
        features = self.features if self.features == AUTO else str(parsed(self.features))
        bias = self._trained_constant(plan)
        options = FeatureOptions(features=features, scale=scale, bias=bias, pool=self._pool())
        return Fit(
            dataset,
            plan,
            target,
            map_by_rule(dataset, supported_options(plan, options)),
            selection=None if every_row_once else members,
            query_weights=counted.query_weights,
        )

    def _pool(self) -> tuple[str, ...] | None:
        """Names in the parameter ``pool``; None without pooling. Raises ValueError."""
        pool: str | None = getattr(self, "pool", None)
        return None if pool is None else parse_pool(pool)


class QueriesOnly(Estimator):
    """An estimator whose ``fit`` takes queries, but neither weights nor bags."""

    __metadata_request__fit: ClassVar[dict[str, bool | str]] = {"sample_weight": UNUSED, "bags": UNUSED}
    __metadata_request__score: ClassVar[dict[str, bool | str]] = __metadata_request__fit

    def fit(self, X: Matrix, y: ArrayLike, qid: ArrayLike | None = None) -> Self:  # type: ignore[override]
        """Train; see ``APSVMRanker.fit``."""
        return super().fit(X, y, qid)

    def score(self, X: Matrix, y: ArrayLike, qid: ArrayLike | None = None) -> float:  # type: ignore[override]
        """The metric named by the parameter ``metric``; see ``APSVMRanker.score``."""
        return super().score(X, y, qid)
