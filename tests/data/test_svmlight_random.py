"""Random svmlight text: against what was written, Python's own numbers, and a twin by regular expressions."""

import itertools
import math
import re
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from over import over
from svmlight_cases import Bad, assert_same_outcome, identical, outcome, read

from apsvm._native import _kernels
from apsvm.data import DataError

finite = st.floats(allow_nan=False, allow_infinity=False)
int64s = st.integers(-(2**63), 2**63 - 1)


@pytest.mark.slow
@settings(max_examples=200)
@given(
    rows=st.lists(
        st.tuples(
            finite,
            st.dictionaries(st.integers(0, 60) | st.integers(0, 2**31 - 2), finite, max_size=8),
            int64s,
            st.none() | st.floats(0, allow_infinity=False),
        ),
        min_size=1,
        max_size=8,
    ),
    with_qid=st.booleans(),
    with_bag=st.booleans(),
    zero_based=st.booleans(),
    shuffled=st.booleans(),
    newline=st.sampled_from(["\n", "\r\n", " # 1:2\n", "\n\n"]),
    block=st.integers(1, 64),
    threads=st.integers(1, 4),
    rng=st.randoms(use_true_random=False),
)
def test_round_trip(
    rows: list[tuple[float, dict[int, float], int, float | None]],
    with_qid: bool,
    with_bag: bool,
    zero_based: bool,
    shuffled: bool,
    newline: str,
    block: int,
    threads: int,
    rng: Any,
) -> None:
    lines = []
    for label, entries, qid, cost in rows:
        order = sorted(entries)
        if shuffled:
            rng.shuffle(order)
        words = [repr(label)]
        if with_qid:
            words.append(f"qid:{qid}")
        if cost is not None:
            words.append(f"cost:{cost!r}")
        if with_bag:
            words.append(f"bag:{-qid - 1}")
        words += [f"{column + (not zero_based)}:{entries[column]!r}" for column in order]
        lines.append(" ".join(words) + newline)
    text = "".join(lines).encode()
    parser = _kernels.SvmlightParser(zero_based=zero_based, sort_features=shuffled, threads=threads, least_chunk=1)
    for start in range(0, len(text), block):
        parser.feed(text[start : start + block])
    indptr, indices, values, relevance, qids, costs, n_columns, unknown, _, _, bags, row_lines = parser.finish()

    columns = [sorted(entries) for _, entries, _, _ in rows]
    flat = list(itertools.chain(*columns))
    assert identical(indptr, np.cumsum([0, *map(len, columns)], dtype=np.int32))
    assert identical(indices, np.array(flat, dtype=np.int32))
    assert identical(
        values, np.array([row[1][j] for row, js in zip(rows, columns, strict=True) for j in js], dtype=np.float64)
    )
    assert identical(relevance, np.array([row[0] for row in rows]))
    assert identical(qids, np.array([row[2] for row in rows], dtype=np.int64) if with_qid else None)
    assert identical(bags, np.array([-row[2] - 1 for row in rows], dtype=np.int64) if with_bag else None)
    lines_a_row = 2 if newline == "\n\n" else 1
    assert identical(row_lines, np.arange(len(rows) if with_bag else 0) * lines_a_row + 1)
    some_cost = any(row[3] is not None for row in rows)
    expected_costs = np.array([1.0 if row[3] is None else row[3] for row in rows])
    assert identical(costs, expected_costs if some_cost else None)
    assert (n_columns, unknown) == (max(flat, default=-1) + 1, 0)

    data = read(text, zero_based=zero_based, sort_features=shuffled, bag_label="own")
    assert identical(data.X.data, values)
    assert identical(data.X.indices, indices)
    single = read(text, zero_based=zero_based, sort_features=shuffled, bag_label="own", n_features=2**31 - 1)
    assert single.X.shape == (len(rows), 2**31 - 1)


digits = st.text("0123456789", max_size=25) | st.text("09", max_size=40) | st.text("0123456789", max_size=800)
decimals = st.builds(
    lambda sign, whole, point, fraction, exponent: sign + whole + point + fraction + exponent,
    st.sampled_from(["", "-", "+"]),
    digits,
    st.sampled_from(["", "."]),
    digits,
    st.just("")
    | st.builds("{}{}".format, st.sampled_from(["e", "E", "e+"]), st.integers(0, 400))
    | st.builds("e-{}".format, st.integers(0, 400)),
)


def exact_decimal(number: Fraction) -> str:
    """All digits of a dyadic fraction."""
    shift = number.denominator.bit_length() - 1
    return f"{number.numerator * 5**shift}e-{shift}"


@st.composite
def halfway_decimals(draw: st.DrawFn) -> str:
    """The midpoint of two neighbouring doubles, written out in full, or a hair beside it."""
    low = abs(draw(finite | st.floats(0, 1e-300) | st.floats(1, 1e22)))
    high = math.nextafter(low, math.inf)
    middle = (Fraction(low) + (Fraction(high) if high < math.inf else Fraction(low) + Fraction(math.ulp(low)))) / 2
    mantissa, exponent = exact_decimal(middle).split("e")
    hair = draw(st.sampled_from(["", "0", "1", "0" * 30 + "1"]))
    return f"{mantissa}{hair}e{int(exponent) - len(hair)}"


def check_numbers(texts: list[str]) -> None:
    kept, expected = [], []
    for text in texts:
        try:
            number = float(text)
        except ValueError:
            with pytest.raises(DataError, match=r"expected a (number|value)"):
                read(f"1 1:{text}".encode())
            continue
        if math.isinf(number):
            with pytest.raises(DataError, match="overflows float64"):
                read(f"1 1:{text}".encode())
            continue
        kept.append(text)
        expected.append(number)
    if kept:
        by_value = read(("1 " + " ".join(f"{i}:{text}" for i, text in enumerate(kept))).encode(), zero_based=True)
        by_label = read("\n".join(kept).encode())
        assert identical(by_value.X.data, np.array(expected))
        assert identical(by_label.relevance, np.array(expected))


@pytest.mark.slow
@settings(max_examples=250)
@given(st.lists(decimals, min_size=1, max_size=8))
def test_numbers(texts: list[str]) -> None:
    check_numbers(texts)


@pytest.mark.slow
@settings(max_examples=200)
@given(st.lists(halfway_decimals(), min_size=1, max_size=8))
def test_halfway_numbers(texts: list[str]) -> None:
    check_numbers(texts)


def test_numbers_of_every_length() -> None:
    rng = np.random.default_rng(7)
    numbers = np.exp(rng.normal(scale=20, size=3000)) * rng.choice([-1, 1], 3000)
    texts = [
        f"{number:.{n}{kind}}" for number, n, kind in zip(numbers, itertools.cycle(range(25)), itertools.cycle("feg"))
    ]
    assert len(set(texts)) > 2800
    check_numbers(texts)


NUMBER = rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"


@dataclass
class Twin:
    """The format once more, by regular expressions: slow, and without a word about what is wrong."""

    relevance: list[float] = field(default_factory=list)
    rows: list[list[tuple[int, float]]] = field(default_factory=list)
    groups: list[int | None] = field(default_factory=list)
    costs: list[float | None] = field(default_factory=list)
    bags: list[int | None] = field(default_factory=list)

    def accepts(self, text: bytes, sort_features: bool, dtype: Any) -> bool:
        for line in text.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
            row, _, comment = line.removesuffix(b"\r").partition(b"#")
            if re.search(rb"[\0\r]", comment) or re.search(rb"[\0-\x08\x0b-\x1f\x7f]", row):
                return False
            words = [word for word in re.split(rb"[ \t]+", row) if word]
            if words and not self.accepts_row(words[0], words[1:], sort_features, dtype):
                return False
        if len(self.rows) == 0 or any(len({one is None for one in ids}) != 1 for ids in (self.groups, self.bags)):
            return False
        costs = [1.0 if cost is None else cost for cost in self.costs]
        kinds = set(zip(self.bags, self.relevance, self.groups, costs, strict=True))
        return self.bags[0] is None or len(kinds) == len(set(self.bags))

    def accepts_row(self, label: bytes, words: list[bytes], sort_features: bool, dtype: Any) -> bool:
        prefix: dict[bytes, bytes] = {}
        while words and words[0].startswith((b"qid:", b"cost:", b"bag:")):
            key, _, value = words.pop(0).partition(b":")
            if key in prefix:
                return False
            prefix[key] = value
        qid, cost, bag = prefix.get(b"qid", b"0"), prefix.get(b"cost", b"1"), prefix.get(b"bag", b"0")
        entries = [re.fullmatch(rb"([+-]?[0-9]+):(" + NUMBER + rb")", word) for word in words]
        if not (re.fullmatch(NUMBER, label) and re.fullmatch(NUMBER, cost)):
            return False
        if not all(re.fullmatch(rb"[+-]?[0-9]+", one) and -(2**63) <= int(one) < 2**63 for one in (qid, bag)):
            return False
        if not (math.isfinite(float(label)) and 0 <= float(cost) < math.inf):
            return False
        with np.errstate(over="ignore", under="ignore"):
            row = [(int(entry[1]) - 1, float(dtype(float(entry[2])))) for entry in entries if entry is not None]
        columns = [column for column, _ in row]
        if len(row) < len(words) or not all(0 <= column < 2**63 - 1 for column in columns):
            return False
        if not all(math.isfinite(value) for _, value in row) or len(set(columns)) < len(columns):
            return False
        if columns != sorted(columns) and not sort_features:
            return False
        self.relevance.append(float(label))
        self.rows.append(sorted(row))
        self.groups.append(int(qid) if b"qid" in prefix else None)
        self.costs.append(float(cost) if b"cost" in prefix else None)
        self.bags.append(int(bag) if b"bag" in prefix else None)
        return True


VALID = b"1 qid:3 cost:0.5 1:2 3:4.5e-1 # c\r\n-1 qid:3 2:1\n+1 qid:-4 10:0.123456789012345678\n"
BAGS = b"1 bag:3 cost:0.5 1:2 # c\r\n-1 bag:4 2:1\n+1 bag:3 cost:0.5 10:0.123\n"
N_ACCEPTED = [0, 0]


@settings(max_examples=1000)
@given(
    valid=st.sampled_from([VALID, BAGS]),
    edits=st.lists(
        st.tuples(
            st.integers(0, len(VALID)),
            st.integers(0, 4),
            st.lists(st.sampled_from(b" \t\r\n#:.,-+eE0192345678\0\x80qn"), max_size=2).map(bytes),
        ),
        max_size=3,
    ),
    sort_features=st.booleans(),
    dtype=st.sampled_from([np.float32, np.float64]),
    block=st.integers(1, 90),
    threads=st.integers(1, 4),
)
def check_mutation(
    valid: bytes, edits: list[tuple[int, int, bytes]], sort_features: bool, dtype: Any, block: int, threads: int
) -> None:
    text = valid
    for at, drop, put in edits:
        text = text[:at] + put + text[at + drop :]
    case = Bad("", text, 0, 0, "", {"sort_features": sort_features, "dtype": dtype})
    assert_same_outcome(outcome(text, block, case, threads), outcome(text, max(len(text), 1), case))

    twin = Twin()
    accepted = twin.accepts(text, sort_features, dtype)
    N_ACCEPTED[accepted] += 1
    if not accepted:
        with pytest.raises(DataError) as caught:
            read(text, sort_features=sort_features, dtype=dtype)
        message = str(caught.value)
        assert message.startswith("<stream>:")
        assert message.isprintable()
        return
    data = read(text, sort_features=sort_features, dtype=dtype)
    data.X.check_format(full_check=True)
    entries = list(itertools.chain(*twin.rows))
    assert identical(data.relevance, np.array(twin.relevance))
    assert np.diff(data.X.indptr).tolist() == [len(row) for row in twin.rows]
    assert data.X.indices.tolist() == [column for column, _ in entries]
    assert identical(data.X.data, np.array([value for _, value in entries], dtype=dtype))
    assert (twin.groups if data.groups is None else data.groups.tolist()) == twin.groups
    assert (data.groups is None) == (twin.groups[0] is None)
    assert (twin.bags if data.bags is None else data.bags.tolist()) == twin.bags
    if any(cost is not None for cost in twin.costs):
        assert data.costs is not None
        assert data.costs.tolist() == [1.0 if cost is None else cost for cost in twin.costs]
    else:
        assert data.costs is None


@pytest.mark.slow
def test_mutations() -> None:
    """Whatever the text: what the twin makes of it, and the same however it is cut into blocks."""
    check_mutation()
    assert min(N_ACCEPTED) > 50


def test_decimals_of_every_number_at_every_distance_from_the_end():
    """They are taken eight bytes at a time where so many can be read."""
    rng = np.random.default_rng(0)
    seen = set()
    for digits in range(26):
        for behind in ("", "\n", " 2:1", " 2:1.5e0\n", " # a comment\n", "\r\n"):
            for whole, sign in itertools.product(("", "0", "7", "4503599"), ("", "-", "+")):
                number = f"{sign}{whole}.{''.join(map(str, rng.integers(0, 10, digits)))}"
                if not whole and not digits:
                    continue
                X = read(f"1 1:{number}{behind}".encode()).X
                value = X.data[0] if hasattr(X, "indptr") else X[0, 0]
                assert identical(value, float(number)), number
                seen.add(value)
    assert len(seen) > 1000


@over("at", range(12))
@over("byte", [0x2F, 0x3A, 0x00, 0x7F, 0x80, 0xB0, 0xB9, 0xFF])
def test_bytes_beside_the_digits_are_none(at, byte):
    """Whatever a carry from the byte before makes of them."""
    number = bytearray(b"0.9999999999999")
    number.insert(2 + at, byte)
    with pytest.raises(DataError, match=r"the value of feature 1|control character|NUL"):
        read(b"1 1:" + bytes(number) + b" 2:1\n")


def test_rows_that_lack_few_entries_are_a_dense_matrix_as_they_are_read() -> None:
    rng = np.random.default_rng(33)
    shapes = set()
    for _ in range(60):
        n, d = int(rng.integers(1, 40)), int(rng.integers(1, 12))
        X = rng.normal(size=(n, d)).astype(np.float32)
        stored = rng.random((n, d)) >= rng.choice([0.01, 0.2, 0.45, 0.6])
        stored[: n // 2, d // 2 :] &= rng.random() < 0.5  # the first rows may have fewer columns
        text = b"".join(
            b"1 " + b" ".join(f"{j + 1}:{float(row[j])!r}".encode() for j in np.flatnonzero(of_row)) + b"\n"
            for row, of_row in zip(X, stored, strict=True)
        )
        threads, float32 = int(rng.integers(1, 4)), bool(rng.integers(2))
        sparse, dense = (
            _kernels.SvmlightParser(float32=float32, threads=threads, least_chunk=1, fill_if=1.25 * pays)
            for pays in (False, True)
        )
        for parser in (sparse, dense):
            parser.feed(text)
        indptr, indices, values, *_, n_columns = sparse.finish()[:7]
        width, item = n_columns, values.dtype.itemsize
        pays = n * width * item <= 1.25 * values.size * (item + 4)
        found = dense.finish(dense=True)
        shapes.add((pays, values.size == n * width))
        if not pays:
            assert identical(found[0], indptr)
            assert identical(found[1], indices)
            assert identical(found[2], values)
            continue
        assert found[1] is None
        assert identical(found[0], width * np.arange(n + 1, dtype=np.int32))
        assert identical(found[2].reshape(n, width), np.where(stored, X, 0.0)[:, :width].astype(values.dtype))
    assert shapes >= {(True, True), (True, False), (False, False)}
