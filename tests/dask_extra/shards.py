"""Shards in this process, of rows cut anywhere."""

from __future__ import annotations

import itertools

import numpy as np

from apsvm.dask.crew import LocalCrew
from apsvm.dask.data import ShardedData
from apsvm.dask.long_list import ListRisk
from apsvm.dask.sources import ArrayPart
from apsvm.data.labels import threshold


def crew_of(X, y, cuts, *, qid=None, weights=None):
    """A shard for each run of rows between ``cuts``."""
    bounds = [0, *sorted(cuts), X.shape[0]]
    columns = [
        [None if column is None else column[begin:end] for column in (X, y, qid, weights)]
        for begin, end in itertools.pairwise(bounds)
    ]
    return LocalCrew([[ArrayPart(*part, number)] for number, part in enumerate(columns)])


def sharded(X, y, cuts, *, bias=None, **columns):
    """The rows above 0 are relevant."""
    data = ShardedData.of(crew_of(X, y, cuts, **columns), "the rows")
    data.tell(threshold(data.labels))
    data.scale("none", bias)
    return data


def list_risk(data, loss, **options):
    data.take_list()
    return ListRisk(data.vectors, loss, data.n_pos, data.n_neg, **options)


def slopes_of_rows(data, handle, cuts, y):
    """(n,) of rows in their own order: those of a shard stand positives first."""
    bounds = [0, *sorted(cuts), y.size]
    result = np.empty(y.size)
    for shard, begin, end in zip(data.crew._shards, bounds[:-1], bounds[1:], strict=True):
        order = begin + np.argsort(~(y[begin:end] > 0), kind="stable")
        result[order] = shard._vector(handle.number)
    return result
