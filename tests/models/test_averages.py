"""The average of rankers: its score, its members as they were, its file, and files that say what cannot be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from apsvm import ComponentRanker, LinearRanker, ModelError, load_any_model, load_model
from apsvm.data.features import learn_map
from apsvm.models.averages import average_of, has_constant_of_members, members_of
from apsvm.models.header import Bounds, Calibration, Features, Header, LabelKind, Labels, Member, Threshold

DIVISORS = (2.0, 3.0, 0.1)


@pytest.fixture
def X(rng):
    return rng.normal(size=(60, 3))


@pytest.fixture
def members(X, rng) -> list[LinearRanker]:
    rankers = []
    for at, name in enumerate(("linear", "piecewise:4", "rules:9:depth=2")):
        learned = learn_map(name, X, targets=(X[:, :1].T > 0.0).astype(float))
        header = Header(
            family="structured-svm",
            loss=("ap", "auc", "ap")[at],
            C=10.0**at,
            state="converged",
            iterations=at,
            settings={"epsilon": 0.001, "bound": "hinge"},
            details={"steps": 3},
            threshold=Threshold(rule="f1", value=0.5),
            calibration=Calibration(method="platt", scores=(), probabilities=(), slope=1.0, offset=0.0),
            features=Features(map=learned.name, scale=("standard", "standard", "none")[at], bias=1.0),
            certificate=Bounds(primal=2.0, dual=1.0 + at, gap=1.0, tolerance=1.0),
            cautions=((), ("few positives",), ("few positives", "not all is learned"))[at],
        )
        rankers.append(LinearRanker(rng.normal(size=learned.n_out), float(at), header, learned if at else None))
    return rankers


def test_the_score_is_the_sum_of_scores_divided(members, X):
    average = average_of(members, DIVISORS)
    by_hand = sum(one.score(X) / divisor for one, divisor in zip(members, DIVISORS, strict=True))
    np.testing.assert_allclose(average.score(X), by_hand, rtol=1e-12, atol=1e-12)
    assert average.header.features == Features(map="linear+piecewise:4+rules:9:depth=2")
    # What is of the first member alone is not said of the whole.
    assert average.header == Header(
        family="structured-svm", loss="ap", state="converged", features=average.header.features,
        members=average.header.members,
    )  # fmt: skip
    assert has_constant_of_members(average)
    for off in (1e-12, -1e-12, 1.0):
        assert not has_constant_of_members(replace(average, intercept=average.intercept + off))
    with pytest.raises(ValueError, match="shorter"):
        average_of(members, DIVISORS[:2])


def test_the_file_keeps_the_members(members, X, tmp_path):
    average = average_of(members, DIVISORS)
    average.save(tmp_path / "m")
    back = load_model(tmp_path / "m")
    assert back.to_bytes() == average.to_bytes()
    for member, one in zip(members_of(back), members, strict=True):
        assert member.header == one.header
        assert member.intercept == one.intercept
        assert (member.feature_map is None) == (one.feature_map is None)
        np.testing.assert_allclose(member.coef, one.coef, rtol=1e-15)
        np.testing.assert_allclose(member.score(X), one.score(X), rtol=1e-12, atol=1e-12)
    (alone,) = members_of(members[1])
    assert alone is members[1]


def test_files_that_say_what_cannot_be(members, tmp_path):
    average = average_of(members, DIVISORS)
    header, first = average.header, average.header.members[0]
    wrong = {
        "for each map of linear\\+piecewise:4\\+rules:9:depth=2, found 2": replace(header, members=header.members[:2]),
        "a divisor above 0": replace(header, members=(replace(first, divisor=0.0), *header.members[1:])),
        "a member on linear, found one on piecewise:4": replace(
            header, members=header.members[1::-1] + header.members[2:]
        ),
        "'colour' is not known": replace(header, members=(replace(first, header={"colour": 1}), *header.members[1:])),
        "no 'certificate' of an average": replace(header, certificate=members[0].header.certificate),
    }
    for message, one in wrong.items():
        average.with_header(one).save(tmp_path / "m")
        with pytest.raises(ModelError, match=message):
            load_model(tmp_path / "m")
    plain = replace(
        members[1], header=replace(members[1].header, members=(Member(header={}, intercept=0.0, divisor=1.0),))
    )
    plain.save(tmp_path / "m")
    with pytest.raises(ModelError, match="for each map of piecewise:4, found 1"):
        load_model(tmp_path / "m")
    components = ComponentRanker(np.ones((2, 3)), np.zeros(2), replace(header, features=Features()))
    components.save(tmp_path / "m")
    with pytest.raises(ModelError, match=r"has 'members', and a ranker of several components .* cannot be an average"):
        load_any_model(tmp_path / "m")


def test_members_that_rank_something_else(members, tmp_path):
    """Whose certificates are true, and say nothing of the average."""
    header = members[1].header
    for other in (
        replace(header, labels=Labels(kind=LabelKind.ONE_LABEL, positive=-1.0)),
        replace(header, latent=True),
        replace(header, features=replace(header.features, scale="l2")),
        replace(header, features=replace(header.features, zero_based=True)),
    ):
        average_of([members[0], replace(members[1], header=other), members[2]], DIVISORS).save(tmp_path / "m")
        with pytest.raises(ModelError, match="expected members of the average's own features, labels and rows"):
            load_model(tmp_path / "m")
