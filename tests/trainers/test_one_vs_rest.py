"""One against the rest: the rankers that each training alone would give, however they end."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import scipy.sparse as sp
from over import over

from apsvm.data.dataset import Dataset
from apsvm.data.labels import LabelOptions
from apsvm.models.header import SkippedClass
from apsvm.selection.completion import Completion, train_fit
from apsvm.trainers.base import Watch
from apsvm.trainers.fitting import FeatureOptions, Fit
from apsvm.trainers.one_vs_rest import ClassTraining, OneVsRestTrainer, of_class
from apsvm.trainers.one_vs_rest import outcome_of as combined
from apsvm.trainers.structured_svm.settings import StructuredSettings
from apsvm.trainers.structured_svm.trainer import StructuredSVMTrainer

CLASSES = 5


def classes(kind="dense", dtype=np.float64, n=160, d=5):
    """Classes of uneven size, those of the last hard to tell from others."""
    rng = np.random.default_rng(5)
    labels = rng.choice(CLASSES, n, p=(0.4, 0.25, 0.15, 0.1, 0.1)).astype(np.float64)
    X = rng.normal(size=(n, d)) + rng.normal(size=(CLASSES, d))[labels.astype(int)]
    X = X.astype(dtype)
    if kind == "csr":
        X[rng.random(X.shape) < 0.6] = 0.0
        X = sp.csr_array(X)
    return Dataset(X, labels, None, None, False, "made", "", 0)


def fit_of(data, trainer, labels=LabelOptions(), features=FeatureOptions()):  # noqa: B008
    return Fit.of(data, trainer, labels, features).prepared()


def outcome_of(trainer, data, features=FeatureOptions(), watch=Watch()):  # noqa: B008
    (outcome,) = train_fit(fit_of(data, OneVsRestTrainer(trainer), features=features), watch)
    return outcome


def alone(trainer, data, label, features):
    fit = fit_of(data, trainer, LabelOptions(positive_label=label), features)
    (outcome,) = train_fit(fit, Watch())
    return outcome


def alone_as_chosen(trainer, data, label, features):
    """A class by itself, by what is chosen for all."""
    rows = fit_of(data, OneVsRestTrainer(trainer), features=features).training_set()
    completion = Completion.of_classes(OneVsRestTrainer(trainer), rows, Watch())
    (outcome,) = completion.train_class(trainer, label, of_class(rows, label), Watch())
    return outcome


CASES = [
    ("ap", {"bound": "hinge"}, "dense", FeatureOptions()),
    ("ap", {"bound": "auto", "C": (1.0,), "epsilon": 0.05}, "dense", FeatureOptions(scale="standard")),
    ("ndcg", {"bound": "tight", "C": (1.0,)}, "dense", FeatureOptions(scale="maxabs", bias=2.0)),
    ("auc", {"bound": "hinge"}, "csr", FeatureOptions()),
    ("f1", {"C": (1.0,)}, "dense", FeatureOptions()),
    ("ap", {"bound": "hinge", "C": (1.0,), "components": 2}, "dense", FeatureOptions()),
]


@pytest.mark.slow
@over("threads", [1, 2])
@over("case", CASES, ids=lambda case: f"{case[0]} {case[1]} {case[2]} {case[3].scale}")
def test_each_class_is_the_one_trained_alone(case, threads):
    loss, settings, kind, features = case
    data = classes(kind, np.float32 if threads == 2 else np.float64)
    trainer = StructuredSVMTrainer(loss, StructuredSettings(threads=threads, **settings))
    outcome = outcome_of(trainer, data, features)
    assert len(outcome.classes) == CLASSES
    one = trainer.with_settings(threads=1)
    for label, part in outcome.classes[:: 3 if threads == 1 else 2]:
        reference = (alone_as_chosen if one.bound is None else alone)(one, data, label, features)
        assert part.w.tobytes() == reference.w.tobytes()
        assert (part.C, part.certificate, part.state) == (reference.C, reference.certificate, reference.state)


@pytest.mark.parametrize("questions", [1, 12, 30])
def test_interrupted(questions):
    """Each class ends, with what it has, and says so."""
    lock, count = threading.Lock(), 0

    def should_stop():
        nonlocal count
        with lock:
            count += 1
            return count > questions

    trainer = StructuredSVMTrainer("ap", StructuredSettings(threads=2, bound="hinge", C=(1e6,), epsilon=1e-9))
    outcome = outcome_of(trainer, classes(), watch=Watch(should_stop=should_stop))
    assert outcome.interrupted
    assert len(outcome.classes) + len(outcome.skipped) == CLASSES
    assert all(part.interrupted for _, part in outcome.classes)


def test_a_stop_between_two_classes():
    """The classes that were trained ended as asked, and yet the set did not."""
    trained = outcome_of(StructuredSVMTrainer("ap", StructuredSettings(bound="hinge", threads=1)), classes())
    (label, one), *_ = trained.classes
    parts = [ClassTraining(label, one), ClassTraining(9.0, reason="stopped before its turn", stopped=True)]
    outcome = combined(parts, 0.0)
    assert (one.state, outcome.state) == ("converged", "interrupted")
    assert (outcome.as_asked, outcome.interrupted) == (False, True)


def test_a_class_that_fails():
    """It is left out; the others are as without it."""

    class Fails(StructuredSVMTrainer):
        def train(self, data, watch, **more):
            if data.target.relevant.sum() == positives:
                raise ValueError("it cannot be trained")
            yield from super().train(data, watch, **more)

    data = classes()
    positives = int((data.relevance == 1.0).sum())
    settings = StructuredSettings(threads=2, bound="hinge")
    outcome = outcome_of(Fails("ap", settings), data)
    assert outcome.skipped == [SkippedClass(label=1.0, reason="it cannot be trained")]
    without = dict(outcome_of(StructuredSVMTrainer("ap", settings), data).classes)
    assert [label for label, _ in outcome.classes] == [0.0, 2.0, 3.0, 4.0]
    assert all(part.w.tobytes() == without[label].w.tobytes() for label, part in outcome.classes)


def test_what_ends_a_training_ends_all():
    class Fails(StructuredSVMTrainer):
        def train(self, data, watch, **more):
            if data.target.relevant.sum() == positives:
                raise FloatingPointError("beyond float64")
            yield from super().train(data, watch, **more)

    data = classes()
    positives = int((data.relevance == 1.0).sum())
    with pytest.raises(FloatingPointError, match="beyond float64"):
        outcome_of(Fails("ap", StructuredSettings(threads=2, bound="hinge")), data)
