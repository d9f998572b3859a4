"""The average of linear rankers: a linear ranker on their concatenated feature maps, which records its members.

    score(x) = Σ_m score_m(x) / divisor_m

The header of the average has the header of each member with its certificate, so that each can be verified.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from apsvm._support.errors import ModelError, require
from apsvm.data.features.joined import Joined
from apsvm.data.features.linear import Linear
from apsvm.models.header import Header, LabelKind, Member
from apsvm.models.json import difference
from apsvm.models.linear import LinearRanker

#: Kinds of labels that rank rows with higher labels higher. Members of one average may differ in them: one trained on
#: all grades, another on those above a threshold against the others.
HIGHER_IS_BETTER = (LabelKind.BINARY, LabelKind.THRESHOLD, LabelKind.GRADES, LabelKind.ORDER)


def average_of(rankers: Sequence[LinearRanker], divisors: Sequence[float]) -> LinearRanker:
    """Average of at least two rankers on the same features, none of them with ``unit_rows``.

    Its header is that of the first ranker without the fields that describe this ranker alone. It has cautions only if
    every ranker has some.

    Parameters
    ----------
    divisors : the divisor of each ranker's scores, > 0
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
        cautions=first.cautions if all(ranker.header.cautions for ranker in rankers) else (),
        iterations=None,
        C=None,
        certificate=None,
        threshold=None,
        calibration=None,
    )
    members = tuple(
        Member(header=difference(ranker.header, whole), intercept=ranker.intercept, divisor=divisor)
        for ranker, divisor in zip(rankers, divisors, strict=True)
    )
    parts = list(zip(rankers, divisors, strict=True))
    coef = np.concatenate([ranker.coef / divisor for ranker, divisor in parts])
    intercept = math.fsum(ranker.intercept / divisor for ranker, divisor in parts)
    return LinearRanker(coef, intercept, replace(whole, members=members), joined)


def members_of(ranker: LinearRanker) -> list[LinearRanker]:
    """The rankers that ``ranker`` averages, as they were trained; the ranker itself if it is no average.

    Raises
    ------
    ModelError
        The members in the header do not fit the maps, features or labels, or the average has a certificate of its own.
    """
    whole = ranker.header
    if not whole.members:
        return [ranker]
    headers, joined = headers_of(whole), ranker.feature_map
    if not isinstance(joined, Joined) or len(joined.maps) != len(headers):
        raise ModelError(f"expected a member for each map of {whole.features.map}, found {len(headers)} in 'members'")
    divisors = [member.divisor for member in whole.members]
    require(min(divisors) > 0.0, "a divisor above 0 of each of 'members'")
    require(whole.certificate is None, "no 'certificate' of an average: its members have theirs")
    rankers = []
    each = zip(whole.members, headers, joined.maps, joined.slices(), strict=True)
    for member, header, feature_map, columns in each:
        name, other = feature_map.name, header.features.map
        require(not header.members and other == name, f"a member on {name}, found one on {other}")
        is_alike = header.features.scale != "l2" and _common(header) == _common(whole)
        require(is_alike, "members of the average's own features, labels and rows, none divided by length")
        plain = None if isinstance(feature_map, Linear) else feature_map
        rankers.append(LinearRanker(ranker.coef[columns] * member.divisor, member.intercept, header, plain))
    return rankers


def has_constant_of_members(ranker: LinearRanker) -> bool:
    """True if an average's constant is the sum of its members' constants, each divided by its divisor; False if a
    threshold has moved it, which changes no ranking."""
    return ranker.intercept == math.fsum(member.intercept / member.divisor for member in ranker.header.members)


def headers_of(header: Header) -> list[Header]:
    """Headers of an average's members, as they were trained. Raises ModelError."""
    whole = replace(header, members=())
    return [Header.from_json(member.header, whole) for member in header.members]


def _common(header: Header) -> tuple[object, ...]:
    """Properties that all members of an average share: the features of a row, and which rows rank high."""
    labels = header.labels
    higher = None if labels.kind in HIGHER_IS_BETTER else (labels.kind, labels.positive)
    return replace(header.features, map="", scale="none", bias=None), higher, header.latent
