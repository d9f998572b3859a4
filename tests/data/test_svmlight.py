"""Reading svmlight files: the corners of the format, its errors with their places, and the ways bytes come in."""

import bz2
import gzip
import hashlib
import io
import itertools
import lzma
import math
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

from apsvm._native import _kernels
from apsvm.data import DataError, Dataset, read_svmlight, svmlight

COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": lambda text: gzip.compress(text, 1, mtime=0),
    "bzip2": bz2.compress,
    "xz": lzma.compress,
}
COMPRESSED = [name for name in COMPRESSORS if name != "plain"]


def read(text: bytes, **options: Any) -> Dataset:
    return read_svmlight(io.BytesIO(text), **options)


def identical(a: Any, b: Any) -> bool:
    """Bit for bit, types included."""
    if a is None or b is None:
        return a is b
    a, b = np.asarray(a), np.asarray(b)
    return bool(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes())


def assert_same(a: Dataset, b: Dataset) -> None:
    assert a.X.shape == b.X.shape
    for name in ("indptr", "indices", "data"):
        assert identical(getattr(a.X, name), getattr(b.X, name)), name
    for name in ("relevance", "groups", "costs", "bags"):
        assert identical(getattr(a, name), getattr(b, name)), name
    assert a.unknown_features == b.unknown_features


# ------------------------------------------------------------------------------------------------ the corner table

Row = tuple[float, dict[int, float]]


@dataclass
class Good:
    """A text that is read: its rows as (label, {column: value})."""

    name: str
    text: bytes
    rows: list[Row]
    groups: list[int] | None = None
    costs: list[float] | None = None
    bags: list[int] | None = None
    options: dict[str, Any] = field(default_factory=dict)
    judged: bool = True  # scikit-learn reads the text, too, and must agree
    n_columns: int | None = None  # if not the last one stored decides
    unknown: int = 0


MULTI = {"multilabel": True}
ONE = [(1.0, {0: 2.0})]
GOOD = [
    Good("one row", b"1 1:2\n", ONE),
    Good("no final newline", b"1 1:2", ONE),
    Good("two rows", b"1 1:2 3:4\n-1 2:5\n", [(1, {0: 2, 2: 4}), (-1, {1: 5})]),
    Good("blank lines", b"\n  \n1 1:2\n\t\n\n", ONE),
    Good("comment lines", b"# a\n  # b\n1 1:2\n#\n", ONE),
    Good("comment behind a blank", b"1 1:2 # 3:4\n", ONE),
    Good("comment behind a value", b"1 1:2#3:4\n", ONE),
    Good("comment behind a label", b"1#1:2\n1 1:2\n", [(1, {}), *ONE]),
    Good("comment behind a qid", b"1 qid:7# x\n", [(1, {})], groups=[7]),
    Good("comment with any bytes", b"1 1:2 # \xff\xfe \x1b[0m # \x0c\n", ONE),
    Good("CRLF", b"1 1:2\r\n\r\n# a\r\n-1\r\n", [*ONE, (-1, {})]),
    Good("CR at the very end", b"1 1:2\r", ONE),
    Good("runs of blanks", b"1   1:2 \t 3:4\n", [(1, {0: 2, 2: 4})]),
    Good("blanks at both ends", b" \t1 1:2 \t \n", ONE),
    Good("BOM", b"\xef\xbb\xbf1 1:2\n", ONE, judged=False),
    Good("BOM and comment", b"\xef\xbb\xbf# a\n1 1:2\n", ONE, judged=False),
    Good("row without features", b"1\n-1 1:2\n", [(1, {}), (-1, {0: 2})]),
    Good("only rows without features", b"1\n-1\n", [(1, {}), (-1, {})], n_columns=0),
    Good("signs", b"+1 1:+2 2:-3\n", [(1, {0: 2, 1: -3})]),
    Good("bare points", b"1. 1:2. 2:.5 3:-.5\n", [(1, {0: 2, 1: 0.5, 2: -0.5})]),
    Good("exponents", b"1e0 1:1e-3 2:2E+2 3:1.5e1\n", [(1, {0: 1e-3, 1: 200, 2: 15})]),
    Good("negative zeros", b"-0 1:-0 2:-0.0 3:-.0e9\n", [(-0.0, {0: -0.0, 1: -0.0, 2: -0.0})]),
    Good("explicit zeros are kept", b"1 1:0 2:0.0 3:1\n", [(1, {0: 0, 1: 0, 2: 1})]),
    Good("denormals", b"1 1:5e-324 2:2.2250738585072011e-308\n", [(1, {0: 5e-324, 1: 2.2250738585072011e-308})]),
    Good("underflow", b"1 1:1e-400 2:-1e-400 3:1e-99999999999999999999\n", [(1, {0: 0.0, 1: -0.0, 2: 0.0})]),
    Good("zero times anything", b"1 1:0e99999999999999999999\n", [(1, {0: 0.0})]),
    Good("largest double", b"1 1:1.7976931348623157e308\n", [(1, {0: sys.float_info.max})]),
    Good("many digits", b"1 1:0." + b"3" * 400 + b" 2:1" + b"0" * 300 + b"\n", [(1, {0: 1 / 3, 1: 1e300})]),
    Good("long digits, small number", b"1 1:1" + b"0" * 400 + b"e-400\n", [(1, {0: 1.0})]),
    Good("leading zeros", b"01 007:002\n", [(1, {6: 2})]),
    Good("leading zeros without end", b"1 " + b"0" * 30 + b"7:2\n", [(1, {6: 2})]),
    Good("signed index", b"1 +3:2\n", [(1, {2: 2})]),
    Good("fractional labels", b"2.5 1:2\n-3e2 1:2\n", [(2.5, {0: 2}), (-300, {0: 2})]),
    Good("zero-based", b"1 0:2 3:4\n", [(1, {0: 2, 3: 4})], options={"zero_based": True}),
    Good("zero-based from 1", b"1 1:2\n", [(1, {1: 2})], options={"zero_based": True}),
    Good("qid", b"1 qid:3 1:2\n0 qid:3\n1 qid:4 1:2\n", [*ONE, (0, {}), *ONE], groups=[3, 3, 4]),
    Good("signed qid", b"1 qid:-3 1:2\n1 qid:+5 1:2\n", [*ONE, *ONE], groups=[-3, 5]),
    Good(
        "extreme qids",
        b"1 qid:9223372036854775807\n1 qid:-9223372036854775808\n",
        [(1, {}), (1, {})],
        groups=[2**63 - 1, -(2**63)],
    ),
    Good("cost", b"1 cost:2.5 1:2\n", ONE, costs=[2.5], judged=False),
    Good("cost later on", b"1\n1\n1 cost:0\n1\n", [(1, {})] * 4, costs=[1, 1, 0, 1], judged=False),
    Good("qid, cost", b"1 qid:3 cost:2 1:2\n", ONE, groups=[3], costs=[2], judged=False),
    Good("bag", b"1 bag:3 1:2\n0 bag:-4\n1 bag:+3 1:2\n", [*ONE, (0, {}), *ONE], bags=[3, -4, 3], judged=False),
    Good(
        "bag, cost, qid",
        b"# a\n\n1 bag:3 cost:2 qid:1 1:2\n1 cost:2 bag:3 qid:1 1:2\n",
        [*ONE, *ONE],
        groups=[1, 1],
        costs=[2, 2],
        bags=[3, 3],
        judged=False,
    ),
    Good("bag, no label", b" bag:3 1:2\n", [(0, {0: 2.0})], bags=[3], options=MULTI, judged=False),
    Good("cost, qid", b"1 cost:2 qid:3 1:2\n", ONE, groups=[3], costs=[2], judged=False),
    Good("n_features", b"1 1:2\n", ONE, options={"n_features": 9}, n_columns=9),
    Good("n_features just enough", b"1 3:2\n", [(1, {2: 2})], options={"n_features": 3}),
    Good("n_features, zero-based", b"1 2:2\n", [(1, {2: 2})], options={"n_features": 3, "zero_based": True}),
    Good("max_features just enough", b"1 3:2\n", [(1, {2: 2})], options={"max_features": 3}),
    Good(
        "unknown dropped",
        b"1 1:2 4:1 5:1\n1 9:1\n1 3:7\n",
        [*ONE, (1, {}), (1, {2: 7})],
        options={"n_features": 3, "ignore_unknown": True},
        judged=False,
        unknown=3,
    ),
    Good(
        "unknown beyond 32 bits dropped",
        b"1 1:2 4000000000:1\n",
        ONE,
        options={"n_features": 3, "ignore_unknown": True},
        judged=False,
        n_columns=3,
        unknown=1,
    ),
    Good("sorted here", b"1 3:4 1:2 2:3\n", [(1, {0: 2, 1: 3, 2: 4})], options={"sort_features": True}, judged=False),
    Good(
        "sorted here, some rows",
        b"1 1:2 # 9:9\n1 3:4 1:2#0\n1 2:1 3:1\n",
        [*ONE, (1, {0: 2, 2: 4}), (1, {1: 1, 2: 1})],
        options={"sort_features": True},
        judged=False,
    ),
    Good(
        "sorted here, unknown dropped",
        b"1 9:4 4:1 1:2\n1 9:1 8:1\n1 4:1 3:7\n",
        [*ONE, (1, {}), (1, {2: 7})],
        options={"sort_features": True, "n_features": 3, "ignore_unknown": True},
        judged=False,
        unknown=5,
    ),
    Good("float32", b"1 1:0.1 2:3\n", [(1, {0: 0.1, 1: 3})], options={"dtype": np.float32}),
    Good("float32 underflow", b"1 1:1e-60 2:-1e-60\n", [(1, {0: 0.0, 1: -0.0})], options={"dtype": np.float32}),
    Good("float32 largest", b"1 1:3.4028235e38\n", [(1, {0: 3.4028235e38})], options={"dtype": np.float32}),
    Good("float32 leaves labels alone", b"0.1 1:2\n", [(0.1, {0: 2})], options={"dtype": np.float32}),
]


@dataclass
class Bad:
    """A text that is refused: where, and a part of the message."""

    name: str
    text: bytes
    line: int
    column: int
    message: str
    options: dict[str, Any] = field(default_factory=dict)


F32 = {"dtype": np.float32}
SORT = {"sort_features": True}
BAD = [
    Bad("value nan", b"1 1:2\n1 1:2 3:nan\n", 2, 9, "expected a finite number as the value of feature 3, found 'nan'"),
    Bad("value NaN", b"1 1:-NaN\n", 1, 5, "finite number as the value of feature 1, found '-NaN'"),
    Bad("value inf", b"1 1:inf\n", 1, 5, "expected a finite number"),
    Bad("value +Infinity", b"1 1:+Infinity 2:3\n", 1, 5, "finite number as the value of feature 1, found '+Infinity'"),
    Bad("value 1e999", b"1 2:3 4:1e999\n", 1, 9, "the value of feature 4 overflows float64: found '1e999'"),
    Bad("value -1.8e308", b"1 4:-1.8e308\n", 1, 5, "overflows float64"),
    Bad("value without end", b"1 4:" + b"9" * 400, 1, 5, "overflows float64: found '" + "9" * 40 + "'..."),
    Bad("value 1e39 in float32", b"1 4:1e39\n", 1, 5, "the value of feature 4 overflows float32: found '1e39'", F32),
    Bad("value rounds up to inf in float32", b"1 4:3.40282357e38\n", 1, 5, "overflows float32", F32),
    Bad("value is a word", b"1 4:abc 5:6\n", 1, 5, "expected a number as the value of feature 4, found 'abc'"),
    Bad("value with a tail", b"1 1:2abc\n", 1, 5, "found '2abc'"),
    Bad("value +-1", b"1 1:+-1\n", 1, 5, "found '+-1'"),
    Bad("value is a point", b"1 1:.\n", 1, 5, "found '.'"),
    Bad("value with half an exponent", b"1 1:1e\n", 1, 5, "found '1e'"),
    Bad("value with a signed half exponent", b"1 1:1e+\n", 1, 5, "found '1e+'"),
    Bad("value with two points", b"1 1:1.2.3\n", 1, 5, "found '1.2.3'"),
    Bad("value with UTF-8", b"1 1:2\xc2\xa0\n", 1, 5, r"found '2\xc2\xa0'"),
    Bad("two colons", b"1 1:2:3\n", 1, 5, "found '2:3'"),
    Bad("no value", b"1 1:2 3:\n", 1, 9, "right behind the ':' of feature 3, found the end of the line"),
    Bad("no value, CRLF", b"1 3:\r\n", 1, 5, "found the end of the line"),
    Bad("no value, blank", b"1 3: 4\n", 1, 5, "right behind the ':' of feature 3, found a blank"),
    Bad("no value, comment", b"1 3:# 4\n", 1, 5, "found a comment"),
    Bad("no colon", b"1 1:2 3\n", 1, 7, "expected index:value, found '3'"),
    Bad("no colon, a word", b"1 abc 1:2\n", 1, 3, "expected index:value, found 'abc'"),
    Bad("blank before the colon", b"1 3 :4\n", 1, 5, "a blank before it"),
    Bad("no index", b"1 :4\n", 1, 3, "expected a feature index before the ':', found ':4'"),
    Bad("index 0", b"1 1:2\n-1 0:1 1:2\n", 2, 4, "--zero-based"),
    Bad("index -0", b"1 -0:1\n", 1, 3, "start at 1, found '-0'"),
    Bad("index negative", b"1 -1:2\n", 1, 3, "feature index of at least 1, found '-1'"),
    Bad("index negative, zero-based", b"1 -1:2\n", 1, 3, "at least 0, found '-1'", {"zero_based": True}),
    Bad("index very negative", b"1 -99999999999999999999:2\n", 1, 3, "feature index of at least 1"),
    Bad("index fractional", b"1 1.5:2\n", 1, 3, "expected an integer as the feature index, found '1.5'"),
    Bad("index a word", b"1 x:2\n", 1, 3, "expected an integer as the feature index, found 'x'"),
    Bad("index with two signs", b"1 +-1:2\n", 1, 3, "expected an integer"),
    Bad("index beyond 64 bits", b"1 1:2 9223372036854775808:1\n", 1, 7, "does not fit in 64 bits"),
    Bad("index the last of 64 bits", b"1 9223372036854775807:1\n", 1, 3, "too large", {"zero_based": True}),
    Bad("index twice", b"1 1:2 1:3\n", 1, 7, "feature 1 is given twice"),
    Bad("index twice, sorting", b"1\n1 3:1 1:2 3:1 1:3\n", 2, 11, "feature 3 is given twice", SORT),
    Bad("index twice, sorting sorted", b"1 1:2 1:3\n", 1, 7, "feature 1 is given twice", SORT),
    Bad(
        "unknown index twice, sorting",
        b"1 9:1 1:2 9:1\n",
        1,
        11,
        "feature 9 is given twice",
        {"sort_features": True, "n_features": 3, "ignore_unknown": True},
    ),
    Bad("index 0, sorting", b"1 3:1 0:2\n", 1, 7, "--zero-based", SORT),
    Bad("value bad, sorting", b"1 3:1 1:x\n", 1, 9, "found 'x'", SORT),
    Bad("unsorted", b"1 3:2 1:3\n", 1, 7, "found 1 after 3; --sort-features (sort_features=True)"),
    Bad("unsorted and a bad value", b"1 3:2 1:x\n", 1, 7, "found 1 after 3"),
    Bad("beyond max_features", b"1 3:1 4:1\n", 1, 7, "feature 4 is beyond the limit of 3", {"max_features": 3}),
    Bad("beyond max_features, sorting", b"1 4:1 3:1\n", 1, 3, "feature 4 is beyond", {"max_features": 3, **SORT}),
    Bad("beyond max_features, unsorted", b"1 2:1 1:1 4:1\n", 1, 11, "feature 4 is beyond", {"max_features": 3, **SORT}),
    Bad("beyond none at all", b"1 1:2\n", 1, 3, "feature 1 is beyond the limit of 0 features", {"max_features": 0}),
    Bad("zero-based max", b"1 3:1\n", 1, 3, "feature 3 is beyond", {"max_features": 3, "zero_based": True}),
    Bad(
        "unknown",
        b"1 4:1\n",
        1,
        3,
        "is unknown (the model has 3 features); --ignore-unknown (ignore_unknown=True)",
        {"n_features": 3},
    ),
    Bad("unknown and bad", b"1 4:x\n", 1, 5, "found 'x'", {"n_features": 3, "ignore_unknown": True}),
    Bad("label nan", b"nan 1:2\n", 1, 1, "expected a finite number as the label, found 'nan'"),
    Bad("label -inf", b"1 1:2\n -inf 1:2\n", 2, 2, "expected a finite number as the label, found '-inf'"),
    Bad("label 1e999", b"1e999 1:2\n", 1, 1, "the label overflows float64"),
    Bad("label a word", b"spam 1:2\n", 1, 1, "expected a number as the label, found 'spam'"),
    Bad("label with a tail", b"1x 1:2\n", 1, 1, "found '1x'"),
    Bad("label in hexadecimal", b"0x1 1:2\n", 1, 1, "found '0x1'"),
    Bad(
        "label missing",
        b"1:2 3:4\n",
        1,
        1,
        "label at the start of the row, found '1:2'; --multilabel (multilabel=True)",
    ),
    Bad("label missing, qid", b"qid:2 3:4\n", 1, 1, "expected a label"),
    Bad("multi-label", b"1 1:2\n1,4 1:2\n", 2, 1, "expected one number as the label, found '1,4'; --multilabel"),
    Bad("labels: a comma in front", b"3 1:2\n,1 1:2\n", 2, 1, "before and behind each ',', found ',1'", MULTI),
    Bad("labels: a comma behind", b"1, 1:2\n", 1, 3, "before and behind each ',', found '1,'", MULTI),
    Bad("labels: two commas", b"1,,2 1:2\n", 1, 3, "before and behind each ','", MULTI),
    Bad("labels: one twice", b"3,1,2,1 1:2\n", 1, 7, "label '1' is given twice in this row", MULTI),
    Bad("labels: twice in two spellings", b"10,1e1 1:2\n", 1, 4, "label '1e1' is given twice", MULTI),
    Bad("labels: a word", b"1 1:2\n2,x 1:2\n", 2, 3, "expected a number as the label, found 'x'", MULTI),
    Bad("labels: inf", b"1,-inf 1:2\n", 1, 3, "expected a finite number as the label, found '-inf'", MULTI),
    Bad("labels: overflow", b"1,1e999 1:2\n", 1, 3, "the label overflows float64: found '1e999'", MULTI),
    Bad("labels: a colon behind", b"1,4:2 1:2\n", 1, 3, "expected a number as the label, found '4:2'", MULTI),
    Bad("labels: none and a comma", b"1:2,3 4:1\n", 1, 3, "the value of feature 1, found '2,3'", MULTI),
    Bad("labels: NUL behind", b"1,2\0 1:2\n", 1, 4, "NUL", MULTI),
    Bad("labels: qid missing", b"1,2 qid:1 1:2\n 1:2\n", 2, 2, "expected qid:INT", MULTI),
    Bad("BOM in the middle", b"1 1:2\n\xef\xbb\xbf1 1:2\n", 2, 1, r"found '\xef\xbb\xbf1'"),
    Bad("columns do not count the BOM", b"\xef\xbb\xbf1 x\n", 1, 3, "found 'x'"),
    Bad("qid late", b"1\n# a\n1 qid:2 1:2\n", 3, 3, "expected no qid, as in the rows before (since line 1)"),
    Bad("qid gone", b"\n1 qid:2\n1 1:2\n", 3, 3, "expected qid:INT, as in the rows before (since line 2), found '1:2'"),
    Bad("qid gone at the end", b"1 qid:2\n1\n", 2, 2, "found the end of the line"),
    Bad("qid gone, cost", b"1 qid:2\n1 cost:2 1:2\n", 2, 10, "expected qid:INT"),
    Bad("qid twice", b"1 qid:2 qid:2 1:2\n", 1, 9, "qid is given twice"),
    Bad("qid after a feature", b"1 1:2 qid:2\n", 1, 7, "qid must stand before the features"),
    Bad("qid a word", b"1 qid:a 1:2\n", 1, 7, "expected an integer behind qid:, found 'a'"),
    Bad("qid empty", b"1 qid: 1:2\n", 1, 7, "expected an integer behind qid:, found a blank"),
    Bad("qid fractional", b"1 qid:1.0 1:2\n", 1, 7, "expected an integer behind qid:, found '1.0'"),
    Bad("qid beyond 64 bits", b"1 qid:9223372036854775808\n", 1, 7, "the qid does not fit in 64 bits"),
    Bad("bag late", b"1\n# a\n1 bag:2 1:2\n", 3, 3, "expected no bag, as in the rows before (since line 1)"),
    Bad("bag gone", b"\n1 bag:2\n1 1:2\n", 3, 3, "expected bag:INT, as in the rows before (since line 2), found '1:2'"),
    Bad("bag twice", b"1 bag:2 qid:1 bag:2 1:2\n", 1, 15, "bag is given twice"),
    Bad("bag after a feature", b"1 1:2 bag:2\n", 1, 7, "bag must stand before the features"),
    Bad("bag a word", b"1 bag:a 1:2\n", 1, 7, "expected an integer behind bag:, found 'a'"),
    Bad("bag empty", b"1 bag: 1:2\n", 1, 7, "expected an integer behind bag:, found a blank"),
    Bad("bag fractional", b"1 bag:1.0 1:2\n", 1, 7, "expected an integer behind bag:, found '1.0'"),
    Bad("bag beyond 64 bits", b"1 bag:-9223372036854775809\n", 1, 7, "the bag does not fit in 64 bits"),
    Bad("cost twice", b"1 cost:1 qid:2 cost:1\n", 1, 16, "cost is given twice"),
    Bad("cost after a feature", b"1 1:2 cost:2\n", 1, 7, "cost must stand before the features"),
    Bad("cost negative", b"1 cost:-1 1:2\n", 1, 8, "expected a cost of at least 0, found '-1'"),
    Bad("cost nan", b"1 cost:nan 1:2\n", 1, 8, "expected a finite number as the cost, found 'nan'"),
    Bad("cost empty", b"1 cost:\n", 1, 8, "expected a number as the cost, found the end of the line"),
    Bad("cost overflows", b"1 cost:1e309\n", 1, 8, "the cost overflows float64"),
    Bad("NUL in a value", b"1 1:2\x003\n", 1, 6, r"found a NUL byte '\x00'"),
    Bad("NUL at the start", b"\x001 1:2\n", 1, 1, "NUL"),
    Bad("NUL in a blank line", b"1 1:2\n \x00\n", 2, 2, "NUL"),
    Bad("NUL for a value", b"1 1:\x00\n", 1, 5, "NUL"),
    Bad("NUL in a comment", b"1 1:2 # \x00\n", 1, 9, "NUL"),
    Bad("control character", b"1 1:2\x0b3:4\n", 1, 6, r"found the control character '\x0b'"),
    Bad("delete character", b"1 1:2 \x7f\n", 1, 7, r"'\x7f'"),
    Bad("form feed line", b"\x0c\n1 1:2\n", 1, 1, r"'\x0c'"),
    Bad("lone CR", b"1 1:2\r1 1:2\n", 1, 6, "lone carriage return"),
    Bad("two CR", b"1 1:2\r\r\n", 1, 6, "lone carriage return"),
    Bad("lone CR in a comment", b"1 1:2 # a\r1 1:2\n", 1, 10, "lone carriage return"),
    Bad("lone CR, then NUL in a comment", b"# a\r\x00\n", 1, 4, "lone carriage return"),
    Bad("NUL, then lone CR in a comment", b"# a\x00\r\n1\n", 1, 4, "NUL"),
    Bad("UTF-16 little", "1 1:2\n".encode("utf-16"), 1, 1, "found UTF-16"),
    Bad("UTF-16 big", b"\xfe\xff" + "1 1:2\n".encode("utf-16-be"), 1, 1, "found UTF-16"),
    Bad("UTF-32 little", "1 1:2\n".encode("utf-32"), 1, 1, "found UTF-32"),
    Bad("UTF-32 big", b"\0\0\xfe\xff" + "1 1:2\n".encode("utf-32-be"), 1, 1, "found UTF-32"),
    Bad("long token is cut", b"1 " + b"x" * 50 + b"\n", 1, 3, "found '" + "x" * 40 + "'..."),
    Bad("quotes are escaped", b"1 a'\\b\n", 1, 3, r"found 'a\'\\b'"),
    Bad("the first of two", b"1 1:2 x\n1 y\n", 1, 7, "found 'x'"),
]

NO_ROWS = [b"", b"\n", b" \t\n\n", b"# only\n", b"\r\n", b"\xef\xbb\xbf", b"# only"]


def outcome(text: bytes, block: int, case: Good | Bad, threads: int = 1, **more: Any) -> Any:
    """What the push parser makes of the text in blocks of this size: arrays, or the place and message."""
    options = dict(case.options) | more
    options["float32"] = options.pop("dtype", np.float64) == np.float32
    parser = _kernels.SvmlightParser(**options, threads=threads, least_chunk=1)
    try:
        for start in range(0, len(text), block):
            parser.feed(text[start : start + block])
        return parser.finish()
    except _kernels.SvmlightError as error:
        return error.args


def check_good(data: Dataset, case: Good) -> None:
    dtype = case.options.get("dtype", np.float64)
    columns = [list(row) for _, row in case.rows]
    n_columns = case.n_columns
    if n_columns is None:
        n_columns = max(itertools.chain(*columns), default=-1) + 1
    assert identical(data.relevance, np.array([label for label, _ in case.rows], dtype=np.float64))
    assert identical(data.X.indptr, np.cumsum([0, *map(len, columns)], dtype=np.int32))
    assert identical(data.X.indices, np.array(list(itertools.chain(*columns)), dtype=np.int32))
    assert identical(data.X.data, np.array([v for _, row in case.rows for v in row.values()], dtype=dtype))
    assert data.X.shape == (len(case.rows), n_columns)
    assert identical(data.groups, None if case.groups is None else np.array(case.groups, dtype=np.int64))
    assert identical(data.bags, None if case.bags is None else np.array(case.bags, dtype=np.int64))
    assert identical(data.costs, None if case.costs is None else np.array(case.costs, dtype=np.float64))
    assert data.zero_based == case.options.get("zero_based", False)
    assert data.unknown_features == case.unknown
    data.X.check_format(full_check=True)
    assert data.X.has_sorted_indices
    assert data.X.has_canonical_format


def check_bad(call: Callable[[], Dataset], case: Bad, source: str) -> None:
    with pytest.raises(DataError) as caught:
        call()
    message = str(caught.value)
    assert message.startswith(f"{source}:{case.line}:{case.column}: ")
    assert case.message in message
    assert message.isprintable()


CASES: list[Good | Bad] = [*GOOD, *BAD]
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def test_the_table_is_one() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
    assert set(FEW) < set(names)


#: How bytes come in does not depend on what they say: a few cases are enough for each way.
FEW = [
    "two rows",
    "no final newline",
    "BOM and comment",
    "qid",
    "value nan",
    "value without end",
    "qid gone at the end",
]
few_cases = pytest.mark.parametrize("case", [case for case in CASES if case.name in FEW], ids=lambda case: case.name)


def check_file(case: Good | Bad, content: bytes, path: Path) -> None:
    path.write_bytes(content)
    if isinstance(case, Bad):
        check_bad(lambda: read_svmlight(path, **case.options), case, str(path))
    else:
        data = read_svmlight(path, **case.options)
        check_good(data, case)
        assert data.source == str(path)
        assert data.fingerprint == hashlib.sha256(content).hexdigest()


@each_case
def test_file(case: Good | Bad, tmp_path: Path) -> None:
    check_file(case, case.text, tmp_path / "data.gz")  # the name must not matter


@pytest.mark.parametrize("compression", COMPRESSED)
@few_cases
def test_compressed_file(case: Good | Bad, compression: str, tmp_path: Path) -> None:
    check_file(case, COMPRESSORS[compression](case.text), tmp_path / "data.svm")


@pytest.mark.parametrize("compression", ["plain", "xz"])
@few_cases
def test_stdin(case: Good | Bad, compression: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.write(writing, COMPRESSORS[compression](case.text))  # short enough for the pipe to hold
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=pipe))
        if isinstance(case, Bad):
            check_bad(lambda: read_svmlight("-", **case.options), case, "<stdin>")
        else:
            data = read_svmlight("-", **case.options)
            check_good(data, case)
            assert data.source == "<stdin>"
        assert not pipe.closed


def assert_same_outcome(a: Any, b: Any) -> None:
    assert len(a) == len(b)
    assert all(x == y if isinstance(x, int | str) else identical(x, y) for x, y in zip(a, b, strict=True))


@each_case
def test_blocks(case: Good | Bad) -> None:
    whole = outcome(case.text, max(len(case.text), 1), case)
    assert len(whole) == (3 if isinstance(case, Bad) else 12)
    for block in (1, 2, 3, 7):
        assert_same_outcome(outcome(case.text, block, case), whole)


@each_case
def test_threads(case: Good | Bad) -> None:
    """Chunks of a line each: alone, and in a longer text of which any line may begin a chunk."""
    texts = (case.text * 3, b"\n" * 9 + case.text, b"1 1:2\n" * 5 + case.text + b"\n-1 2:1 3:4\n" * 4)
    for text, narrow_limit in itertools.product(texts, (2**31 - 1, 2)):
        one = outcome(text, max(len(text), 1), case, narrow_limit=narrow_limit)
        for threads in (2, 3, 7):
            for block in (len(text) + 1, 24):
                assert_same_outcome(outcome(text, block, case, threads, narrow_limit=narrow_limit), one)


def test_the_first_error_of_all_chunks() -> None:
    """Every chunk has faults; the one that is told comes first in the file, with the place it has there."""
    good, bad, qid, bag = b"1 1:2\n", b"1 x\n", b"1 qid:3 1:2\n", b"1 bag:3 1:2\n"
    case = Bad("", b"", 0, 0, "")
    for lines, line in (
        ([good] * 20 + [bad] * 20, 21),
        ([good] * 20 + [qid] * 10 + [bad] * 10, 21),
        ([qid] * 20 + [bad] * 3, 21),
        ([qid] * 20 + [good] * 3 + [bad], 21),
        ([b"# a\n"] * 30 + [good, qid], 32),
        ([b"\n"] * 30 + [qid] + [b"\n"] * 30 + [good], 62),
        ([bag] * 20 + [good] * 3 + [bad], 21),
        ([qid] * 20 + [bag] * 3, 21),
    ):
        text = b"".join(lines)
        one = outcome(text, len(text), case)
        assert one[0] == line
        for threads, block in itertools.product((2, 3, 7), (1, 17, 60, len(text))):
            assert outcome(text, block, case, threads) == one


def test_errors_of_the_stream_come_after_those_of_the_text() -> None:
    """The parser may still be at the text when the stream fails; the fault that stands first is the one told."""

    class Failing(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            if block := super().read(size):
                return block
            raise OSError("the disk is on fire")

    text = b"1 1:2\n" * 400_000
    with pytest.raises(OSError, match="on fire"):
        read_svmlight(Failing(text), threads=2)
    with pytest.raises(DataError, match=r"^<stream>:400001:3: "):
        read_svmlight(Failing(text + b"1 x\n"), threads=2)


@pytest.mark.parametrize("compression", ["plain", "gzip"])
def test_threads_on_many_blocks(compression: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(svmlight, "_BLOCK", 1 << 19)  # still worth two threads
    n = 160_000
    text = "\n".join(f"{j % 3} {j % 89 + 1}:{j % 97} {j % 7 + 100}:{j}e-3" for j in range(n)).encode()
    packed = COMPRESSORS[compression](text)
    assert len(text) > 5 << 19
    one = read(packed)
    assert one.relevance.size == n
    for threads in (2, 3):
        many = read(packed, threads=threads)
        assert_same(many, one)
        assert many.fingerprint == hashlib.sha256(packed).hexdigest()


def test_a_parser_let_go_at_work() -> None:
    """As after an interrupt: nothing is left running, nothing is read that is gone."""
    parser = _kernels.SvmlightParser(threads=2, least_chunk=1)
    parser.feed(b"1 1:2\n" * 300_000)
    del parser


@pytest.mark.parametrize("case", [case for case in GOOD if case.judged], ids=lambda case: case.name)
def test_scikit_learn_agrees(case: Good) -> None:
    data = read(case.text, **case.options)
    X, y, *qid = load_svmlight_file(
        io.BytesIO(case.text),
        zero_based=case.options.get("zero_based", False),
        dtype=case.options.get("dtype", np.float64),
        n_features=case.options.get("n_features"),
        query_id=case.groups is not None,
    )
    assert identical(data.X.data, X.data)
    assert np.array_equal(data.X.indices, X.indices)
    assert np.array_equal(data.X.indptr, X.indptr)
    if data.X.nnz > 0:  # scikit-learn makes one column of none
        assert data.X.shape == X.shape
    assert np.array_equal(data.relevance, y)
    if data.groups is not None:
        assert np.array_equal(data.groups, qid[0])


@pytest.mark.parametrize("text", NO_ROWS)
@pytest.mark.parametrize("compression", COMPRESSORS)
def test_no_rows(text: bytes, compression: str) -> None:
    with pytest.raises(DataError, match=r"^<stream>: expected at least one row, found none$"):
        read(COMPRESSORS[compression](text))


# ------------------------------------------------------------------------------------------------ random texts

finite = st.floats(allow_nan=False, allow_infinity=False)
int64s = st.integers(-(2**63), 2**63 - 1)


@settings(max_examples=200, deadline=None)
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


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
def test_float32_round_trip(numbers: list[float]) -> None:
    values = np.array(numbers, dtype=np.float32)
    text = "1 " + " ".join(f"{i}:{np.format_float_scientific(v)}" for i, v in enumerate(values))
    assert identical(read(text.encode(), zero_based=True, dtype=np.float32).X.data, values)
    double = read(text.encode(), zero_based=True).X.data
    assert identical(double.astype(np.float32), values)


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


@settings(max_examples=250, deadline=None)
@given(st.lists(decimals, min_size=1, max_size=8))
def test_numbers(texts: list[str]) -> None:
    check_numbers(texts)


@settings(max_examples=200, deadline=None)
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


@settings(max_examples=1000, deadline=None)
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


def test_mutations() -> None:
    """Whatever the text: what the twin makes of it, and the same however it is cut into blocks."""
    check_mutation()
    assert min(N_ACCEPTED) > 50


# ------------------------------------------------------------------------------------------------ compressed data

TEXT = b"1 1:2 3:0.25\n-1 2:5 # comment\n1 1:7 2:8 4:9e-3\n"


@pytest.mark.parametrize("compression", COMPRESSED)
def test_truncated_anywhere(compression: str) -> None:
    packed = COMPRESSORS[compression](TEXT)
    read(packed)
    for length in range(len(packed)):
        with pytest.raises(DataError):
            read(packed[:length])


@pytest.mark.parametrize("compression", COMPRESSED)
def test_one_byte_corrupt(compression: str) -> None:
    packed = COMPRESSORS[compression](TEXT)
    intact = read(packed)
    n_refused = 0
    for at in range(len(packed)):
        for flip in (0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xFF):
            corrupt = packed[:at] + bytes([packed[at] ^ flip]) + packed[at + 1 :]
            try:
                data = read(corrupt)
            except DataError:
                n_refused += 1
            else:
                assert_same(data, intact)
    assert n_refused > 4 * len(packed)


@pytest.mark.parametrize("compression", COMPRESSED)
def test_members(compression: str) -> None:
    pack = COMPRESSORS[compression]
    intact = read(TEXT)
    for cut in (0, 1, 5, 13, 20, len(TEXT)):
        packed = pack(TEXT[:cut]) + pack(TEXT[cut:])
        assert_same(read(packed), intact)
        assert_same(read_svmlight(Dribble(packed)), intact)  # type: ignore[arg-type]


@pytest.mark.parametrize("compression", COMPRESSED)
def test_what_follows_a_stream(compression: str) -> None:
    pack = COMPRESSORS[compression]
    packed = pack(TEXT)
    for tail in (b"x", b"\n", TEXT, b"\0x", b"\x1f\x8c", b"BZx", b"\xfd7zXY", bytes(4) + b"1 1:2\n"):
        for stream in (io.BytesIO(packed + tail), Dribble(packed + tail)):
            with pytest.raises(DataError, match=r"^<stream>: .*(behind the end|corrupt|too early)"):
                read_svmlight(stream)  # type: ignore[arg-type]
    with pytest.raises(DataError, match=f"unexpected bytes behind the end of the {compression} data"):
        read(packed + TEXT)
    for padded in (packed + bytes(512), packed + bytes(8) + packed, packed + bytes(4)):
        if compression == "bzip2":
            with pytest.raises(DataError, match="behind the end"):
                read(padded)
        else:
            assert read(padded).relevance.size in (3, 6)
            assert read_svmlight(Dribble(padded)).relevance.size in (3, 6)  # type: ignore[arg-type]


@pytest.mark.parametrize("compression", COMPRESSED)
def test_much_text_from_few_bytes(compression: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One compressed block gives several blocks of text."""
    monkeypatch.setattr(svmlight, "_BLOCK", 1 << 16)
    n = 100_000
    data = read(COMPRESSORS[compression](b"1 1:2\n" * n))
    assert data.X.shape == (n, 1)
    assert data.X.data.sum() == 2 * n


def test_the_first_fault_is_reported() -> None:
    with pytest.raises(DataError, match=r":1:3: "):
        read(gzip.compress(b"1 x\n" + TEXT)[:-1])
    with pytest.raises(DataError, match="too early"):
        read(gzip.compress(TEXT)[:-1])


@pytest.mark.parametrize(("magic", "name"), [(b"\x28\xb5\x2f\xfd", "zstd"), (b"PK\x03\x04", "zip")])
def test_foreign_compression(magic: bytes, name: str) -> None:
    with pytest.raises(DataError, match=f"^<stream>: .*found {name} data$"):
        read(magic + bytes(30))


# ------------------------------------------------------------------------------------------------ sources


class Dribble(io.RawIOBase):
    """A stream that gives one byte at a time."""

    def __init__(self, data: bytes) -> None:
        self.data = iter(data)

    def read(self, size: int = -1, /) -> bytes:
        return bytes(itertools.islice(self.data, 1))


@pytest.mark.parametrize("compression", COMPRESSORS)
def test_dribble(compression: str) -> None:
    packed = COMPRESSORS[compression](TEXT)
    data = read_svmlight(Dribble(packed))  # type: ignore[arg-type]
    assert_same(data, read(TEXT))
    assert data.fingerprint == hashlib.sha256(packed).hexdigest()


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_svmlight(tmp_path / "none.svm")


def test_directory(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        read_svmlight(str(tmp_path))


def test_named_pipe(tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    child = os.posix_spawn("/bin/sh", ["sh", "-c", f"printf '1 1:2\\n' > '{path}'"], os.environ)
    assert read_svmlight(path).X.toarray().tolist() == [[2.0]]
    assert os.waitpid(child, 0)[1] == 0


def test_closed_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(OSError, match="standard input"):
        read_svmlight("-")


def test_a_path_named_dash_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("-").write_bytes(b"1 1:2\n")
    assert read_svmlight(Path("-")).source == "-"


def test_stream_keeps_its_name_and_stays_open(tmp_path: Path) -> None:
    path = tmp_path / "a.svm"
    path.write_bytes(TEXT)
    with path.open("rb") as stream:
        assert read_svmlight(stream).source == str(path)
        assert not stream.closed


def test_text_stream() -> None:
    with pytest.raises(TypeError, match="binary mode"):
        read_svmlight(io.StringIO("1 1:2\n"))  # type: ignore[arg-type]


def test_blocks_of_a_large_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows, and one row alone, that lie across the blocks in which a file is read."""
    monkeypatch.setattr(svmlight, "_BLOCK", 1 << 17)
    n = 100_000
    columns = np.arange(1, n + 1)
    one_row = ("1 " + " ".join(f"{j}:{j % 97}" for j in columns)).encode()
    many_rows = "\n".join(f"{j % 3} {j}:{j % 97}" for j in columns).encode()
    assert min(len(one_row), len(many_rows)) > 5 << 17
    row, rows = read(one_row), read(many_rows)
    assert row.X.shape == (1, n)
    assert rows.X.shape == (n, n)
    for data in (row, rows):
        assert np.array_equal(data.X.indices, columns - 1)
        assert np.array_equal(data.X.data, columns % 97)
    assert np.array_equal(rows.relevance, columns % 3)


def test_an_error_after_many_lines() -> None:
    with pytest.raises(DataError, match=r"^<stream>:900001:5: "):
        read(b"1 1:2\n" * 900_000 + b"1 1:x\n")


def test_endless_zeros() -> None:
    """/dev/zero never ends its first line, and is refused all the same."""

    class Zeros(io.RawIOBase):
        n_reads = 0

        def read(self, size: int = -1, /) -> bytes:
            self.n_reads += 1
            assert self.n_reads < 10
            return bytes(1 << 16)

    with pytest.raises(DataError, match=r"^<stream>:1:1: .*NUL"):
        read_svmlight(Zeros())  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------ sizes and options


@pytest.mark.parametrize("sort_features", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_indices_widen_once_needed(sort_features: bool, dtype: Any) -> None:
    text = b"1 1:1 7:2\n-1 2147483647:3\n"
    narrow = read(text, dtype=dtype, sort_features=sort_features)
    assert narrow.X.indices.dtype == narrow.X.indptr.dtype == np.int32
    assert narrow.X.shape == (2, 2**31 - 1)
    more = text + (
        b"1 2:4 9223372036854775807:6 2147483648:5\n1 3:1\n"
        if sort_features
        else b"1 2:4 2147483648:5 9223372036854775807:6\n1 3:1\n"
    )
    wide = read(more, dtype=dtype, sort_features=sort_features)
    assert wide.X.indices.dtype == wide.X.indptr.dtype == np.int64
    assert wide.X.indices.tolist() == [0, 6, 2**31 - 2, 1, 2**31 - 1, 2**63 - 2, 2]
    assert wide.X.indptr.tolist() == [0, 2, 3, 6, 7]
    assert wide.X.data.tolist() == [1, 2, 3, 4, 5, 6, 1]
    assert wide.X.data.dtype == dtype
    assert wide.X.shape == (4, 2**63 - 1)


def test_indices_are_wide_for_a_wide_model() -> None:
    data = read(b"1 1:2\n", n_features=2**31)
    assert data.X.shape == (1, 2**31)
    assert data.X.indices.dtype == data.X.indptr.dtype == np.int64


@pytest.mark.parametrize(
    ("text", "is_wide"),
    [
        (b"1 1:1 2:1 3:1\n1 1:1 2:1\n", False),  # 5 entries, 3 columns
        (b"1 1:1 2:1 3:1\n1 1:1 2:1 3:1\n1 5:1\n", True),  # 7 entries
        (b"1 5:1\n", False),
        (b"1 6:1\n", True),
        (b"1\n1\n1 1:1\n1\n1\n", False),
        (b"1\n1\n1 1:1\n1\n1\n1\n", True),  # 6 rows
    ],
)
def test_indices_widen_for_columns_entries_and_rows(text: bytes, is_wide: bool) -> None:
    """The limit of 2^31 - 1, moved to 5 where a test can reach it."""
    parser = _kernels.SvmlightParser(narrow_limit=5)
    parser.feed(text)
    indptr, indices, values, *_ = parser.finish()
    assert indptr.dtype == indices.dtype == (np.int64 if is_wide else np.int32)
    expected = read(text).X
    assert np.array_equal(indptr, expected.indptr)
    assert np.array_equal(indices, expected.indices)
    assert identical(values, expected.data)


def test_no_copies_are_made() -> None:
    """scipy keeps the very arrays of the parser."""
    data = read(TEXT)
    assert all(array.base is not None for array in (data.X.indices, data.X.indptr))
    assert data.X.data.flags.writeable
    assert data.relevance.flags.writeable
    assert isinstance(data.X, sp.csr_array)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_features": -1}, ValueError, "n_features"),
        ({"max_features": -1}, ValueError, "max_features"),
        ({"max_features": 2**63}, ValueError, "max_features"),
        ({"n_features": 1.5}, TypeError, "integer"),
        ({"n_features": 5, "max_features": 4}, ValueError, "beyond"),
        ({"ignore_unknown": True}, ValueError, "n_features"),
        ({"dtype": np.int32}, ValueError, "dtype"),
        ({"dtype": np.float16}, ValueError, "dtype"),
        ({"threads": 0}, ValueError, "thread"),
    ],
)
def test_bad_options(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        read(TEXT, **options)
    assert not isinstance(caught.value, DataError)


def test_numpy_counts_as_options() -> None:
    assert read(TEXT, n_features=np.int64(9), max_features=np.int32(9)).X.shape == (3, 9)
    assert read(b"1\n", n_features=0).X.shape == (1, 0)


TABLES = {
    "header": "age,income,bought\n31,2.5,1\n40,3,0\n",
    "numbers": "1,2.5,1.25\n3,4,0\n",
    "semicolons": "31;2,5;1\n40;3;0\n",
    "tabs": "31\t2.5\t1\n40\t3\t0\n",
    "long": "1,2.5,1.25\n" * 10_000,
}


@pytest.mark.parametrize("multilabel", [False, True])
@pytest.mark.parametrize("kind", TABLES)
def test_a_table_is_called_a_table(kind, multilabel):
    """And not recommended to be read as rows of several labels, which its columns are not."""
    with pytest.raises(DataError, match=r":1:\d+: expected svmlight rows .* a table .*--labels") as refused:
        read_svmlight(io.BytesIO(TABLES[kind].encode()), multilabel=multilabel)
    assert "multilabel" not in str(refused.value)


@pytest.mark.parametrize("text", ["1,4 1:2\n2,3 x\n", "1 1:2\n1,4\n", "1,4\n", "1, 1:2\n", "a,b\n", "\t1 2\n"])
def test_other_mistakes_are_not(text):
    with pytest.raises(DataError) as refused:
        read_svmlight(io.BytesIO(text.encode()))
    assert "table" not in str(refused.value)


def test_rows_of_labels_without_features_are_read():
    assert read_svmlight(io.BytesIO(b"1,4\n2\n4,1\n"), multilabel=True).X.shape == (3, 0)
