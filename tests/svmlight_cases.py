"""The corners of svmlight text, each with what is read or what is refused and where."""

import bz2
import gzip
import io
import lzma
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from apsvm._native import _kernels
from apsvm.data import Dataset, read_svmlight

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


def outcome(text: bytes, block: int, case: Good | Bad, threads: int = 1, *, taken: bool = False, **more: Any) -> Any:
    """Result of the push parser on the text in blocks of this size: arrays, or the place and message.

    If ``taken``, of the rows of each block: a list.
    """
    options = dict(case.options) | more
    options["float32"] = options.pop("dtype", np.float64) == np.float32
    parser = _kernels.SvmlightParser(**options, threads=threads, least_chunk=1)
    try:
        parts = []
        for start in range(0, len(text), block):
            parser.feed(text[start : start + block])
            if taken:
                parts.append(parser.take())
        return [*parts, parser.finish()] if taken else parser.finish()
    except _kernels.SvmlightError as error:
        return error.args


def assert_same_outcome(a: Any, b: Any) -> None:
    assert len(a) == len(b)
    assert all(x == y if isinstance(x, int | str) else identical(x, y) for x, y in zip(a, b, strict=True))
