"""The average of linear rankers: a linear ranker on their feature maps side by side, which knows its members.

    score(x) = Σ_m score_m(x) / divisor_m

Each member keeps its header, with its certificate, in the header of the whole: what it was trained to can be proved of
it again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from apsvm.data.features.joined import Joined
from apsvm.data.features.linear import Linear
from apsvm.models.header import Header, HeaderError, Member
from apsvm.models.linear import LinearRanker


def average_of(rankers: Sequence[LinearRanker], divisors: Sequence[float]) -> LinearRanker:
    """The average of at least two rankers of the same features, none of which divides rows by their length.

    Its header is the first one's, without what is of that ranker alone.

    Parameters
    ----------
    divisors : of each ranker's scores, above 0
    """
    maps = tuple(ranker.feature_map or Linear(ranker.width) for ranker in rankers)
    joined, first = Joined(maps), rankers[0].header
    worst = next((ranker.header for ranker in rankers if not ranker.header.as_asked), first)
    whole = replace(
        first,
        features=replace(first.features, map=joined.name, scale="none", bias=None),
        settings={},
        details={},
        state=worst.state,
        as_asked=worst.as_asked,
        iterations=None,
        C=None,
        certificate=None,
        threshold=None,
        calibration=None,
    )
    members = tuple(
        Member(header=ranker.header.difference(whole), intercept=ranker.intercept, divisor=divisor)
        for ranker, divisor in zip(rankers, divisors, strict=True)
    )
    parts = list(zip(rankers, divisors, strict=True))
    coef = np.concatenate([ranker.coef / divisor for ranker, divisor in parts])
    intercept = math.fsum(ranker.intercept / divisor for ranker, divisor in parts)
    return LinearRanker(coef, intercept, replace(whole, members=members), joined)


def members_of(ranker: LinearRanker) -> list[LinearRanker]:
    """The rankers that ``ranker`` is the average of, as they were trained; itself alone where it is none.

    Raises
    ------
    HeaderError
        Its header's members are not of the maps that stand side by side.
    """
    if not ranker.header.members:
        return [ranker]
    joined, headers = ranker.feature_map, headers_of(ranker.header)
    if not isinstance(joined, Joined) or len(joined.maps) != len(headers):
        maps = len(joined.maps) if isinstance(joined, Joined) else 1
        raise HeaderError(f"expected a member for each of {maps} maps in 'members', found {len(headers)}")
    if not all(member.divisor > 0.0 for member in ranker.header.members):
        raise HeaderError("expected a divisor above 0 of each of 'members'")
    rankers = []
    each = zip(ranker.header.members, headers, joined.maps, joined.slices(), strict=True)
    for member, header, feature_map, columns in each:
        if header.members or header.features.map != feature_map.name:
            raise HeaderError(f"expected a member on {feature_map.name}, found one on {header.features.map}")
        plain = None if isinstance(feature_map, Linear) else feature_map
        rankers.append(LinearRanker(ranker.coef[columns] * member.divisor, member.intercept, header, plain))
    return rankers


def headers_of(header: Header) -> list[Header]:
    """The headers of an average's members, as they were trained. Raises HeaderError."""
    whole = replace(header, members=())
    return [Header.from_difference(member.header, whole) for member in header.members]
