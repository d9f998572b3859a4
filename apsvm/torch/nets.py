"""Networks as scikit-learn's estimators: a loss by its name, and no loop to be written.

    from apsvm.torch import RankNetClassifier
    ranker = RankNetClassifier(hidden=(32,), loss="smooth-ap", random_state=0).fit(X, y)

They train as ``apsvm train --net`` does (``apsvm.torch.training``), and their models are its models.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from apsvm._support.types import JsonDict, Seed
from apsvm.data.rows import Rows
from apsvm.estimators.base import loaded
from apsvm.estimators.kinds import RankerOfNumbers, TwoClasses
from apsvm.estimators.rows import Counted
from apsvm.estimators.signatures import ByQuery
from apsvm.models.base import Ranker
from apsvm.models.net import Layer, Net, NetRanker
from apsvm.trainers.base import AnyTrainer, Outcome, TrainingSet
from apsvm.trainers.fitting import Fit
from apsvm.trainers.nets.trainer import NetTrainer

#: Settings by the names that parameters have.
_RENAMED = {"epochs": "net_epochs", "patience": "net_patience", "batch_size": "batch_rows", "validation": "held_out"}


class _NetEstimator(ByQuery):
    """score(x) is a network's."""

    _trainer = NetTrainer
    _renamed: ClassVar[Mapping[str, str]] = _RENAMED
    _draws = True
    _remedy = "raise time_limit, or lower learning_rate"

    #: What the linear estimators have parameters for.
    features: ClassVar[str] = "linear"
    warm_start: ClassVar[bool] = False
    n_jobs: ClassVar[None] = None
    fit_intercept: ClassVar[bool] = True

    net_: Net
    best_epoch_: int
    validation_score_: float | None

    def to_model(self) -> NetRanker:  # type: ignore[override]
        """The model, to be saved (``.save(path)``) and used by ``apsvm predict`` and ``apsvm eval``."""
        check_is_fitted(self)
        return NetRanker(self.net_, self._header)

    @classmethod
    def from_model(cls, model: NetRanker | str | os.PathLike[str]) -> Self:  # type: ignore[override]
        """An estimator that scores as ``model`` (``apsvm.load_any_model``, or its file) does, with its parameters
        as far as its header tells them.

        Raises
        ------
        ValueError : this class does not train such models
        """
        net = loaded(model)
        if not isinstance(net, NetRanker) or net.feature_map is not None or net.unit_rows:
            raise ValueError(f"{cls.__name__} trains networks of features as they are, found {net.what}")
        return cls._of_model(net, {})

    def _loss(self) -> str | object:
        return self.loss

    def _values(self) -> JsonDict:
        return {**super()._values(), "net": _as_text(self.hidden)}

    def _model_of(self, fit: Fit, data: TrainingSet, outcome: Outcome, counted: Counted) -> NetRanker:
        model = fit.model(outcome)
        assert isinstance(model, NetRanker)
        plan, rows = fit.trainer, data.rows
        assert isinstance(plan, NetTrainer)
        assert isinstance(rows, Rows)
        constant = 0.0 if plan.net_loss.is_bce else self._free_constant(data, model.net.scores(rows))
        *layers, last = model.net.layers
        net = Net((*layers, Layer(last.weights, last.bias + constant)))
        return replace(model, net=net, header=self._header_of(model.header, counted.groups))

    def _judge(self) -> AnyTrainer | None:
        """A model's header may name a module that no name makes."""
        return None if isinstance(self.loss, str) and "Loss(" in self.loss else super()._judge()

    def _keep(self, model: NetRanker) -> None:  # type: ignore[override]
        self._header = header = model.header
        self.net_, self.feature_map_ = model.net, None
        epochs, data = header.epochs, header.data
        self.n_iter_ = 0 if epochs is None else epochs.count
        self.best_epoch_ = 0 if epochs is None else epochs.best
        chosen = None if epochs is None else epochs.validation
        self.validation_score_ = None if chosen is None else chosen.value
        self.n_queries_ = 1 if data.queries is None else data.queries
        self.n_queries_skipped_ = data.queries_skipped or 0
        self._recall(header)

    @classmethod
    def _parameters(cls, model: Ranker) -> JsonDict:
        assert isinstance(model, NetRanker)
        base: JsonDict = super()._parameters(model)
        return {**base, "loss": model.header.loss, "hidden": tuple(model.net.units[:-1])}


def _as_text(hidden: object) -> str:
    """The setting for the parameter ``hidden``. Raises TypeError."""
    units = [hidden] if isinstance(hidden, int | np.integer) else hidden
    if isinstance(units, str) or not isinstance(units, Sequence | np.ndarray):
        raise TypeError(f"hidden is a number of units, or several, one a layer, found {hidden!r}")
    if not all(isinstance(number, int | np.integer) and number is not True and number > 0 for number in units):
        raise ValueError(f"hidden: the units of a layer are whole numbers above 0, found {hidden!r}")
    return ",".join(map(str, units)) or "0"


class RankNetClassifier(_NetEstimator, TwoClasses):
    """A network of dense layers for two classes, trained on average precision or another ranking loss, or on
    cross-entropy.

    y holds two values of any type; the second in sorted order is positive, or ``pos_label``. With ``qid`` only rows of
    one query are compared. Features are standardised inside. ``score`` is the metric that the loss is about.

    Cross-entropy is the default since no ranking loss beat it reliably (``scripts/study/nets.py``); "smooth-ap" came
    nearest to it.

    Parameters
    ----------
    hidden : int or Sequence[int]
        (n_layers,) units of each hidden layer, rectified; a number is one layer, () is a linear scorer.
    loss : str or object
        What is optimised: "bce", cross-entropy; "smooth-ap"; "blackbox-ap"; a loss over rankings of two arrays
        for its hinge, "ap", "ndcg", "mrr", "auc", "rbp(0.8)"; "ramp(ap)" ("ramp") and "direct(ap)" ("direct")
        of these; or a module of ``apsvm.torch``, ``SmoothAPLoss(tau=0.1)``, which no model file can name.
    epochs : int
        Passes over the rows, those by cross-entropy included; of ten steps at least.
    bce_epochs : int, optional
        Passes on cross-entropy before those on another loss, None: half of ``epochs``, 0: none.
    patience : int
        Passes without a better held-out metric after which a loss ends.
    validation : float
        The share of the rows of each class, or of the queries, that is held out to say which pass was best; 0:
        the last one is kept.
    batch_size : int
        Rows of a step, of both classes in their shares, or whole queries; 0: all rows.
    learning_rate : float, optional
        Of Adam, None: 0.003.
    l2 : float, optional
        Weight of ½‖weights‖², None: 0.0001.
    pos_label : object
        The value of y that is positive; None: the second in sorted order.
    device : str
        "cpu", "cuda", "cuda:1", "mps".
    time_limit : float, optional
        Seconds of training, or None.
    random_state : Seed
        Seed of what is drawn, or a ``numpy.random.RandomState``; the same seed gives the same network.
    verbose : int
        1 shows each epoch on standard error (the logger "apsvm").

    Attributes
    ----------
    net_
        ``apsvm.models.net.Net``, the layers, for features as they are.
    n_iter_
        Epochs.
    best_epoch_
        The one that was kept, from 1.
    validation_score_
        The metric of the rows that were held out, after that epoch; None without any.
    n_queries_, n_queries_skipped_
        Queries that were trained on, and those without anything to rank.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.
    classes_
        (2,) the two values.
    pos_label_
        The positive one.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from apsvm.torch import RankNetClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> classifier = RankNetClassifier(hidden=(16,), epochs=20, random_state=0).fit(X, y)
    >>> print(f"AP {classifier.score(X, y):.2f}")
    AP 1.00
    """

    _for_grades = "RankNetRanker"

    def __init__(
        self,
        hidden: int | Sequence[int] = (32,),
        loss: str | object = "bce",
        *,
        epochs: int = 200,
        bce_epochs: int | None = None,
        patience: int = 30,
        validation: float = 0.2,
        batch_size: int = 256,
        learning_rate: float | None = None,
        l2: float | None = None,
        pos_label: object = None,
        device: str = "cpu",
        time_limit: float | None = None,
        random_state: Seed = None,
        verbose: int = 0,
    ) -> None:
        self.hidden = hidden
        self.loss = loss
        self.epochs = epochs
        self.bce_epochs = bce_epochs
        self.patience = patience
        self.validation = validation
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.l2 = l2
        self.pos_label = pos_label
        self.device = device
        self.time_limit = time_limit
        self.random_state = random_state
        self.verbose = verbose


class RankNetRanker(_NetEstimator, RankerOfNumbers):
    """A network of dense layers that orders rows by their grades, query by query.

    y holds numbers: for "ndcg" grades with gains, those above 0 relevant; for losses of two classes (all others) the
    rows above 0, or from ``relevant_from`` on, against the rest. ``score`` is the metric that the loss is about.

    Parameters
    ----------
    loss : str or object
        As in ``RankNetClassifier``, which describes the other parameters too.
    relevant_from : float, optional
        The lowest grade that is relevant; there are then only relevant rows and others.

    Attributes
    ----------
    net_, n_iter_, best_epoch_, validation_score_, n_queries_, n_queries_skipped_
        See ``RankNetClassifier``.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.
    """

    def __init__(
        self,
        hidden: int | Sequence[int] = (32,),
        loss: str | object = "ndcg",
        *,
        relevant_from: float | None = None,
        epochs: int = 200,
        bce_epochs: int | None = None,
        patience: int = 30,
        validation: float = 0.2,
        batch_size: int = 256,
        learning_rate: float | None = None,
        l2: float | None = None,
        device: str = "cpu",
        time_limit: float | None = None,
        random_state: Seed = None,
        verbose: int = 0,
    ) -> None:
        self.hidden = hidden
        self.loss = loss
        self.relevant_from = relevant_from
        self.epochs = epochs
        self.bce_epochs = bce_epochs
        self.patience = patience
        self.validation = validation
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.l2 = l2
        self.device = device
        self.time_limit = time_limit
        self.random_state = random_state
        self.verbose = verbose
