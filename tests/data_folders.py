"""A small data set in a folder, and what makes two data sets the same."""

import io
from typing import Any

import scipy.sparse as sp

from apsvm.data import Dataset, read_svmlight

TEXT = b"1 qid:1 cost:2 1:0.5 4:-1.25\n-1 qid:1 2:3\n1 qid:2\n-1 qid:2 cost:0.5 1:1 2:2 3:3 4:4\n"


def read(text: bytes, **options: Any) -> Dataset:
    return read_svmlight(io.BytesIO(text), **options)


def assert_same(a: Dataset, b: Dataset) -> None:
    def bits(array: Any) -> Any:
        return None if array is None else (array.dtype, array.shape, array.tobytes())

    assert sp.issparse(a.X) == sp.issparse(b.X)
    assert a.X.shape == b.X.shape
    for name in ("indptr", "indices", "data") if sp.issparse(a.X) else ():
        assert bits(getattr(a.X, name)) == bits(getattr(b.X, name)), name
    if not sp.issparse(a.X):
        assert bits(a.X) == bits(b.X)
    for name in ("relevance", "groups", "costs"):
        assert bits(getattr(a, name)) == bits(getattr(b, name)), name
    assert (a.zero_based, a.fingerprint) == (b.zero_based, b.fingerprint)
