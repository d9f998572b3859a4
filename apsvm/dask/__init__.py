"""Training on a dask cluster (extra ``apsvm[dask]``).

    from dask.distributed import Client
    from apsvm.dask import DaskAPSVMClassifier
    with Client("tcp://scheduler:8786"):
        model = DaskAPSVMClassifier(loss="ap").fit(X, y)        # dask arrays, data frames or delayed parts

Features stay on the workers, and the solver runs on the driver. ``parts`` runs on the workers; ``reading`` and
``fitting`` run on the driver; ``rows`` is the operator through which the ordinary training sees the rows.
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
    """The estimators, imported on first use since they load scikit-learn."""
    if name in __all__:
        from apsvm.dask import estimators

        return getattr(estimators, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
