"""Chooses, by a rule, the score above which a row is called positive.

All thresholds between two neighbouring scores call the same rows positive: at most n + 1 are compared, halfway between
scores. Rows of equal score are on the same side. O(n log n).

    f1             the highest F1, 2·precision·recall / (precision + recall)
    fpr=A          the highest recall whose share of the negatives called positive is at most A
    precision=A    the highest recall whose precision is at least A
    recall=A       the fewest rows called positive whose recall is at least A
    top=K          K rows called positive, fewer where scores are equal
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apsvm._support.ranges import plain_float

#: Names of rules in messages.
FORMS = "f1, fpr=A, precision=A, recall=A or top=K"
_SHARES = ("fpr", "precision", "recall")


@dataclass(frozen=True, slots=True)
class ThresholdRule:
    """A rule; ``amount`` is its share or count, 0 for f1."""

    name: str
    amount: float = 0.0

    @classmethod
    def parse(cls, text: str) -> ThresholdRule:
        """Parses a rule such as ``fpr=.01``. Raises ValueError for other text."""
        name, equals, number = (part.strip().lower() for part in text.partition("="))
        if name == "f1" and not equals:
            return cls(name)
        amount = math.nan
        with suppress(ValueError):
            amount = plain_float(number)
        if name == "top" and amount >= 1.0 and amount.is_integer() and amount < 2.0**53:
            return cls(name, amount)
        # Among shares, 0 is meaningful only for an error rate.
        if name in _SHARES and 0.0 <= amount <= 1.0 and (amount > 0.0 or name == "fpr"):
            return cls(name, amount)
        raise ValueError(f"expected {FORMS}, with A a share such as 0.01 and K a count, found {text!r}")

    def __str__(self) -> str:
        return self.name if self.name == "f1" else f"{self.name}={self.amount:.12g}"


@dataclass(frozen=True, slots=True)
class ChosenThreshold:
    """A threshold, and its effect on the rows that it was chosen on.

    Attributes
    ----------
    value : float
        Rows of a higher score are called positive.
    called, hits, positives, rows : int
        Number of rows called positive, of these the true positives, of all positives, and of rows.
    meets_rule : bool
        True if the rule is satisfied; False if no threshold reaches the precision.
    """

    value: float
    called: int
    hits: int
    positives: int
    rows: int
    meets_rule: bool = True

    @property
    def precision(self) -> float | None:
        """Precision; None if no row is called positive."""
        return self.hits / self.called if self.called else None

    @property
    def recall(self) -> float:
        return self.hits / self.positives

    @property
    def false_positive_rate(self) -> float:
        return (self.called - self.hits) / (self.rows - self.positives)


def choose_threshold(scores: NDArray[np.float64], relevant: NDArray[np.bool_], rule: ThresholdRule) -> ChosenThreshold:
    """Choose the threshold by ``rule``; the highest among equally good ones.

    Parameters
    ----------
    scores : ndarray
        (n,) float64, finite.
    relevant : ndarray of bool
        (n,) bool, with both classes.

    Raises
    ------
    ValueError
        All rows are relevant, or none is.

    Examples
    --------
    >>> chosen = choose_threshold(np.array([4.0, 3.0, 2.0, 1.0]), np.array([1, 0, 1, 0], bool), ThresholdRule("f1"))
    >>> chosen.value, chosen.recall
    (1.5, 1.0)
    """
    positives, n = int(relevant.sum()), scores.size
    if not 0 < positives < n:
        raise ValueError("a threshold needs rows of both classes, and all rows are of one class")
    if rule.name == "f1":
        kept = _callable_by_f1(scores, relevant)
        scores, relevant = scores[kept], relevant[kept]
    order = np.argsort(-scores, kind="stable")
    descending = scores[order]
    # Candidate k calls the rows before ends[k] positive; candidate 0 calls none.
    ends = np.concatenate([[0], np.flatnonzero(descending[1:] != descending[:-1]) + 1, [scores.size]])
    hits = np.concatenate([[0], np.cumsum(relevant[order])])[ends]
    at, meets_rule = _place_by_rule(ends, hits, positives, n, rule)
    called = int(ends[at])
    return ChosenThreshold(_between(descending, called), called, int(hits[at]), positives, n, meets_rule)


def _callable_by_f1(scores: NDArray[np.float64], relevant: NDArray[np.bool_]) -> NDArray[np.bool_] | slice:
    """The rows that the threshold of the highest F1 may call positive, and at least one more if there is one: k called
    rows have an F1 of at most 2P/(k + P), which must reach the F1 of calling half of the positives. O(n)."""
    of_positives, n = scores[relevant], scores.size
    positives = of_positives.size
    middle = np.partition(of_positives, positives // 2)[positives // 2]
    hits, called = (int(np.count_nonzero(values >= middle)) for values in (of_positives, scores))
    most = positives * (called + positives) // hits - positives + 1
    return slice(None) if most >= n else scores >= np.partition(scores, n - most)[n - most]


def _place_by_rule(
    called: NDArray[np.int64], hits: NDArray[np.int64], positives: int, n: int, rule: ThresholdRule
) -> tuple[int, bool]:
    """Index of the candidate threshold chosen by the rule, and True if it satisfies the rule. ``called`` (k,),
    ascending: rows that the candidates call positive; ``hits`` (k,): true positives among them."""
    if rule.name == "f1":
        return int(np.argmax(2.0 * hits / (called + positives))), True
    if rule.name == "top":
        return int(np.flatnonzero(called <= rule.amount)[-1]), rule.amount <= n
    if rule.name == "recall":
        return int(np.argmax(hits >= rule.amount * positives)), True
    if rule.name == "fpr":
        serves = (called - hits) <= rule.amount * (n - positives)
    else:
        serves = (hits >= rule.amount * called) & (called > 0)
        if not serves.any():
            precision = np.divide(hits, called, out=np.zeros(called.size), where=called > 0)
            return int(np.flatnonzero(precision == precision.max())[-1]), False
    # argmax gives the first maximum, and so the fewest rows for that many hits.
    return int(np.argmax(np.where(serves, hits, -1))), True


def _between(descending: NDArray[np.float64], called: int) -> float:
    """A threshold that only the first ``called`` scores exceed."""
    highest = float(descending[0])
    if called == 0:
        return highest
    upper = float(descending[called - 1])
    if called < descending.size:
        lower = float(descending[called])
        middle = lower / 2.0 + upper / 2.0
        return middle if lower <= middle < upper else lower
    if upper != 0.0:
        return float(np.nextafter(upper, -np.inf))
    # The next float64 would differ too little for other programs and for people.
    return -1e-12 * (highest if highest > 1e-100 else 1.0)
