"""Capabilities of all families, and checks of settings."""

from __future__ import annotations

from dataclasses import replace

import pytest

from apsvm.data.takes import Takes
from apsvm.trainers import TRAINERS
from apsvm.trainers.capabilities import Capabilities
from apsvm.trainers.one_vs_rest import OneVsRestTrainer
from apsvm.trainers.settings import SettingsError, _check, declared
from apsvm.trainers.structured_svm.settings import StructuredSettings
from apsvm.trainers.structured_svm.trainer import StructuredSVMTrainer
from apsvm.trainers.warp.settings import WarpSettings
from apsvm.trainers.warp.trainer import WarpTrainer

OPTIONS = ("scale", "features", "query_weights", "one_vs_rest", "positive_label")


def plans():
    return [trainer(trainer.losses[0]) for trainer in TRAINERS.values()]


def test_each_class_of_each_rest_as_alone():
    refusing = []
    for plan in plans():
        own = plan.capabilities
        if own.refusal("one_vs_rest") is not None:
            refusing.append(plan.family)
            with pytest.raises(SettingsError, match="--one-vs-rest does not apply: "):
                OneVsRestTrainer(plan)
            continue
        of_classes = OneVsRestTrainer(plan).capabilities
        assert of_classes == replace(own, labels=Takes.CLASSES)
        assert "each label is taken as positive" in (of_classes.refusal("relevant_from") or "")
    assert refusing == ["rank-ncg"]


def test_a_refusal_is_one_sentence():
    sentences = [refusal for plan in plans() for option in OPTIONS
                 if (refusal := plan.capabilities.refusal(option)) is not None]  # fmt: skip
    assert len(sentences) >= 3
    for sentence in sentences:
        option, _, reason = sentence.partition(" does not apply: ")
        assert option.removeprefix("--").replace("-", "_") in OPTIONS
        assert reason
        assert not reason.endswith(".")


def test_a_plan_narrows_what_its_family_takes():
    """And leaves the family's own as it is."""
    family = StructuredSVMTrainer.capabilities
    assert family == Capabilities(query_weights=True)
    rows = StructuredSVMTrainer("zero-one").capabilities
    assert (rows.queries, rows.costs, rows.constant) == (False, True, True)
    assert rows.refusal("query_weights") == "--query-weights does not apply: zero-one takes all rows as one query"
    appx = StructuredSVMTrainer("ndcg", StructuredSettings(oracle="appx")).capabilities
    assert (appx.labels, StructuredSVMTrainer("ndcg").capabilities.labels) == (Takes.TWO_CLASSES, Takes.GRADES)
    users = WarpTrainer("warp", WarpSettings(rows_as_users=True)).capabilities
    assert (users.labels, users.queries) == (Takes.NOTHING, False)
    assert users.refusal("positive_label") == "--positive-label does not apply: this training does not look at labels"
    assert {"scale", "features"} == set(users.refused)
    assert StructuredSVMTrainer.capabilities is family
    assert set(WarpTrainer.capabilities.refused) == {"scale"}


def test_defaults_need_no_check():
    for trainer in TRAINERS.values():
        for name, (field, about) in declared(trainer.Settings).items():
            for value in field.default if about.path else [field.default]:
                _check(name, value, about)


def test_settings_are_checked_where_they_are_made_and_changed():
    for changes in ({"epsilon": 0.0}, {"epsilon": float("nan")}, {"bound": "loose"}, {"C": (1.0, -1.0)}):
        with pytest.raises(SettingsError):
            StructuredSettings(**changes)
        with pytest.raises(SettingsError):
            replace(StructuredSettings(), **changes)
        with pytest.raises(SettingsError):
            StructuredSVMTrainer("ap").with_settings(**changes)
    with pytest.raises(SettingsError):
        StructuredSettings.from_json({"epsilon": -1.0})
