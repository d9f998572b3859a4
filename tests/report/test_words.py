"""A model in words: labels, end, evidence and settings, by any trainer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from apsvm import LinearRanker
from apsvm.data.dataset import Dataset
from apsvm.models.averages import average_of
from apsvm.models.header import (
    Bounds,
    Epochs,
    Features,
    Gradient,
    Header,
    LabelKind,
    Labels,
    Threshold,
    Validation,
)
from apsvm.report.build import report
from apsvm.report.run import Run
from apsvm.report.words import RULES, as_text, certificate, meaning, members, settings_of, threshold_in_words

BOUNDS = Bounds(primal=2.0, dual=1.0, gap=1.0, tolerance=0.5)
GRADIENT = Gradient(value=3.0, gradient_norm=0.25, target=0.125, evaluations=7)
EPOCHS = Epochs(count=4, best=2, estimated_loss=0.5)
VALIDATION = Validation(file="held.svm", sha256="", metric="AP", value=0.5)


@pytest.mark.parametrize(
    ("evidence", "figures"),
    [
        ({"certificate": BOUNDS, "C": 2.0, "iterations": 3}, ["3 iterations", "0.5 of the loss", "0.25 requested"]),
        (
            {"certificate": replace(BOUNDS, bound="tight", stationary=True)},
            ["stationary", "lower bound 1"],
        ),
        ({"certificate": replace(BOUNDS, exact=False)}, ["approximate"]),
        ({"certificate": replace(BOUNDS, layer=2)}, ["layer 2"]),
        ({"gradient": GRADIENT, "iterations": 3}, ["3 iterations", "7 evaluations", "0.25 > 0.125"]),
        ({"epochs": EPOCHS}, ["4 epochs", "no certificate"]),
        ({"epochs": replace(EPOCHS, validation=VALIDATION)}, ["epoch 2", "AP 0.500000 on held.svm"]),
        ({}, ["no certificate"]),
    ],
)
def test_the_end_and_the_evidence(evidence, figures):
    text = " ".join(certificate(Header(loss="mine", state="time limit", as_asked=False, **evidence)))
    assert text.startswith("time limit")
    assert all(figure in text for figure in figures), text


def test_members_of_an_average():
    headers = [Header(loss="ap", C=2.0, certificate=BOUNDS), Header(loss="auc", features=Features(map="piecewise:4"))]
    average = average_of([LinearRanker(np.ones(1), 0.0, one) for one in headers], [1.5, 2.0]).header
    assert [line.split(":")[0] for line in members(average)] == ["linear", "piecewise"]


def test_every_kind_of_labels_has_a_meaning():
    many, one = tuple(map(float, range(12))), LabelKind.ONE_LABEL
    texts = [meaning(Labels(kind=kind)) for kind in LabelKind]
    assert len({*texts}) == len(LabelKind)
    for labels, words in (
        (Labels(positive=2.0, negative=(-1.0,)), ["2 is positive", "-1 negative"]),
        (Labels(names=("ham", "spam")), ["spam against ham"]),
        (Labels(kind=one, positive=8.0, negative=many), ["8 is positive", "(0, 1, 2, 3, 4, 5, 6, 7, …)"]),
        (Labels(kind=LabelKind.THRESHOLD, relevant_from=2.5), ["2.5 and above"]),
        (Labels(kind=LabelKind.ORDER, relevant_above=1.0, cuts=(0.5, 1.5)), ["3 classes", "above 1 "]),
    ):
        assert all(part in meaning(labels) for part in words), meaning(labels)


def test_settings_by_the_names_that_their_trainer_declares():
    header = Header(
        family="structured-svm",
        loss="ap",
        C=3.0,
        settings={"C": "10x", "epsilon": 0.5, "oracle": "auto", "qp": "auto", "max_iterations": 7, "of_tomorrow": 1},
        details={"oracle": "bucket", "nested": {"a": 1}},
    )
    assert {name: as_text(value) for name, value in settings_of(header)} == {
        "C": "3",
        "C, times the default": "10",
        "ε, the requested gap / C": "0.5",
        "oracle": "bucket",
        "max iterations": "7",
        "of tomorrow": "1",
    }
    unknown = Header(family="perceptron", loss="mine", settings={"margin": 0.5, "step_size": None})
    assert list(settings_of(unknown)) == [("margin", 0.5)]


def run_of(header, dataset):
    ranker = LinearRanker(np.array([1.0, -1.0]), 0.0, header)
    return Run("folder", [{"event": "start", "loss": "mine"}], ranker, {}, dataset, None, [])


def test_a_threshold():
    chosen = Threshold(
        value=0.5, rule="f1", held_out="5 folds", precision=0.5, recall=0.9375, false_positive_rate=0.0625, called=1 / 3
    )
    assert threshold_in_words(chosen) == (
        "a score above 0.5 (f1 on rows held out, 5 folds): precision 50 %, recall 93.8 %, false positives 6.25 %, "
        "called positive 33.3 %"
    )
    on_training = threshold_in_words(replace(chosen, held_out=None, precision=None))
    assert on_training.startswith("a score above 0.5 (f1 on the training rows, which flatters): recall 93.8 %")
    texts = {threshold_in_words(Threshold(value=2.0, rule=rule)) for rule in RULES}
    assert len(texts) == len(RULES)
    assert all(text.startswith("a score above 2, ") for text in texts)


@pytest.fixture
def rows(rng):
    def make(labels, groups=None):
        labels = np.asarray(labels, dtype=np.float64)
        X = rng.normal(size=(labels.size, 2))
        return Dataset(X, labels, groups, None, False, "rows", "0" * 64, 0)

    return make


@pytest.mark.slow
def test_the_page_of_a_trainer_that_nobody_knows(rows):
    header = Header(family="perceptron", loss="mine", metric="of mine", settings={"margin": 0.5}, state="stopped")
    page = report(run_of(header, rows([1, -1, 1, -1, -1])))
    for words in ("no certificate", "<dt>margin</dt><dd>0.5</dd>", '<td class="left">AP</td>'):
        assert words in page


@pytest.mark.parametrize("groups", [None, np.array([0, 0, 0, 1, 1])])
def test_grades_without_a_row_of_none_have_metrics(groups, rows):
    """All rows are relevant: what there is of metrics is shown, and what there is not is no reason to refuse."""
    header = Header(loss="ndcg", metric="nDCG(exp)", labels=Labels(kind=LabelKind.GRADES), state="converged")
    page = report(run_of(header, rows([1, 2, 3, 1, 2], groups)))
    assert '<td class="left">nDCG(exp)</td>' in page
    assert '<td class="left">AUC</td>' not in page
    assert ("Those of the first queries in the file." in page) == (groups is not None)
    assert "cannot be judged" not in page
