"""Greedy: sort both, then try every rank for every negative. O(PN + N log N).

Yue et al. 2007; Algorithm 1 of Mohapatra et al. 2014; for NDCG, Chakrabarti et al. 2008. The papers' baseline.
"""

from __future__ import annotations

from typing import ClassVar

from apsvm.oracles.base import NativeOracle


class Greedy(NativeOracle):
    """Tries every rank for every negative."""

    name: ClassVar[str] = "greedy"
