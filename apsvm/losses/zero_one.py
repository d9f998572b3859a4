"""The 0-1 loss of the binary SVM: the share of rows on the wrong side, bounded by (1/n) Σ_i cost_i max(0, 1 − y_i s_i).

The papers' baseline. It decomposes over the rows and has its own oracle (``apsvm.oracles.zero_one``).
"""

from __future__ import annotations

from typing import ClassVar

from apsvm.losses.base import Loss


class ZeroOneLoss(Loss):
    """The share of misclassified rows."""

    name = "zero-one"
    by_query: ClassVar[bool] = False
