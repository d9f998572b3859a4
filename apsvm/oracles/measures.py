"""Oracles made for measures outside the two-array family; their algorithms are in ``_native/core/measures.cpp``."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from apsvm._native import _kernels
from apsvm.losses.base import Loss
from apsvm.oracles.base import BoundOracle, Oracle, Queries, QueriesOracle, Violation


class Measure(NamedTuple):
    """What the kernels know of a loss: its form in the registry; k, β or 0; and D at the positions they need, if they
    need any. Neither depends on a query's sizes but for the length of D."""

    form: str
    parameter: float = 0.0
    discount: NDArray[np.float64] = np.empty(0)


class MeasureOracle(Oracle):
    """An oracle for the losses of the types ``serves``."""

    serves: ClassVar[tuple[type[Loss], ...]]
    what: ClassVar[str]  # it serves, in words

    @abstractmethod
    def measure(self, loss: Loss, n: int) -> Measure:
        """``loss`` as the kernels know it, for queries of up to n rows."""

    def refusal(self, loss: Loss) -> str | None:
        return None if isinstance(loss, self.serves) else f"it is made for {self.what}"

    def bind(
        self,
        loss: Loss,
        n_pos: int,
        n_neg: int,
        *,
        costs: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
        threads: int = 1,
    ) -> BoundOracle:
        kernel = self._kernel(loss, n_pos + n_neg, threads)
        return lambda *arrays: Violation(*kernel.one(*arrays))

    def bind_queries(self, loss: Loss, queries: Queries, *, threads: int = 1) -> QueriesOracle:
        kernel = self._kernel(loss, int((queries.n_pos + queries.n_neg).max()), threads)
        kernel.add_tasks(*queries.tasks)
        return lambda scores, weights: Violation(*kernel(scores, weights))

    def _kernel(self, loss: Loss, n: int, threads: int) -> _kernels.MeasureOracle:
        form, parameter, discount = self.measure(loss, n)
        return _kernels.MeasureOracle(form, parameter, discount, discount[:-1] - discount[1:], threads)
