"""From a data set to models: the feature map, the scaling, the constant feature, the target, the trainer, the header.

A ``Fit`` is a prepared training, independent of the origin of its options: the command line, the choice of settings and
one against the rest all use it.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from apsvm._support import sparse as sp
from apsvm._support.log import Log, NoLog
from apsvm._support.machine import installed, thread_count
from apsvm._support.types import Matrix
from apsvm.data.bags import HOW_SAID, Bags
from apsvm.data.dataset import DataError
from apsvm.data.features import LINEAR, learn_map
from apsvm.data.features.logarithms import Logarithms, has_long_tails
from apsvm.data.features.mapped import MappedMatrix, dense_pays
from apsvm.data.features.scaling import NO_SCALING, Scaling, learn_scaling
from apsvm.data.labels import LabelOptions, Target, decide, two_classes
from apsvm.data.moments import column_moments
from apsvm.data.pooling import pooled
from apsvm.data.row_operator import RowOperator
from apsvm.data.rows import Rows
from apsvm.models.base import Model
from apsvm.models.components import ComponentRanker
from apsvm.models.header import Features, Header
from apsvm.models.items import ItemFactors, ItemRanker
from apsvm.models.linear import LinearRanker
from apsvm.models.net import Net, NetRanker
from apsvm.models.sets import RankerOfClass, RankerSet
from apsvm.trainers.base import AnyTrainer, Outcome, TrainingSet, Watch
from apsvm.trainers.constant_feature import constant_by_rule
from apsvm.trainers.feature_options import AUTO as AUTO
from apsvm.trainers.feature_options import FeatureOptions as FeatureOptions

if TYPE_CHECKING:
    from apsvm.data.dataset import Dataset
    from apsvm.data.features.base import FeatureMap


#: Ratio of the largest deviation to the median up to which columns seem to share a unit. It is below 3 for pictures and
#: two sets of bags, and 100,000 for sounds described by various measurements.
ONE_UNIT = 10.0
#: Values of rows, or None.
OfRowsT = TypeVar("OfRowsT", NDArray[np.int64] | None, NDArray[np.float64] | None)


def supported_options(trainer: AnyTrainer, features: FeatureOptions) -> FeatureOptions:
    """Options with AUTO replaced where the trainer does not support it: AUTO stays only for trainers that want a
    constant, or take scaled rows."""
    if features.bias == AUTO and not trainer.capabilities.constant:
        features = replace(features, bias=None)
    if features.features == AUTO and trainer.capabilities.refusal("features") is not None:
        features = replace(features, features=LINEAR)
    if features.scale == AUTO and trainer.capabilities.refusal("scale") is not None:
        features = replace(features, scale=NO_SCALING.name)
    return features


def scale_by_rule(feature_map: FeatureMap | None, *, sparse: bool, of_table: bool) -> str:
    """Scaling chosen by AUTO for mapped columns. Sparse columns mostly count or mark something and keep their units,
    except those of tables."""
    if feature_map is not None and feature_map.of_one_scale:
        return NO_SCALING.name
    return NO_SCALING.name if sparse and not of_table else "standard"


def map_by_rule(dataset: Dataset, features: FeatureOptions) -> FeatureOptions:
    """Options with the map chosen by AUTO. Data other than tables may be counts of words or pixels, for which a user
    expects linear weights."""
    if features.features != AUTO:
        return features
    of_rows = dataset.table is not None and dataset.bags is None and features.pool is None and len(dataset) > 0
    is_long_tailed = of_rows and has_long_tails(dataset.X)
    return replace(features, features=Logarithms.stem if is_long_tailed else LINEAR)


def _of_one_unit(X: Matrix, selection: NDArray[np.int64] | None) -> bool:
    """True if the columns of X seem to share one unit, as pixels do.

    AUTO then does not scale the rows of bags. Standardised columns that hardly vary would count as much as others in
    the choice of the deciding row. Unscaled, test AP was higher by .02 to .09 on four kinds of bags of digits and on
    tiger, by .01 on pendigits, and lower by .01 on musk1 and mammography and .03 on german_scale. On birds, whose
    columns have several units, it was lower by up to .10.
    """
    deviations = np.sqrt(column_moments(X, selection).variance)
    deviations = deviations[np.isfinite(deviations) & (deviations > 0.0)]
    return deviations.size > 0 and bool(deviations.max() <= ONE_UNIT * np.median(deviations))


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A prepared training.

    Attributes
    ----------
    dataset : Dataset
        The rows.
    trainer : AnyTrainer
        The plan.
    features : FeatureOptions
        Preparation of their features.
    target : Target
        Meaning of the labels, for all rows of the data set.
    selection : NDArray[int64], optional
        (m,) int64, ascending, training rows; None: all.
    feature_map, scaling : FeatureMap, optional
        Map of the features and scaling of the mapped columns, learned from the training rows; None: unchanged.
    query_weights : Mapping[int, float], optional
        Weight of each query; 1 for queries not listed.
    validation : tuple[Dataset, Target], optional
        Rows that choose the best epoch, and the meaning of their labels.
    shared : Rows, optional
        Prepared rows, if several trainings share them.
    """

    dataset: Dataset
    trainer: AnyTrainer
    target: Target
    features: FeatureOptions
    selection: NDArray[np.int64] | None = None
    feature_map: FeatureMap | None = None
    scaling: Scaling = NO_SCALING
    query_weights: Mapping[int, float] | None = None
    validation: tuple[Dataset, Target] | None = None
    shared: Rows | None = None

    @classmethod
    def of(
        cls,
        dataset: Dataset,
        trainer: AnyTrainer,
        labels: LabelOptions,
        features: FeatureOptions,
        **more: Any,
    ) -> Fit:
        """Makes a training on ``dataset`` with pooled bags and decided labels; ``prepared`` learns map and scaling.

        Raises
        ------
        DataError
            The labels do not fit; there are bags without an option for them; or the reverse.
        """
        dataset = bags_settled(dataset, trainer, features.pool)
        features = map_by_rule(dataset, supported_options(trainer, features))
        return cls(dataset, trainer, decide(dataset, trainer.capabilities.labels, labels), features, **more)

    @property
    def threads(self) -> int:
        return thread_count(self.trainer.settings.threads)

    def prepared(self) -> Fit:
        """The training with map, scaling and constant feature learned from its rows as ``features`` specify; itself if
        they specify none.

        Raises
        ------
        UnknownNameError, FeatureMapError
            (ValueErrors) unknown map, or one that does not accept these rows.
        """
        X, options = self.dataset.X, self.features
        if options.features == LINEAR and options.scale == NO_SCALING.name and options.bias != AUTO:
            return self
        learned: FeatureMap | None = None
        if options.features != LINEAR:
            targets = self.target.of(self.selection).regressands()
            seed = self.trainer.settings.seed
            learned = learn_map(options.features, X, self.selection, targets=targets, seed=seed)
            X = MappedMatrix(X, learned)
        if options.scale == AUTO:
            sparse = X.sparse if isinstance(X, MappedMatrix) else sp.issparse(X) and not dense_pays(X)
            scale = scale_by_rule(learned, sparse=sparse, of_table=self.dataset.table is not None)
            if scale != NO_SCALING.name and self.trainer.capabilities.bags and _of_one_unit(X, self.selection):
                scale = NO_SCALING.name
            options = replace(options, scale=scale)
        scaling = learn_scaling(options.scale, X, self.selection)
        fit = replace(self, features=options, feature_map=learned, scaling=scaling)
        if options.bias != AUTO:
            return fit
        bias = constant_by_rule(fit.rows(selection=self.selection).moments().variance)
        return replace(fit, features=replace(options, bias=bias))

    @property
    def bias(self) -> float | None:
        """Value of the constant feature; None without one, or before ``prepared``."""
        return None if self.features.bias == AUTO else self.features.bias

    @property
    def n_columns(self) -> int:
        """Number of columns that have weights, except for the constant feature's."""
        return int(self.dataset.X.shape[1]) if self.feature_map is None else self.feature_map.n_out

    def rows(self, X: Matrix = None, selection: NDArray[np.int64] | None = None) -> Rows:
        """Rows of X (n, d), with as many columns as the data set: mapped, scaled, with the constant feature."""
        return Rows(
            self.dataset.X if X is None else X,
            bias=self.bias,
            threads=self.threads,
            selection=selection,
            feature_map=self.feature_map,
            scaling=self.scaling,
        )

    def training_set(self) -> TrainingSet:
        """Training set for the trainer."""
        dataset = self.dataset
        rows, selection = self.shared or self.rows(selection=self.selection), self.selection
        bags = self._bags(dataset, selection)
        if bags is not None:
            rows = rows if bags.order is None else rows.select(bags.order)
        looks_at_targets = self.feature_map is not None and self.feature_map.looks_at_targets
        relearned = self._relearned(selection, bags) if looks_at_targets else None
        if bags is not None:
            selection = bags.first if selection is None else selection[bags.first]
        return TrainingSet(
            rows=rows,
            target=self.target if selection is None else self.target.of(selection),
            queries=_of(dataset.groups, selection),
            costs=_of(dataset.costs, selection),
            query_weights=self.query_weights,
            bags=None if bags is None else bags.offsets,
            unit=dataset.unit,
            source=dataset.source,
            fingerprint=dataset.fingerprint,
            relearned=relearned,
        )

    def _relearned(
        self, selection: NDArray[np.int64] | None, bags: Bags | None
    ) -> Callable[[NDArray[np.int64]], RowOperator]:
        """Implements ``TrainingSet.relearned`` for the selected rows, bag by bag if there are bags."""
        every = np.arange(len(self.dataset)) if selection is None else selection
        if bags is not None and bags.order is not None:
            every = every[bags.order]

        def rows(training: NDArray[np.int64]) -> RowOperator:
            return replace(self, selection=np.sort(every[training]), shared=None).prepared().rows(selection=every)

        return rows

    def _bags(self, dataset: Dataset, selection: NDArray[np.int64] | None = None) -> Bags | None:
        """Bags of the selected rows; None for a trainer of single rows."""
        if dataset.bags is None or not self.trainer.capabilities.bags:
            return None
        which = slice(None) if selection is None else selection
        return Bags.of_rows(dataset.bags[which], dataset.relevance[which], _of(dataset.groups, selection))

    def held_out(self) -> TrainingSet | None:
        """Validation rows, prepared for the trainer."""
        if self.validation is None:
            return None
        dataset, target = self.validation
        bags = self._bags(dataset)
        first = None if bags is None else bags.first
        return TrainingSet(
            rows=self.rows(dataset.X, None if bags is None else bags.order),
            target=target.of(first),
            queries=_of(dataset.groups, first),
            bags=None if bags is None else bags.offsets,
            unit=dataset.unit,
            source=os.path.basename(dataset.source),
            fingerprint=dataset.fingerprint,
        )

    @property
    def _map_name(self) -> str:
        return LINEAR if self.feature_map is None else self.feature_map.name

    def model(self, outcome: Outcome) -> Model:
        """The model of an outcome, its weights for rows as they are in the file."""
        if outcome.average is not None:
            header = replace(outcome.average.header, threshold=outcome.threshold, details=outcome.details)
            return outcome.average.with_header(header)
        if outcome.classes:
            return self._set(outcome)
        header = self._header(outcome)
        if isinstance(outcome.w, ItemFactors):
            return ItemRanker(outcome.w, header)
        if isinstance(outcome.w, Net):
            return NetRanker(outcome.w.behind(self.scaling), header, self.feature_map)
        return self._components(outcome, header) if _has_components(outcome) else self._linear(outcome, header)

    def _set(self, outcome: Outcome) -> Model:
        ranker_of = self._components if _has_components(outcome.classes[0][1]) else self._linear
        rankers: list[RankerOfClass] = []
        for label, part in outcome.classes:
            fit = replace(self, target=two_classes(self.dataset, LabelOptions(positive_label=label)))
            rankers.append(ranker_of(part, fit._header(part)))
        return RankerSet(rankers, self._header(outcome))

    def _linear(self, outcome: Outcome, header: Header) -> LinearRanker:
        w, width, bias = outcome.w, self.n_columns, self.bias
        assert isinstance(w, np.ndarray)
        intercept = 0.0 if bias is None else bias * float(w[width])
        coef, constant = self.scaling.raw_weights(w[:width])
        return LinearRanker(coef, intercept + constant, header, self.feature_map)

    def _components(self, outcome: Outcome, header: Header) -> ComponentRanker:
        assert isinstance(outcome.w, np.ndarray)
        parts = [self.scaling.raw_weights(w) for w in outcome.w[:, :-1]]
        intercepts = outcome.w[:, -1] + [constant for _, constant in parts]
        return ComponentRanker(np.stack([coef for coef, _ in parts]), intercepts, header, self.feature_map)

    def _header(self, outcome: Outcome) -> Header:
        """Header of the trained model."""
        trainer, dataset, instances = self.trainer, self.dataset, self.dataset.instances
        columns = None if dataset.table is None else dataset.table.columns
        data = replace(
            outcome.data,
            file=os.path.basename(dataset.source),
            sha256=dataset.fingerprint,
            rows=len(dataset),
            counts={**outcome.data.counts, **({} if instances is None else {"instances": instances})},
        )
        return Header(
            **{**outcome.result(), "metric": outcome.metric or trainer.metric, "data": data},
            family=trainer.family,
            loss=trainer.loss_name,
            labels=outcome.labels or self.target.labels,
            features=Features(
                zero_based=dataset.zero_based,
                map=self._map_name,
                scale=self.features.scale,
                bias=self.bias,
                names=None if columns is None else columns.feature_names(),
                pool=self.features.pool,
                columns=columns,
            ),
            settings=outcome.settings.to_json(),
            seed=trainer.settings.seed,
            latent=trainer.capabilities.bags,
            cautions=tuple(outcome.cautions),
            classes_skipped=tuple(outcome.skipped),
            versions={"python": platform.python_version(), **_versions()},
        )


def bags_settled(dataset: Dataset, trainer: AnyTrainer, pool: Sequence[str] | None) -> Dataset:
    """The data set for the trainer; pooled bags become rows.

    Raises
    ------
    DataError
        Rows are in bags that are not pooled, and the trainer does not take bags; or the reverse.
    """
    if pool is not None:
        return pooled(dataset, pool)
    has_bags = dataset.bags is not None and not dataset.ignores_bags
    if has_bags and not trainer.capabilities.bags:
        raise DataError(
            f"{dataset.source}: rows have bag ids: choose --latent (the best row of a bag decides), --pool mean or "
            "--pool min,mean,max (pool=; each bag becomes a row), or --bags ignore (rows count for themselves)"
        )
    if trainer.capabilities.bags and not has_bags:
        raise DataError(f"{dataset.source}: training on bags needs bag ids, and these rows have no bag ids: {HOW_SAID}")
    return dataset


def _of(values: OfRowsT, selection: NDArray[np.int64] | None) -> OfRowsT:
    """Selected values; None if ``values`` is None."""
    return values if values is None or selection is None else values[selection]


def _versions() -> dict[str, str]:
    """Versions of the packages in use, with cvxpy if it is installed."""
    versions = {name: installed(name) for name in ("apsvm", "numpy", "scipy")}
    try:
        return {**versions, "cvxpy": installed("cvxpy")}
    except ModuleNotFoundError:
        return versions


def _has_components(outcome: Outcome) -> bool:
    return isinstance(outcome.w, np.ndarray) and outcome.w.ndim == 2


def about_data(watch: Watch, fit: Fit, count_rows: Callable[[], int]) -> Watch:
    """The watch with a log, if any, whose ``start`` record also describes loss and data."""
    return watch if isinstance(watch.log, NoLog) else replace(watch, log=_LogOfData(watch.log, fit, count_rows))


class _LogOfData:
    """A log whose ``start`` record also describes loss and data."""

    def __init__(self, log: Log, fit: Fit, count_rows: Callable[[], int]) -> None:
        self._log = log
        self._count_rows = count_rows
        self._about = {
            "loss": fit.trainer.loss_name,
            "n_features": int(fit.dataset.X.shape[1]),
            "sha256": fit.dataset.fingerprint,
        }

    def write(self, event: str, **fields: object) -> None:
        about = {"n_rows": self._count_rows(), **self._about} if event == "start" else {}
        self._log.write(event, **about, **fields)
