"""The bucket oracle: exact, O(N + P log B + B) expected, without a comparison sort of the negatives.

No comparison-based method can do better than N log P (Mohapatra, Rolínek et al. 2018, Theorem 2); counting scores into
B bins is none. Positions and scores at a bin's ends bound the ranks inside it, and only the bins whose bounds differ
are looked into: few of them where positives are few. Where positives are many, bins are coarse and nearly all are
looked into, each sorted in the cache and ranked by one walk. Up to 5,000 negatives, or 100,000 for many positives, all
are sorted instead, by a radix sort on linear places. ``apsvm/_native/core/oracles/bucket.cpp`` has the details.
"""

from __future__ import annotations

from typing import ClassVar

from apsvm.oracles.base import NativeOracle


class Bucket(NativeOracle):
    """Histogram of the scores, bins solved by divide and conquer."""

    name: ClassVar[str] = "bucket"
