"""Weights of queries in the risk: a text file with lines ``qid weight``."""

from __future__ import annotations

import math

from apsvm.data.dataset import DataError


def read_query_weights(path: str) -> dict[int, float]:
    """The weight ≥ 0 of each qid named; empty lines and what follows a # are skipped.

    Raises
    ------
    OSError : the file cannot be read
    DataError : a line that is not a qid and a weight, a qid named twice, or no weight above 0
    """
    weights: dict[int, float] = {}
    with open(path, encoding="utf-8-sig", errors="backslashreplace") as stream:
        for at, line in enumerate(stream, start=1):
            words = line.partition("#")[0].split()
            if not words:
                continue
            try:
                qid, weight = words
                group, number = int(qid.removeprefix("qid:")), float(weight)
                if not (math.isfinite(number) and number >= 0.0) or "_" in line:
                    raise ValueError
            except ValueError:
                text = line.strip()[:40]
                raise DataError(f"{path}:{at}: expected a qid and a weight of at least 0, found {text!r}") from None
            if group in weights:
                raise DataError(f"{path}:{at}: qid {group} has a weight already")
            weights[group] = number
    if not any(weights.values()):
        raise DataError(f"{path}: expected lines 'qid weight', at least one weight above 0, found none")
    return weights
