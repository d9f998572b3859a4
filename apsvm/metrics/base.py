"""What a metric is: a number in [0, 1] read off a `RankingTable`, with a canonical name.

Tie rules (rows of equal score form a *block*):

- ``block``: no order is assumed inside a block; thresholds stand between blocks only (as scikit-learn does), and a
  cut-off that falls inside a block takes the expectation over its shuffles;
- ``pessimistic``: inside a block the negatives come first;
- ``file``: inside a block the rows keep the order they were given in.

The table applies the rule, so that a metric is written once, over thresholds. This module loads no numpy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from apsvm.metrics.ranking_table import RankingTable

TIE_RULES = ("block", "pessimistic", "file")


class MetricError(ValueError):
    """A metric's name cannot be read, its input is not a ranking, or its value is undefined there."""


@dataclass(frozen=True)
class Metric(ABC):
    """A ranking metric. Metrics without parameters set `form`; those with a cut-off derive from `MetricAtK`.

    form : canonical name, ``k`` standing for the cut-off; in lower case it is the key in the registry
    needs_negatives : whether the value is undefined without a negative (without a positive it always is)
    """

    form: ClassVar[str]
    needs_negatives: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """The canonical name; `parse_metric` gives back an equal metric."""
        return self.form

    def __call__(self, scores: ArrayLike, relevant: ArrayLike, ties: str = "block") -> float:
        """The metric of one ranking.

        scores : (n,) real, finite, higher is ranked first; compared as float64
        relevant : (n,) bool, in the order of `scores`
        ties : one of `TIE_RULES`

        Raises `MetricError` if n = 0, on other shapes, dtypes or tie rules, on a score that is not finite, and where
        the metric is undefined.
        """
        from apsvm.metrics.ranking_table import RankingTable

        return self.of(RankingTable.from_scores(scores, relevant, ties))

    def of(self, table: RankingTable) -> float:
        """The metric of a ranking already sorted. Raises `MetricError` where the metric is undefined."""
        if table.n_positives == 0:
            raise MetricError(f"{self.name} is undefined: no positive among the {table.n_rows} rows")
        if self.needs_negatives and table.n_negatives == 0:
            raise MetricError(f"{self.name} is undefined: no negative among the {table.n_rows} rows")
        return self._compute(table)

    @abstractmethod
    def _compute(self, table: RankingTable) -> float:
        """The value, the metric being defined on `table`."""


@dataclass(frozen=True)
class MetricAtK(Metric):
    """A metric of the first k positions; its `form` ends in ``@k``. Raises `MetricError` unless k is an integer ≥ 1."""

    k: int

    def __post_init__(self) -> None:
        if isinstance(self.k, bool) or not isinstance(self.k, int) or self.k < 1:
            raise MetricError(f"{self.form} needs an integer k ≥ 1, found {self.k!r}")

    @property
    def name(self) -> str:
        return f"{self.form.removesuffix('k')}{self.k}"
