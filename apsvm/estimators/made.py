"""Estimators generated from what a trainer declares (``apsvm.trainers.settings``).

The parameters are the loss, the trainer's settings by their names, and what every estimator has. A trainer of grades or
of an order makes a ranker, any other a classifier of two classes. ``fit`` takes ``qid`` where the trainer has a use for
queries, and ``sample_weight`` where it has one for weights.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import ClassVar

from apsvm.data.takes import Takes
from apsvm.estimators.base import LinearEstimator
from apsvm.estimators.kinds import RankerOfNumbers, TwoClasses
from apsvm.estimators.losses import TakesLoss
from apsvm.estimators.parameters import default_of
from apsvm.estimators.signatures import ByQuery, OfRows, Weighted
from apsvm.trainers import TRAINERS, trainer_of
from apsvm.trainers.base import AnyTrainer
from apsvm.trainers.settings import Declared, declared

#: Parameters of every estimator: the default, and what is said of them.
_OF_ALL: Mapping[str, tuple[object, str]] = {
    "features": ("linear", "what is made of the features before they are weighed, see ``APSVMClassifier``"),
    "scale": ("auto", "how columns are scaled before they are weighed, see ``APSVMClassifier``"),
    "time_limit": (None, "seconds of training, or None"),
    "n_jobs": (None, "threads, None: 1, -1: as many as there are cores"),
    "warm_start": (False, "whether a fit starts from the weights of the one before"),
    "random_state": (None, "seed of what is drawn, or a ``numpy.random.RandomState``"),
    "verbose": (0, '1 shows each iteration on standard error (the logger "apsvm")'),
}
#: Families whose estimators were written: the module, the classifier and the ranker in it.
_WRITTEN: Mapping[str, tuple[str, str, str]] = {
    "structured-svm": ("apsvm.estimators.structured", "APSVMClassifier", "APSVMRanker"),
    "rank-ncg": ("apsvm.estimators.rank_ncg", "RankNCG", "RankNCG"),
    "warp": ("apsvm.estimators.warp", "WARPRanker", "WARPRanker"),
    "net": ("apsvm.torch", "RankNetClassifier", "RankNetRanker"),
}
_OF_RANKERS: Mapping[str, tuple[object, str]] = {
    "relevant_from": (None, "the lowest grade that is relevant; there are then only relevant rows and others"),
}
_OF_CLASSIFIERS: Mapping[str, tuple[object, str]] = {
    "pos_label": (None, "the value of y that is positive; None: the second in sorted order"),
    "fit_intercept": (True, "whether there is a constant: as many training rows score above 0 as are positive"),
    "threshold": (None, "where ``predict`` draws the line instead, see ``APSVMClassifier``"),
    "calibrate": (None, "how ``predict_proba`` is fitted, see ``APSVMClassifier``"),
}


def estimator_for(family_or_loss: str) -> type[LinearEstimator]:
    """A scikit-learn estimator for a trainer, by the name of its family or of a loss.

    Where one was written, that is it: ``APSVMClassifier`` or ``APSVMRanker``, with the loss as its default, ``RankNCG``
    or ``WARPRanker``. Any other is made from what the trainer declares.

    Parameters
    ----------
    family_or_loss : str
        ``"direct-loss"``, ``"direct(auc)"``, ``"ndcg@10"``, ``"wmw"`` …

    Returns
    -------
    class
        A ranker where the trainer takes grades or an order, else a classifier of two classes; the same class each time

    Raises
    ------
    UnknownNameError
        There is no such family or loss.
    ValueError
        The trainer has no use for labels, or takes each of them in turn.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from apsvm.estimators import estimator_for
    >>> Estimator = estimator_for("direct(auc)")
    >>> Estimator(epochs=10)
    DirectLossClassifier_direct_auc(epochs=10)
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> print(f"AUC {Estimator(random_state=0).fit(X, y).score(X, y):.2f}")
    AUC 1.00
    """
    name = family_or_loss if ":" in family_or_loss else family_or_loss.strip().lower()
    if name in list(TRAINERS):
        trainer: type[AnyTrainer] = TRAINERS[name]
        return _estimator(trainer, trainer.default_loss or trainer.losses[0])
    return _estimator(trainer_of(name), name)


@cache
def _estimator(trainer: type[AnyTrainer], loss: str) -> type[LinearEstimator]:
    plan = trainer(loss)
    takes = plan.capabilities.labels
    if takes in (Takes.NOTHING, Takes.CLASSES):
        raise ValueError(f"{trainer.family} is trained on no labels of two classes or grades: there is no estimator")
    ranks = takes in (Takes.GRADES, Takes.ORDER)
    pair = _written(trainer)
    if pair is not None:
        base = pair[ranks]
        signature = inspect.signature(base).parameters
        if "loss" not in signature or signature["loss"].default == loss:
            return base
        changed = [one.replace(default=loss) if one.name == "loss" else one for one in signature.values()]
        return _made(
            _named(base.__name__, loss), (_Pickled, base), changed, base.__doc__ or "", _made_for=(trainer, loss)
        )
    kind: type[LinearEstimator] = RankerOfNumbers if ranks else TwoClasses
    documented = _parameters(trainer, loss, ranks)
    name = trainer.__name__.removesuffix("Trainer") + ("Ranker" if ranks else "Classifier")
    if loss != (trainer.default_loss or trainer.losses[0]):
        name = _named(name, loss)
    parameters = [
        inspect.Parameter(
            parameter,
            inspect.Parameter.POSITIONAL_OR_KEYWORD if parameter == "loss" else inspect.Parameter.KEYWORD_ONLY,
            default=default,
        )
        for parameter, (default, _) in documented.items()
    ]
    bases = (_Pickled, _signature_for(plan), TakesLoss, kind)
    documentation = _documentation(trainer, ranks, documented)
    return _made(name, bases, parameters, documentation, _made_for=(trainer, loss), _trainer=trainer, _draws=True)


def _written(trainer: type[AnyTrainer]) -> tuple[type[LinearEstimator], type[LinearEstimator]] | None:
    """The classifier and the ranker of a trainer, where they were written."""
    if trainer.family not in _WRITTEN:
        return None
    module, classifier, ranker = _WRITTEN[trainer.family]
    home = import_module(module)
    return getattr(home, classifier), getattr(home, ranker)


def _named(kind: str, loss: str) -> str:
    """A class's name that tells its loss: scikit-learn shows of parameters what differs from the defaults."""
    return f"{kind}_{re.sub(r'[^0-9a-z]+', '_', loss.lower()).strip('_')}"


def _signature_for(plan: AnyTrainer) -> type[LinearEstimator]:
    if plan.capabilities.query_weights or plan.capabilities.costs:
        return Weighted
    return ByQuery if plan.capabilities.queries else OfRows


def _parameters(trainer: type[AnyTrainer], loss: str, ranks: bool) -> dict[str, tuple[object, str]]:
    """The default and the description of each, by name."""
    of_settings = {
        name: (default_of(field), _described(about))
        for name, (field, about) in declared(trainer.Settings).items()
        if about.in_header and not about.needs_validation
    }
    first = {"loss": (loss, f"what is optimised: {', '.join(trainer.losses)}")}
    return {**first, **of_settings, **(_OF_RANKERS if ranks else _OF_CLASSIFIERS), **_OF_ALL}


def _described(about: Declared) -> str:
    """What ``--help`` says of a setting, its flags as parameters."""
    text = about.help if about.default_text is None else f"{about.help} By default {about.default_text}"
    return re.sub(r"--([a-z][a-z-]*)", lambda flag: flag[1].replace("-", "_"), text)


def _documentation(trainer: type[AnyTrainer], ranks: bool, parameters: Mapping[str, tuple[object, str]]) -> str:
    y = (
        "y holds numbers, the higher the more relevant."
        if ranks
        else "y holds two values of any type; the second in sorted order is positive, or ``pos_label``."
    )
    lines = [f"    {name} : {text}" for name, (_, text) in parameters.items()]
    return "\n".join(
        [f"{trainer.title}, as an estimator made from what its trainer declares.", "", f"    {y}", ""]
        + ["    Parameters", "    ----------", *lines, ""]
        + ["    Attributes", "    ----------"]
        + ["    coef_, intercept_ : score(x) = coef_·φ(x) + intercept_", "    feature_map_ : φ, None for x as it is"]
        + ["    n_iter_ : iterations, or epochs"]
        + ["    n_queries_, n_queries_skipped_ : queries that were trained on, and those without anything to rank"]
        + ["    n_features_in_, feature_names_in_ : as everywhere in scikit-learn"]
        + ([] if ranks else ["    classes_ : (2,) the two values; pos_label_ : the positive one"])
        + ["    "]
    )


class _Pickled(LinearEstimator):
    """An estimator of a made class: no module has it, so that a pickle says how to make it again."""

    #: What ``_estimator`` made the class for.
    _made_for: ClassVar[tuple[type[AnyTrainer], str]]

    def __reduce__(self) -> tuple[Callable[..., LinearEstimator], tuple[object, ...], object]:
        made_for = type(self).__dict__.get("_made_for")
        if made_for is None:  # a user's class derived from a generated one, and which has a module
            return _blank, (type(self),), self.__getstate__()
        return _blank_made, made_for, self.__getstate__()


def _blank(kind: type[LinearEstimator]) -> LinearEstimator:
    estimator: LinearEstimator = kind.__new__(kind)
    return estimator


def _blank_made(trainer: type[AnyTrainer], loss: str) -> LinearEstimator:
    return _blank(_estimator(trainer, loss))


def _made(
    name: str,
    bases: tuple[type, ...],
    parameters: Sequence[inspect.Parameter],
    documentation: str,
    **attributes: object,
) -> type[LinearEstimator]:
    """A class whose ``__init__`` takes ``parameters`` and keeps them, as scikit-learn wants it; with ``attributes``."""
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    signature = inspect.Signature([itself, *parameters])

    def __init__(self: LinearEstimator, *args: object, **kwargs: object) -> None:
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        for parameter, value in list(bound.arguments.items())[1:]:
            setattr(self, parameter, value)

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    content = {"__init__": __init__, "__doc__": documentation, "__module__": __name__, **attributes}
    return type(name, bases, content)


#: Direct loss minimisation (``--loss 'direct(ap)'``, ``'direct(ndcg)'``) of two classes, and of grades.
DirectLossClassifier = estimator_for("direct-loss")
DirectLossRanker = estimator_for("direct(ndcg)")
DirectLossRanker.__name__ = "DirectLossRanker"
