"""Numbers with separators of thousands, decimal commas, signs of money and per cent: what is read, said and refused."""

from __future__ import annotations

import pytest
from over import over
from tables import columns_of, read, remarks, rows

from apsvm.data import DataError


@over(
    ("cells", "values", "style"),
    [
        (['"14,424.00"', '"3.50"', '"-1,000,000"'], [14424.0, 3.5, -1e6], "point"),
        (['"1,234,567"', "3.50", "12"], [1234567.0, 3.5, 12.0], "point"),
        (["$12", "$1.5", "$ 0.25"], [12.0, 1.5, 0.25], "point"),
        (['"$1,234"', "$1.50", "7"], [1234.0, 1.5, 7.0], "point"),
        (['"1.234,50 €"', '"999,00 €"', "5 €"], [1234.5, 999.0, 5.0], "comma"),
        (['"1,5"', '"2,25"', '"-3,0"'], [1.5, 2.25, -3.0], "comma"),
        (["1'234.5", "1 000.5", "2.5"], [1234.5, 1000.5, 2.5], "point"),
        (["12 %", "3.5%", "-1 %"], [12.0, 3.5, -1.0], "point"),
        (["-$5", "+$6", "$7"], [-5.0, 6.0, 7.0], "point"),
        (["\u22121.5", "2", "0.5"], [-1.5, 2.0, 0.5], "point"),
        (['"1\u00a0234,5"', '"2\u202f000,25"', '"-7,0"'], [1234.5, 2000.25, -7.0], "comma"),
    ],
)
def test_numbers_as_people_write_them(cells, values, style, tmp_path):
    data = read(tmp_path, "a,y\n" + "".join(f"{cell},{at % 2}\n" for at, cell in enumerate(cells)))
    assert [row[0] for row in rows(data)] == values
    (column,) = columns_of(data).features
    assert (column.style, column.fill) == (style, sorted(values)[1])
    assert "numbers: a (" in remarks(data)
    eight = '"8,0"' if style == "comma" else "8"
    again = read(tmp_path, f"y,a\n1,{cells[0]}\n0,\n1,{eight}\n", columns_of(data))
    assert [row[0] for row in rows(again)] == [values[0], sorted(values)[1], 8.0]
    with pytest.raises(DataError, match=r":2: column 'a': expected a number, found 'many'"):
        read(tmp_path, "y,a\n1,many\n", columns_of(data))


@over(
    ("cells", "message"),
    [
        (['"14,424"', '"1,000"'], "'14,424' may be 14424 or 14.424: write it without a separator of thousands"),
        (["$5", "€6"], "signs of money"),
        (["12 %", "0.12"], "found '12 %'"),
        (['"500,25"', '"14,424.125"'], "separators of thousands"),
        (["$1.5$", "$2"], "signs of money"),
        (["9" * 400, "1", "2"], "expected a finite number"),
        (["$" + "9" * 400, "$1"], "signs of money"),
    ],
)
def test_what_may_be_two_numbers_is_refused(cells, message, tmp_path):
    with pytest.raises(DataError, match=message):
        read(tmp_path, "a,y\n" + "".join(f"{cell},{at % 2}\n" for at, cell in enumerate(cells)))


def test_commas_that_are_decimal_in_the_file(tmp_path):
    """Then points stand between thousands, in other columns and in other files too."""
    data = read(tmp_path, "a;b;y\n1.234,50;2,5;1\n999,25;3,5;0\n5;1.000;0\n")
    assert rows(data) == [[1234.5, 2.5], [999.25, 3.5], [5.0, 1000.0]]
    again = read(tmp_path, "a;b;y\n2.000;3;1\n1.000.000,5;4;0\n7,5;1;0\n", columns_of(data))
    assert rows(again) == [[2000.0, 3.0], [1000000.5, 4.0], [7.5, 1.0]]


def test_numbers_of_another_style_than_in_training(tmp_path):
    """1.000 would be read as 1."""
    commas = columns_of(read(tmp_path, "a;y\n1.234,50;1\n999,25;0\n"))
    message = r":2: column 'a': its numbers had a decimal comma in training, .* \(--decimal ,\)"
    with pytest.raises(DataError, match=message):
        read(tmp_path, "a;y\n1.000;1\n", commas)
    assert rows(read(tmp_path, "a;y\n1.000;1\n", commas, decimal=",")) == [[1000.0]]
    points = columns_of(read(tmp_path, 'a,y\n"1,234.50",1\n999.25,0\n'))
    with pytest.raises(DataError, match=r"a decimal point in training"):
        read(tmp_path, "a;y\n1,500;1\n", points)
    with pytest.raises(DataError, match=r"found '1,5'.*--decimal ,"):
        read(tmp_path, 'a,y\n"1,5",1\n3,0\n')


def test_signs_and_grades_are_words(tmp_path):
    """Without a digit, or with a letter behind it, they are no numbers of money; - beside words is no missing cell."""
    for words in ("+ +- + ++ ++", "2X 1X 2X 2X 1X", "- x x - y", "- 1 A 2"):
        data = read(tmp_path, "a,y\n" + "".join(f"{word},{at % 2}\n" for at, word in enumerate(words.split())))
        assert columns_of(data).feature_names() == tuple(f"a={word}" for word in sorted(set(words.split())))


def test_numbers_that_are_words_where_that_is_said(tmp_path):
    data = read(tmp_path, "a,y\n$5,1\n$6,0\n$5,0\n", categorical=("a",))
    assert columns_of(data).feature_names() == ("a=$5", "a=$6")


def test_the_few_cells_unlike_amounts_are_the_ones_named(tmp_path):
    cells = [f'"$1,{number:03}.50"' for number in range(30)]
    cells[7] = "-"
    with pytest.raises(
        DataError, match=r":9: column 'a': expected a number like '\$1,000.50', found '-'; a missing cell"
    ):
        read(tmp_path, "a,y\n" + "".join(f"{cell},{at % 2}\n" for at, cell in enumerate(cells)))
