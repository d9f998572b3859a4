"""Base class of metrics: a number in [0, 1] for every ranking of a `RankingTable`, with a canonical name.

Tie rules (rows of equal score form a *block*):

- ``block``: no order is assumed inside a block. AP and the PASCAL VOC figures put thresholds between blocks only (as
  scikit-learn does); every other metric takes its expectation over the shuffles of the blocks;
- ``pessimistic``: inside a block the negatives (the lowest grades) come first;
- ``file``: inside a block the rows keep their input order.

The table applies the rule, so that a metric is written once, over runs of rows. This module loads no numpy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from apsvm._support.ranges import plain_float
from apsvm.metrics.errors import MetricError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from apsvm.metrics.ranking_table import RankingTable

_MAX_DIGITS = 18  # a cut-off must fit int64


@dataclass(frozen=True)
class Metric(ABC):
    """A ranking metric.

    form : canonical name, with a letter or a word for the parameter (``@k``, ``(rho)``, ``β``); the key in the registry
    needs_negatives : True if the value is undefined without a negative (without a positive it always is)
    graded : True if it reads the rows' grades, not only which rows are relevant
    examples : texts of the parameter that the tests try, including the ends of its range
    thresholded : True if it compares scores with a threshold, not only with each other
    """

    form: ClassVar[str]
    needs_negatives: ClassVar[bool] = False
    graded: ClassVar[bool] = False
    thresholded: ClassVar[bool] = False
    examples: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def takes_parameter(cls) -> bool:
        """True if the metric's names have a parameter: the class overrides ``from_text``."""
        return cls.from_text.__func__ is not Metric.from_text.__func__  # type: ignore[attr-defined]

    @property
    def name(self) -> str:
        """The canonical name; `parse_metric` gives back an equal metric."""
        return self.form

    @classmethod
    def from_text(cls, parameter: str) -> Metric:
        """Makes the metric from the text of its parameter. Raises `MetricError`."""
        raise MetricError(f"{cls.form} takes no parameter, found {parameter!r}")

    def __call__(
        self, scores: ArrayLike, relevant: ArrayLike, ties: str = "block", *, relevant_from: float | None = None
    ) -> float:
        """The metric of one ranking.

        scores : (n,) real, finite, higher is ranked first; compared as float64
        relevant : (n,) bool, in the order of `scores`; or, with `relevant_from`, (n,) finite grades
        ties : one of `TIE_RULES`
        relevant_from : rows of this grade or a higher one are relevant

        Raises `MetricError` if n = 0, for other shapes, dtypes or tie rules, for non-finite scores, and if the metric
        is undefined.
        """
        from apsvm.metrics.checked import check_rows, check_ties
        from apsvm.metrics.ranking_table import Judgements

        check_ties(ties)
        values, grades = check_rows(scores, relevant, relevant_from)
        return self.of(Judgements(grades, relevant_from).table(values, ties))

    def of(self, table: RankingTable) -> float:
        """The metric of a table with one ranking. Raises `MetricError` if it is undefined."""
        value = float(self.each(table)[0])
        if value != value:
            raise MetricError(f"{self.name} is undefined: {self._lack(table)} among the {table.row_bounds[-1]} rows")
        return value

    def each(self, table: RankingTable) -> NDArray[np.float64]:
        """(Q,) float64: the metric of every ranking, NaN if undefined."""
        import numpy as np

        with np.errstate(divide="ignore", invalid="ignore"):
            values = self._compute(table)
        return np.where(self.defined(table), values, np.nan)

    def defined(self, table: RankingTable) -> NDArray[np.bool_]:
        """(Q,) bool: True for rankings with a value."""
        has: NDArray[np.bool_] = table.n_positives > 0
        return has & (table.n_negatives > 0) if self.needs_negatives else has

    def telling(self, table: RankingTable) -> NDArray[np.bool_]:
        """(Q,) bool: True for rankings whose order can matter to the metric."""
        result: NDArray[np.bool_] = (table.n_positives > 0) & (table.n_negatives > 0)
        return result

    def _lack(self, table: RankingTable) -> str:
        return "no positive" if table.n_positives[0] == 0 else "no negative"

    @abstractmethod
    def _compute(self, table: RankingTable) -> NDArray[np.float64]:
        """(Q,): the values; any value, or a division by zero, is allowed where the metric is undefined."""


@dataclass(frozen=True)
class MetricAtK(Metric):
    """A metric of the first k positions; its `form` ends in ``@k``, or another letter. Raises `MetricError` unless k is
    an integer ≥ 1."""

    k: int

    def __post_init__(self) -> None:
        if isinstance(self.k, bool) or not isinstance(self.k, int) or self.k < 1:
            raise MetricError(f"{self.form} needs an integer k ≥ 1, found {self.k!r}")

    @property
    def name(self) -> str:
        return f"{self.form.rpartition('@')[0]}@{self.k}"

    @classmethod
    def from_text(cls, parameter: str) -> Metric:
        digits = parameter.lstrip("0")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= _MAX_DIGITS):
            raise MetricError(
                f"{cls.form} needs an integer k ≥ 1 of at most {_MAX_DIGITS} digits, as in {cls(10).name}, "
                f"found {parameter!r}"
            )
        return cls(int(digits))


def number_in_name(value: float) -> str:
    """The shortest text that reads back as `value`: 1 and not 1.0."""
    return repr(float(value)).removesuffix(".0")


def number_from_name(form: str, text: str, example: object) -> float:
    """The number written in a metric's name. Raises `MetricError`."""
    try:
        return plain_float(text)
    except ValueError:
        raise MetricError(f"{form} needs a number, as in {example}, found {text!r}") from None
