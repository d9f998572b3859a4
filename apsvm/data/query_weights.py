"""Reads the weights of queries in the risk from a text file with lines ``qid weight``."""

from __future__ import annotations

import math

import numpy as np

from apsvm.data.dataset import DataError, Dataset


def read_query_weights(path: str) -> dict[str, float]:
    """The weight ≥ 0 of each qid. Empty lines and comments after # are skipped.

    Raises
    ------
    OSError : the file cannot be read
    DataError : a line that is not a qid and a weight, a qid twice, or no weight above 0
    """
    weights: dict[str, float] = {}
    with open(path, encoding="utf-8-sig", errors="backslashreplace") as stream:
        for at, line in enumerate(stream, start=1):
            words = line.partition("#")[0].split()
            if not words:
                continue
            try:
                qid, weight = words
                qid, number = qid.removeprefix("qid:"), float(weight)
                if not (math.isfinite(number) and number >= 0.0) or "_" in weight:
                    raise ValueError
            except ValueError:
                text = line.strip()[:40]
                raise DataError(f"{path}:{at}: expected a qid and a weight of at least 0, found {text!r}") from None
            if qid in weights:
                raise DataError(f"{path}:{at}: qid {qid} has a weight already")
            weights[qid] = number
    if not any(weights.values()):
        raise DataError(f"{path}: expected lines 'qid weight', at least one weight above 0, found none")
    return weights


def weights_of_queries(path: str, dataset: Dataset) -> tuple[dict[int, float], list[str]]:
    """The weights by ``dataset.groups``, and the qids without rows. Raises as ``read_query_weights``, and DataError if
    no row has one of the qids."""
    assert dataset.groups is not None
    weights = read_query_weights(path)
    queries = np.unique(dataset.groups).tolist()
    names = {dataset.query_name(query): query for query in queries}
    unknown = [name for name in weights if name not in names]
    if len(unknown) == len(weights):
        raise DataError(
            f"{path}: expected qids of {dataset.source}, such as {next(iter(names))!r}, found none of them among its "
            f"{len(weights)}, such as {unknown[0]!r}"
        )
    return {names[name]: weight for name, weight in weights.items() if name in names}, unknown
