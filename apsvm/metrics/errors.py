"""Errors of ``apsvm.metrics``, and the names of the tie rules (``metrics.base``)."""

from __future__ import annotations

TIE_RULES = ("block", "pessimistic", "file")


class MetricError(ValueError):
    """A metric's name is unknown, its input is not a ranking, or its value is undefined."""
