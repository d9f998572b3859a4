"""Which rows of a data set are positive."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from over import over

from apsvm.data import DataError, Dataset
from apsvm.data import dataset as module


def dataset(labels: list[float]) -> Dataset:
    n = len(labels)
    return Dataset(sp.csr_array((n, 1)), np.array(labels, dtype=np.float64), source="some.svm")


@over(
    ("labels", "positive_label", "expected"),
    [
        ([1, -1, -1, 1], None, [True, False, False, True]),
        ([0, 1, 0], None, [False, True, False]),
        ([-0.0, 1], None, [False, True]),
        ([1, -1], 1, [True, False]),
        ([1, -1], -1, [False, True]),
        ([0, 1, 2, 2], 2, [False, False, True, True]),
        ([0, 1, 2, -1], 0, [True, False, False, False]),
        ([-0.0, 1], 0.0, [True, False]),
        ([0.1, 0.3, 0.25], 0.1, [True, False, False]),
        (list(range(20)), 19, [False] * 19 + [True]),
    ],
)
def test_positives(labels: list[float], positive_label: float | None, expected: list[bool]) -> None:
    positive = dataset(labels).positives(positive_label)
    assert positive.dtype == np.bool_
    assert positive.tolist() == expected


@over(
    ("labels", "positive_label", "fragments"),
    [
        ([1, -1, 0], None, ["found -1, 0, 1: --positive-label 1"]),
        ([0, -1], None, ["found -1, 0:", "--positive-label"]),
        ([1, 2], None, ["found 1, 2: --positive-label 2"]),
        ([2, 2], None, ["found 2:", "--positive-label"]),
        ([0.1, 1e300, 1], None, ["found 0.1, 1, 1e+300:"]),
        (list(range(8)), None, ["found 0, 1, 2, 3, 4, 5, 6, 7:"]),
        (list(range(9)), None, ["found 0, 1, 2, 3, 4, 5, 6, 7, ... (9 in all):"]),
        ([1, 1], None, ["no negative rows", "2 positive, 0 negative"]),
        ([-1], None, ["no positive rows", "0 positive, 1 negative"]),
        ([0, 0], None, ["no positive rows", "0 positive, 2 negative"]),
        ([3, 3], 3, ["no negative rows", "2 positive, 0 negative"]),
        ([1, -1], 2, ["no row has the positive label 2", "found -1, 1"]),
        ([1, -1], float("nan"), ["no row has the positive label nan", "found -1, 1"]),
        ([1, 2], 1.5, ["no row has the positive label 1.5", "found 1, 2"]),
        ([], None, ["no positive rows"]),
    ],
)
def test_positives_refused(labels: list[float], positive_label: float | None, fragments: list[str]) -> None:
    with pytest.raises(DataError) as caught:
        dataset(labels).positives(positive_label)
    message = str(caught.value)
    assert message.startswith("some.svm: ")
    for fragment in fragments:
        assert fragment in message


@pytest.mark.parametrize(
    ("labels", "grade", "message"),
    [([0, 1, 2], 2.5, "no positive rows"), ([2, 3], 2, "no negative rows"), ([0, 1], float("nan"), "no positive rows")],
)
def test_relevant_from_where_all_are_alike(labels: list[float], grade: float, message: str) -> None:
    with pytest.raises(DataError, match=message):
        dataset(labels).positives(None, grade)


@pytest.mark.parametrize(
    "values", [[], [1.0], [1.0, -1.0] * 3, [0.5, -2.0, 0.5], list(range(40)), [np.nan, 1.0, np.nan]]
)
def test_distinct_values(values, monkeypatch):
    monkeypatch.setattr(module, "_BLOCK", 4)
    array = np.array(values, dtype=np.float64)
    np.testing.assert_array_equal(module.distinct(array), np.unique(array))
    of = np.arange(array.size) % 3 > 0
    np.testing.assert_array_equal(module.distinct(array, of), np.unique(array[of]))


@pytest.mark.parametrize(
    ("labels", "hint"), [([0, 1, 2], True), ([0.0, 1, 4], True), ([-1, 0, 1], False), ([1, 2], False)]
)
def test_what_may_be_grades_is_met_with_the_loss_that_takes_them(labels, hint):
    with pytest.raises(DataError, match="expected two labels") as error:
        dataset(labels).positives()
    assert ("--loss ndcg (grades)" in str(error.value)) == hint
    assert len(str(error.value)) <= 150


@pytest.mark.parametrize("labels", [np.arange(30), np.arange(90) // 2 + 0.25])
def test_values_of_another_column_are_asked_about(labels):
    with pytest.raises(DataError, match=r"different labels, 0.*: are these the labels"):
        dataset(labels).positives()


def test_selected_rows_keep_what_is_theirs() -> None:
    costs, groups, bags = np.array([1.0, 2.0, 3.0]), np.array([7, 8, 9]), np.array([0, 0, 1])
    whole = replace(dataset([1, -1, 1]), costs=costs, groups=groups, bags=bags)
    selected = whole.select(np.array([2, 0]))
    for name, expected in (("relevance", [1, 1]), ("costs", [3, 1]), ("groups", [9, 7]), ("bags", [1, 0])):
        assert getattr(selected, name).tolist() == expected
        assert getattr(dataset([1, -1]).select(np.array([1])), name) is None or name == "relevance"
