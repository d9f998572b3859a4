"""Models of several classes: there and back, and what is refused."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import numpy as np
import pytest

from apsvm import LinearRanker, RankerSet, load_any_model
from apsvm.models.header import Data, Features, Header, LabelKind, Labels, SkippedClass


@pytest.fixture
def rankers(rng) -> list[LinearRanker]:
    """Three, whose headers differ in places of every depth; 1, 1.0 and true are told apart."""
    headers = [
        Header(
            loss="ap",
            features=Features(zero_based=True),
            labels=Labels(kind=LabelKind.ONE_LABEL, positive=label),
            C=1.0,
            data=Data(rows=5, positives=n, counts={"a": 1, "b": n}),
            settings=settings,
        )
        for n, (label, settings) in enumerate([(-1.5, {"note": None, "x": 1}), (0.0, {"x": 1.0}), (7.0, {"x": True})])
    ]
    return [LinearRanker(rng.normal(size=4), float(j), header) for j, header in enumerate(headers)]


def whole_of(rankers, **more) -> RankerSet:
    header = replace(rankers[0].header, labels=Labels(kind=LabelKind.CLASSES), data=Data(rows=5), settings={"x": 1})
    return RankerSet(rankers, replace(header, **more))


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_set_gives_each_ranker_back(rankers, count, tmp_path):
    rankers = rankers[:count]
    made = whole_of(rankers, classes_skipped=(SkippedClass(label=3.0, reason="why"),))
    made.save(tmp_path / "m")
    back = load_any_model(tmp_path / "m")
    assert isinstance(back, RankerSet)
    assert back.to_bytes() == made.to_bytes() == (tmp_path / "m").read_bytes()
    assert back.classes.tolist() == made.classes.tolist() == [-1.5, 0.0, 7.0][:count]
    assert back.width == made.width == 4
    assert back.header == made.header
    assert back.header.classes_skipped == (SkippedClass(label=3.0, reason="why"),)
    for ranker in rankers:
        for each in (back, made):
            assert each.ranker(ranker.header.labels.positive).to_bytes() == ranker.to_bytes()
    with pytest.raises(KeyError):
        back.ranker(3.0)


def test_what_classes_share_is_kept_once(rankers):
    content = content_of(whole_of(rankers, classes_skipped=(SkippedClass(label=3.0, reason="why"),)))
    assert (content["C"], content["data"]["rows"]) == (1.0, 5)
    settings = [str(of_class.get("settings")) for of_class in content["classes"]]
    assert settings == ["{'note': None, 'x': 1}", "{'x': 1.0}", "{'x': True}"]  # as text: 1 == 1.0 == True
    assert [set(of_class["data"]) for of_class in content["classes"]] == [{"positives", "counts"}] * 3
    assert {name for of_class in content["classes"] for name in of_class} == {"labels", "data", "settings", "intercept"}


def content_of(model) -> dict:
    with np.load(io.BytesIO(model.to_bytes()), allow_pickle=False) as archive:
        return json.loads(archive["header"].tobytes())
