"""The parser of CSV text: it reads what the standard library reads, wherever the blocks are cut."""

import io
import itertools
import random
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apsvm._native import _kernels
from apsvm.data.tables.cells import MISSING, MISSING_WORDS


def parsed(text: bytes, sizes: list[int], columns: str) -> tuple[np.ndarray, list[list[bytes]], list[list[int]]]:
    parser = _kernels.CsvParser(columns=columns)
    at = 0
    for size in sizes:
        parser.feed(text[at : at + size])
        at += size
    parser.feed(text[at:])
    parser.finish()
    words = [parser.words(column) for column in range(sum(letter != "s" for letter in columns))]
    return parser.take(), words, [part.tolist() for part in parser.apart()]


FIELDS = st.one_of(
    st.sampled_from(["", "1", "-2.5", "1e3", "NA", "x", "true", "a b", '"q"', "1_0", ".5", "5.", "-", "+7", "0x1"]),
    st.text(alphabet='a",\n\r 1.', max_size=5),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
)


@pytest.mark.slow
@given(
    table=st.lists(st.lists(FIELDS, min_size=3, max_size=3), min_size=1, max_size=6),
    sizes=st.lists(st.integers(0, 9), max_size=8),
)
def test_the_parser_agrees_with_the_standard_library(table: list[list[str]], sizes: list[int]) -> None:
    """Whatever the fields hold, and wherever the blocks are cut."""
    import csv

    stream = io.StringIO()
    csv.writer(stream, quoting=csv.QUOTE_ALL).writerows(table)
    text = stream.getvalue().encode()
    values, words, apart = parsed(text, sizes, "cst")
    whole = parsed(text, [], "cst")
    assert values.tobytes() == whole[0].tobytes()
    assert (words, apart) == whole[1:]
    assert values.shape == (len(table), 2)
    for row, cells in zip(table, values.view(np.int64).tolist(), strict=True):
        for field, cell, of_column, column in zip((row[0], row[2]), cells, words, "ct", strict=True):
            content = field.strip(" ")
            if cell > MISSING:
                assert of_column[cell - MISSING - 1].decode() == content
            elif cell == MISSING:
                assert content == "" or (column == "c" and content in ("NA", "."))
            else:
                assert column == "c"
                assert np.array(cell).view(np.float64) == float(content)


def test_words_of_missing_cells_are_those_of_the_package() -> None:
    texts = [*MISSING_WORDS, *map(str.upper, MISSING_WORDS), "-", "--", "..", "n.a.", "missing", "unknown"]
    values, _, _ = parsed("".join(f'"{text}"\n' for text in texts).encode(), [], "c")
    assert (values.view(np.int64).ravel() == MISSING).tolist() == [text.lower() in MISSING_WORDS for text in texts]


def test_the_parser_refuses_what_cannot_be() -> None:
    for options in ({"columns": ""}, {"columns": "x"}, {"separator": "."}, {"separator": '"'}, {"decimal": ";"}):
        with pytest.raises(ValueError, match="expected"):
            _kernels.CsvParser(**{"columns": "c", **options})
    parser = _kernels.CsvParser(columns="cc", longest_row=100)
    with pytest.raises(_kernels.CsvError, match="is a closing quote missing"):
        parser.feed(b'1,"' + b"x" * 200)


QUOTED = re.compile(r' *"((?:[^"]|"")*)"(?!") *')
PLAIN = re.compile(r"[^,\n\r\0]*")
LINE_END = re.compile(r"\r\n|\n|\r")
BLANK_LINE = re.compile(r" *(\r\n|\n|\r)")


class Refused(Exception):
    """Line, column, and how the message begins."""


def rows_of(text: str, n_columns: int) -> list[tuple[int, list[str]]]:
    """The line and the fields of each row, by regular expressions."""
    rows, line, at = list[tuple[int, list[str]]](), 1, 0
    text += "" if text.endswith("\n") else "\n"
    while at < len(text):
        if blank := BLANK_LINE.match(text, at):
            line, at = line + 1, blank.end()
            continue
        first, fields = line, list[str]()
        while True:
            quoted, begins = QUOTED.match(text, at), line
            if quoted:
                before, nul, _ = quoted[1].partition("\0")
                line += len(LINE_END.findall(before))
                if nul:
                    raise Refused(line, len(fields), "found a NUL byte")
                if text[quoted.end()] not in ",\n\r":
                    raise Refused(begins, len(fields), "expected a separator")
            elif text[at:].lstrip(" ").startswith('"'):
                raise Refused(first, -1, "a quoted field begins in this row and never ends")
            found = quoted or PLAIN.match(text, at)
            assert found is not None
            at = found.end()
            if text[at] == "\0":
                raise Refused(line, len(fields), "found a NUL byte")
            fields.append((quoted[1].replace('""', '"') if quoted else found[0]).strip(" "))
            if text[at] != ",":
                break
            at += 1
        if len(fields) != n_columns:
            raise Refused(first, -1, f"expected {n_columns} fields, found {len(fields)}")
        rows.append((first, fields))
        line, at = line + 1, LINE_END.match(text, at).end()  # type: ignore[union-attr]
    return rows


def content(cell: int, words: list[bytes]) -> str:
    """What stands in a field of this cell; of numbers there are only those of ones."""
    if cell > MISSING:
        return words[cell - MISSING - 1].decode()
    return "" if cell == MISSING else f"{np.array(cell).view(np.float64):.0f}"


CHARACTERS = '1x, "\n\r\0'


def random_field(chance: random.Random) -> str:
    text = "".join(chance.choices(CHARACTERS[:-1], k=chance.randrange(4)))
    if chance.random() < 0.5:
        return text.translate(dict.fromkeys(map(ord, ',"\n\r')))
    blanks = chance.choice(["", " "])
    return f'{blanks}"{text.replace(chr(34), 2 * chr(34))}"{blanks}'


def test_short_texts() -> None:
    """All of three characters that mean something, and longer ones, fed whole, and byte by byte with the cells taken
    away after each."""
    chance, refusals = random.Random(20261126), set()
    texts = ["".join(text) for n in range(4) for text in itertools.product(CHARACTERS, repeat=n)]
    for end in ("", "\n", "\r\n", "\n \n"):
        texts += ["\n".join(f"{random_field(chance)},{random_field(chance)}" for _ in "12") + end for _ in range(200)]
    for text in texts:
        rows, refused, size = list[tuple[int, list[str]]](), (), len(text.encode())
        try:
            rows = rows_of(text, 2)
        except Refused as error:
            refused = error.args
            refusals.add(refused[2])
        apart = [(row, line) for row, (line, _) in enumerate(rows) if line != (rows[row - 1][0] if row else 0) + 1]
        for step, separator in ((1, "\t"), (size + 1, ",")):
            parser, cells, found = _kernels.CsvParser(columns="ct", separator=separator), list[list[int]](), ()
            try:
                for at in range(0, size, step):
                    parser.feed(text[at : at + step].replace(",", separator).encode())
                    cells += parser.take().view(np.int64).tolist()
                parser.finish()
            except _kernels.CsvError as error:
                found = error.args
            assert found[:2] == refused[:2], repr(text)
            if refused:
                assert found[2].startswith(refused[2]), repr(text)
                continue
            cells += parser.take().view(np.int64).tolist()
            words = parser.words(0), parser.words(1)
            assert [
                [content(*of_cell).replace(separator, ",") for of_cell in zip(row, words, strict=True)] for row in cells
            ] == [fields for _, fields in rows], repr(text)
            assert list(zip(*(part.tolist() for part in parser.apart()), strict=True)) == apart, repr(text)
    assert len(refusals) >= 5


@pytest.mark.parametrize(("separator", "decimal"), [(",", "."), (";", ","), (",", ",")])
def test_numbers_are_those_of_python(separator: str, decimal: str) -> None:
    """Of all lengths, as up to 19 digits and 2⁵³ there is a short way, and with the point anywhere."""
    digits = [
        (character * 24)[:n]
        for character in ("1", "9", "07", "9007199254740992", "9007199254740993")
        for n in range(1, 25)
    ]
    texts = [
        f"{sign}{text[:at]}{point}{text[at:]}"
        for sign in ("", "-")
        for text in digits
        for at, point in ((0, ""), (0, "."), (1, "."), (len(text) // 2, "."), (len(text), "."))
    ]
    # In quotes where the separator is the decimal point, too.
    quote = '"' if separator == decimal else ""
    parser = _kernels.CsvParser(columns="sc", separator=separator, decimal=decimal)
    parser.feed("".join(f"x{separator}{quote}{text.replace('.', decimal)}{quote}\n" for text in texts).encode())
    assert parser.take()[:, 0].tobytes() == np.array(list(map(float, texts))).tobytes()


def test_words_beyond_the_most_are_one() -> None:
    parser = _kernels.CsvParser(columns="ct", most_words=2)
    parser.feed(b"a,a\nb,b\nc,c\na,d\nd,a\nb,c\n")
    words = parser.take().view(np.int64) - MISSING - 1
    assert words.T.tolist() == [[0, 1, 2, 0, 2, 1], [0, 1, 2, 3, 0, 2]]
    assert (parser.words(0), parser.words(1, 2)) == ([b"a", b"b"], [b"c", b"d"])
