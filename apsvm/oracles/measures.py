"""Oracles for measures outside the two-array family; the algorithms are in ``_native/core/oracles/measures.cpp``."""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from apsvm._native import _kernels
from apsvm.oracles.base import BoundOracle, LossT, NativeQuery, Oracle, QueriesOracle
from apsvm.oracles.layout import Queries


class Measure(NamedTuple):
    """Parameters of a loss for the kernels. Only the length of D depends on a query's sizes.

    Attributes
    ----------
    form : its form in the registry
    parameter : k, β or 0
    discount : (n,) float64, D at the required positions; may be empty
    """

    form: str
    parameter: float = 0.0
    discount: NDArray[np.float64] = np.empty(0)


class MeasureOracle(Oracle[LossT]):
    """An oracle implemented by kernels, which know its losses by name."""

    @abstractmethod
    def measure(self, loss: LossT, n: int) -> Measure:
        """Kernel parameters of ``loss``, for queries of up to n rows."""

    def bind(self, loss: LossT, n_pos: int, n_neg: int, *, threads: int = 1) -> BoundOracle:
        return NativeQuery(self._kernel(loss, n_pos + n_neg, threads))

    def bind_queries(self, loss: LossT, queries: Queries, *, threads: int = 1) -> QueriesOracle:
        kernel = self._kernel(loss, int((queries.n_pos + queries.n_neg).max()), threads)
        kernel.add_tasks(*queries.tasks)
        return kernel

    def _kernel(self, loss: LossT, n: int, threads: int) -> _kernels.MeasureOracle:
        form, parameter, discount = self.measure(loss, n)
        return _kernels.MeasureOracle(form, parameter, discount, threads)
