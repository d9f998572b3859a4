"""Errors of ``apsvm.metrics``, and the names of the tie rules (``metrics.base``)."""

from __future__ import annotations

TIE_RULES = ("block", "pessimistic", "file")


class MetricError(ValueError):
    """An unknown metric, input that is no ranking, or an undefined value."""
