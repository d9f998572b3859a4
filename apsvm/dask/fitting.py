"""From shards to models: what ``trainers.fitting.Fit`` is for a data set on one machine. The header, the constant
feature and the scaling are the ``Fit``'s own, of a data set that stands for the whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apsvm.dask import pairs, training
from apsvm.dask.data import ShardedData
from apsvm.dask.training import ON_A_CLUSTER
from apsvm.dask.training_threshold import with_training_threshold
from apsvm.data.features import LINEAR
from apsvm.data.labels import LabelOptions, Target, decide
from apsvm.models.linear import LinearRanker
from apsvm.trainers.base import AnyTrainer, Outcome, TrainingSet, Watch
from apsvm.trainers.constant_feature import constant_by_rule
from apsvm.trainers.fitting import AUTO, FeatureOptions, Fit, about_data, asked_of, scale_by_rule
from apsvm.trainers.rank_ncg.trainer import RankNCGTrainer
from apsvm.trainers.settings import SettingsError
from apsvm.trainers.structured_svm.trainer import StructuredSVMTrainer


@dataclass(frozen=True, slots=True)
class Sharded:
    """How the plans of a family are trained on a cluster.

    Attributes
    ----------
    refusal : (trainer) → why this plan is not, in the words of the command line, or None
    train : as ``apsvm.dask.training.train_on_shards``
    """

    refusal: Callable[[Any], str | None]
    train: Callable[..., Iterator[Outcome]]


#: By family; other families are trained on one machine.
SHARDED: Mapping[str, Sharded] = {
    StructuredSVMTrainer.family: Sharded(training.refusal, training.train_on_shards),
    RankNCGTrainer.family: Sharded(pairs.refusal, pairs.train_pairs_on_shards),
}


def plan_refusal(trainer: AnyTrainer, features: FeatureOptions) -> str | None:
    """Why a plan cannot be carried out on a cluster, in the words of the command line, or None if it can."""
    if features.pool is not None:
        return f"--pool is not for training {ON_A_CLUSTER}: train on one machine"
    if trainer.family in SHARDED:
        return SHARDED[trainer.family].refusal(trainer)
    return (
        f"--loss {trainer.loss_name} is not trained {ON_A_CLUSTER}: train it on one machine, or choose a ranking loss "
        "(ap, ndcg, auc …) or wmw"
    )


@dataclass(frozen=True, slots=True, eq=False)
class ShardedFit:
    """A training to be done on shards.

    Attributes
    ----------
    data : the rows
    fit : the training as one machine sees it: a row for each label, and the shape of the whole
    query_weights : weight of each query, 1 where not named
    """

    data: ShardedData
    fit: Fit
    query_weights: Mapping[int, float] | None = None

    @classmethod
    def of(
        cls,
        data: ShardedData,
        trainer: AnyTrainer,
        labels: LabelOptions | Target,
        features: FeatureOptions,
        *,
        query_weights: Mapping[int, float] | None = None,
    ) -> ShardedFit:
        """A training on ``data``, whose labels are understood and whose rows are mapped and scaled.

        Parameters
        ----------
        labels : what the labels mean, one row each; or how this is found out

        Raises
        ------
        SettingsError : what is requested is not trained on a cluster
        DataError : the labels do not fit
        UnknownNameError, FeatureMapError : (ValueErrors) there is no such map; it does not take these rows
        """
        refused = plan_refusal(trainer, features)
        if refused is not None:
            raise SettingsError(refused)
        takes = trainer.capabilities.labels
        target = labels if isinstance(labels, Target) else decide(data.of_labels(), takes, labels)
        data.tell(target)
        features = asked_of(trainer, features)
        if features.features == AUTO:
            features = replace(features, features=LINEAR)
        learned = None
        if features.features != LINEAR:
            learned = data.map_features(features.features, target, trainer.settings.seed)
        if features.scale == AUTO:
            sparse = data.is_sparse and (learned is None or learned.keeps_sparse)
            scale = scale_by_rule(learned, sparse=sparse, of_table=data.columns is not None)
            features = replace(features, scale=scale)
        if features.bias == AUTO:
            data.scale(features.scale, None)
            features = replace(features, bias=constant_by_rule(data.moments().variance))
        fit = Fit(data.of_labels(), trainer, target, features, feature_map=learned)
        return cls(data, replace(fit, scaling=data.scale(features.scale, fit.bias)), query_weights)

    @property
    def dimension(self) -> int:
        """Number of weights."""
        return self.fit.n_columns + (self.fit.bias is not None)

    def of_labels(self) -> TrainingSet:
        """See ``training.of_labels``."""
        return training.of_labels(self.data, self.fit.target)

    def outcomes(self, watch: Watch, start: NDArray[np.float64] | None = None) -> Iterator[Outcome]:
        """The trained rankers, as ``Fit.outcomes`` gives them."""
        trainer, target = self.fit.trainer, self.fit.target
        watch = about_data(watch, self.fit, lambda: self.data.rows)
        weights = {"query_weights": self.query_weights} if trainer.capabilities.query_weights else {}
        yield from SHARDED[trainer.family].train(
            trainer,
            self.data,
            target,
            watch,
            start=start,
            **weights,
            dimension=self.dimension,
        )

    def model(self, outcome: Outcome) -> LinearRanker:
        """The model of an outcome, its weights for rows as they are in the parts."""
        (model,) = self.fit.model(outcome).linear_parts()
        return model

    def decided(self, outcome: Outcome) -> LinearRanker:
        """``model`` with a threshold, where that makes sense: a few passes over the rows."""
        model = self.model(outcome)
        return with_training_threshold(model, self.data, self.fit.target) if outcome.ranks else model
