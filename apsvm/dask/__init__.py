"""Training on a dask cluster (the extra ``apsvm[dask]``).

    from dask.distributed import Client
    from apsvm.dask import DaskAPSVMClassifier
    with Client("tcp://scheduler:8786"):
        model = DaskAPSVMClassifier(loss="ap").fit(X, y)        # dask arrays, data frames or delayed parts

Features stay on the workers, and the mathematics is on the driver: ``rows`` is the operator that the ordinary training
sees, ``parts`` what a worker makes of a part, ``reading`` and ``fitting`` what the driver makes of all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

try:
    import dask  # noqa: F401
    import distributed  # noqa: F401
except ModuleNotFoundError as error:
    if error.name not in ("dask", "distributed"):
        raise
    raise ImportError("apsvm.dask needs dask.distributed: pip install 'apsvm[dask]'") from error

if TYPE_CHECKING:
    from apsvm.dask.estimators import DaskAPSVMClassifier, DaskAPSVMRanker, DaskRankNCG

__all__ = ["DaskAPSVMClassifier", "DaskAPSVMRanker", "DaskRankNCG"]


def __getattr__(name: str) -> object:
    """The estimators, for which scikit-learn is loaded."""
    if name in __all__:
        from apsvm.dask import estimators

        return getattr(estimators, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
