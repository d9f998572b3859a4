"""Columns of dates: how they are recognised, what they become, and what is said of those that are not clear."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import pytest
from over import over
from tables import columns_of, read, remarks, rows

from apsvm.data import DataError

DAYS = [
    datetime(2022, 12, 31, 23, 30),
    datetime(2024, 2, 29, 6),
    datetime(2023, 7, 1),
    datetime(2024, 3, 3, 12, 45, 30),
]
WRITTEN = ["%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%SZ", "%Y/%m/%d %H:%M:%S", "%d.%m.%Y %H:%M:%S", "%d/%m/%Y %H:%M:%S",
           "%m/%d/%Y %I:%M:%S %p", "%m-%d-%Y %H:%M:%S+00:00", "%d-%b-%Y %H:%M:%S", "%d %b %Y %H:%M:%S"]  # fmt: skip


def text_of(days, form):
    return "when,y\n" + "".join(f"{day.strftime(form)},{at % 2}\n" for at, day in enumerate(days))


@over("form", WRITTEN)
def test_what_dates_become(form, tmp_path):
    """By the datetime of Python, however they are written."""
    data = read(tmp_path, text_of(DAYS, form))
    newest = max(DAYS)
    expected = []
    for day in DAYS:
        start = datetime(1970, 1, 1)
        year = 2 * np.pi * ((day - start) / timedelta(days=365.2425))
        hour = 2 * np.pi * (day - day.replace(hour=0, minute=0, second=0)) / timedelta(days=1)
        week = [float(day.weekday() == number) for number in range(7)]
        age = (newest - day) / timedelta(days=1)
        expected.append([age, np.sin(year), np.cos(year), *week, np.sin(hour), np.cos(hour)])
    assert np.array(rows(data)) == pytest.approx(np.array(expected), abs=1e-9)
    names = columns_of(data).feature_names()
    assert names[0] == "when: days before the newest"
    assert names[3:5] == ("when: weekday=Monday", "when: weekday=Tuesday")
    assert "dates: when (age, year, weekday, hour)" in remarks(data).splitlines()


@over("form", ["%H:%M:%S", "%I:%M:%S %p", "%I:%M:%Sa.m."])
def test_times_alone_are_hours(form, tmp_path):
    days = [datetime(2024, 1, 1, hour, 15, 30) for hour in (0, 5, 11)]
    data = read(tmp_path, text_of(days, form) + ",0\n")
    hours = 2 * np.pi * np.array([(at - datetime(2024, 1, 1)) / timedelta(days=1) for at in days])
    expected = [*zip(np.sin(hours), np.cos(hours), strict=True), (0.0, 0.0)]
    assert np.array(rows(data)) == pytest.approx(np.array(expected), abs=1e-9)
    assert columns_of(data).feature_names() == ("when: sine of the day", "when: cosine of the day")
    again = read(tmp_path, "when,y\n12:00 PM,1\n", columns_of(data))
    assert rows(again) == [[0.0, -1.0]]
    for none in ("13:00 PM", "24:00", "23:60"):
        with pytest.raises(DataError, match=f"expected a date such as 17:05, found '{none}'"):
            read(tmp_path, f"when,y\n{none},1\n", columns_of(data))


def test_other_rows_have_the_age_of_training(tmp_path):
    """Newer ones that of the newest; zones count; missing ones the median age, or what the rule says."""
    data = read(tmp_path, "when,y\n2024-01-01,1\n2024-01-05,0\n2024-01-03,0\n,1\n")
    assert [row[0] for row in rows(data)] == [4.0, 0.0, 2.0, 2.0]
    assert rows(data)[3][1:] == [0.0] * 7
    again = read(
        tmp_path,
        "y,when\n1,2024-01-07\n0,2024-01-05T01:00:00+01:00\n0,2024-01-03T20:00:00-04:00\n0,\n",
        columns_of(data),
    )
    assert [row[0] for row in rows(again)] == [0.0, 0.0, 1.0, 2.0]
    assert "1 cell is missing (when 1): filled as in training" in remarks(again)
    assert "the newest of training, and count as it ('2024-01-07')" in remarks(again)
    with pytest.raises(DataError, match=r":3: column 'when': expected a date such as 2024-03-31, found '03.01.2024'"):
        read(tmp_path, "y,when\n0,\n1,03.01.2024\n0,\n", columns_of(data))
    with pytest.raises(DataError, match="expected a date such as 2024-03-31, found '20240103'"):
        read(tmp_path, "y,when\n1,20240103\n", columns_of(data))
    said = read(tmp_path, "when,y\n2024-01-01,1\n2024-01-05,0\n,1\n", missing="indicator")
    assert columns_of(said).feature_names()[-1] == "when is missing"
    assert [row[-1] for row in rows(said)] == [0.0, 0.0, 1.0]
    strict = read(tmp_path, "when,y\n2024-01-01,1\n2024-01-05,0\n", missing="refuse")
    with pytest.raises(DataError, match=r":2: column 'when': the cell is missing"):
        read(tmp_path, "when,y\n,1\n", columns_of(strict))


def test_sparse_rows_have_the_same(tmp_path):
    words = "".join(f",w{number}" for number in range(40))
    head = f"when{words},y\n"
    cells = [
        f"2024-01-{day:02d},{','.join('ab'[(day * k) % 2] + str(day % 5) for k in range(40))},{day % 2}\n"
        for day in range(1, 31)
    ]
    data = read(tmp_path, head + "".join(cells))
    alone = read(tmp_path, "when,y\n" + "".join(f"2024-01-{day:02d},{day % 2}\n" for day in range(1, 31)))
    assert not isinstance(data.X, np.ndarray)
    assert np.array_equal(data.X.toarray()[:, :8], np.array(rows(alone)))


@over(
    ("text", "message"),
    [
        (
            "03/04/2024,1\n05/06/2024,0\n",
            r"'03/04/2024' may be 2024-04-03 or 2024-03-04: write them year first, or say --date-order",
        ),
        ("03/04/2024,1\n2024-05-03,0\n", r"\('03/04/2024'\) that are not all of one form \('2024-05-03'\)"),
        ("2024-01-05,1\n2024-02-30,0\n", r"\('2024-01-05'\) that are not all of one form \('2024-02-30'\)"),
        ("13/04/2024,1\n04/13/2024,0\n", "are not all of one form"),
        ("03/04/2024,1\n13/04/2024,0\n04/13/2024,0\n", r"are not all of one form \('04/13/2024'\)"),
        ("2024-01-05,1\n2024-01-06,0\n20240107,0\n", r"are not all of one form \('20240107'\)"),
        ("10:30,1\n25:45,0\n", "has dates"),
        (
            "03/04/24,1\n,0\n",
            r"has dates \('03/04/24'\) of a form that is not read here, such as years of two digits: write",
        ),
        ("3-Apr-24,1\n5-May-24,0\n", r"has dates \('3-Apr-24'\) of a form that is not read"),
    ],
)
def test_what_is_not_clear_is_refused(text, message, tmp_path):
    with pytest.raises(DataError, match=message):
        read(tmp_path, f"d,y\n{text}")
