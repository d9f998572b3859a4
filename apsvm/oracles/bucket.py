"""The bucket oracle: exact, O(N + P log B + B) expected, without a comparison sort of the negatives.

No comparison-based method can do better than N log P (Mohapatra, Rolínek et al. 2018, Theorem 2). This one counts
scores into B bins instead. Positions and scores at a bin's ends bound the ranks inside it, and only bins whose bounds
differ are opened. With few positives these are few. With many positives, bins are coarse and nearly all are opened;
each is sorted in the cache and ranked by one walk. Up to 5,000 negatives, or 100,000 for many positives, all are
sorted instead, by their places on a scale. ``apsvm/_native/core/oracles/bucket.cpp`` has the details.
"""

from __future__ import annotations

from typing import ClassVar

from apsvm.oracles.base import NativeOracle


class Bucket(NativeOracle):
    """Counts scores into bins and solves bins by divide and conquer."""

    name: ClassVar[str] = "bucket"
