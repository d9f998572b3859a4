"""apsvm: rankers trained on the ranking metric itself.

>>> import apsvm
>>> sorted(apsvm.__all__)  # doctest: +NORMALIZE_WHITESPACE
['APSVMClassifier', 'APSVMClassifierCV', 'APSVMRanker', 'APSVMRankerCV', 'ComponentRanker',
'DataError', 'Dataset', 'LinearRanker', 'ModelError', 'RankNCG', 'RankerSet', 'WARPRanker', 'WeakRankerWarning',
'load_any_model', 'load_model', 'most_violated_ranking', 'read_svmlight', 'show_versions', 'stack_bags']
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from apsvm._support.container import ModelError
    from apsvm._support.versions import show_versions
    from apsvm.data.dataset import DataError, Dataset
    from apsvm.data.svmlight import read_svmlight
    from apsvm.estimators import (
        APSVMClassifier,
        APSVMClassifierCV,
        APSVMRanker,
        APSVMRankerCV,
        RankNCG,
        WARPRanker,
        WeakRankerWarning,
        stack_bags,
    )
    from apsvm.models.components import ComponentRanker
    from apsvm.models.linear import LinearRanker
    from apsvm.models.reading import load_any_model, load_model
    from apsvm.models.sets import RankerSet
    from apsvm.oracles.inference import most_violated_ranking

__version__ = "0.1.0"

__all__ = [
    "APSVMClassifier",
    "APSVMClassifierCV",
    "APSVMRanker",
    "APSVMRankerCV",
    "ComponentRanker",
    "DataError",
    "Dataset",
    "LinearRanker",
    "ModelError",
    "RankNCG",
    "RankerSet",
    "WARPRanker",
    "WeakRankerWarning",
    "load_any_model",
    "load_model",
    "most_violated_ranking",
    "read_svmlight",
    "show_versions",
    "stack_bags",
]

_HOMES = {
    "APSVMClassifier": "apsvm.estimators",
    "APSVMClassifierCV": "apsvm.estimators",
    "APSVMRanker": "apsvm.estimators",
    "APSVMRankerCV": "apsvm.estimators",
    "ComponentRanker": "apsvm.models.components",
    "DataError": "apsvm.data.dataset",
    "Dataset": "apsvm.data.dataset",
    "LinearRanker": "apsvm.models.linear",
    "ModelError": "apsvm._support.container",
    "RankNCG": "apsvm.estimators",
    "RankerSet": "apsvm.models.sets",
    "WARPRanker": "apsvm.estimators",
    "WeakRankerWarning": "apsvm.estimators",
    "load_any_model": "apsvm.models.reading",
    "load_model": "apsvm.models.reading",
    "most_violated_ranking": "apsvm.oracles.inference",
    "read_svmlight": "apsvm.data.svmlight",
    "show_versions": "apsvm._support.versions",
    "stack_bags": "apsvm.estimators",
}


def __getattr__(name: str) -> object:
    # Importing apsvm must stay free for `apsvm --help`: numpy and the rest come with the first use.
    try:
        home = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module 'apsvm' has no attribute {name!r}") from None
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
