"""Columns of words: what is a category, and what is too many."""

import pytest
from tables import SIMPLE, columns_of, read, remarks, rows

from apsvm.data import DataError


def test_codes_are_categories_where_that_is_said(tmp_path):
    text = "code,amount,y\n3,1.5,1\n10,2,0\n3,0,0\n,1,1\n2.50,1,0\nnone of these,1,1\n"
    data = read(tmp_path, text, categorical=("code",))
    assert columns_of(data).feature_names() == (
        "code=10", "code=2.5", "code=3", "code=none of these", "code is missing", "amount"
    )  # fmt: skip
    assert [row[:5] for row in rows(data)] == [
        [0, 0, 1, 0, 0], [1, 0, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 0, 1], [0, 1, 0, 0, 0], [0, 0, 0, 1, 0]
    ]  # fmt: skip
    assert "words, each a feature: code (4)" in remarks(data)
    again = read(tmp_path, "amount,code,y\n1,3.0,1\n1,7,0\n", columns_of(data))
    assert rows(again) == [[0, 0, 1, 0, 0, 1], [0, 0, 0, 0, 0, 1]]
    assert "1 word has no feature in the model ('7')" in remarks(again)


def test_numbers_of_any_kind_may_be_said_to_be_categories(tmp_path):
    """As many as there are rows, which words may not be unless somebody says so."""
    text = "code,y\n" + "".join(f"{number / 8!r},{number % 2}\n" for number in range(40))
    data = read(tmp_path, text, categorical=("code",), max_categories=4)
    assert columns_of(data).feature_names() == ("code=0", "code=0.125", "code=0.25", "code=0.375", "code is other")
    dates = "day,y\n" + "".join(f"2026-11-{day},{day % 2}\n" for day in range(10, 30))
    assert columns_of(read(tmp_path, dates)).feature_names()[0] == "day: days before the newest"
    assert len(columns_of(read(tmp_path, dates, categorical=("day",))).feature_names()) == 20


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"categorical": ("colour",)}, "--categorical"),
        ({"categorical": ("y",)}, "--categorical: column 'y' is none of the features"),
        ({"categorical": ("city",), "drop": ("city",)}, "--categorical: column 'city' is none of the features"),
    ],
)
def test_categories_that_are_no_features(options, message, tmp_path):
    with pytest.raises(DataError, match=message):
        read(tmp_path, SIMPLE, **options)


def test_none_is_a_label_and_else_a_missing_cell(tmp_path):
    text = "object,y\nNone,none\ncar,ship\nnone,none\n" + "".join("car,ship\n" for _ in range(4))
    data = read(tmp_path, text)
    assert data.relevance.tolist() == [0, 1, 0, 1, 1, 1, 1]
    assert columns_of(data).label_words == ("none", "ship")
    assert "2 cells are missing (object 2)" in remarks(data)
    for label in ("NA", ""):
        with pytest.raises(DataError, match=r":2: .*this row has no label"):
            read(tmp_path, f"object,y\ncar,{label}\ncar,ship\n")
